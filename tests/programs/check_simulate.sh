#!/bin/bash
# check_simulate.sh - blinkprobe simulate as a whole: one seed prints one run,
# and a rank that fails is named

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

PROBE=$BIN/blinkprobe
SEARCH=$HELPERS/../sim/search
TESTED=("$PROBE") TESTED_AS=blinkprobe

# simulate OPTION...: prints to out
simulate()
{
	expect_status 0 "$PROBE" simulate "$@" >out 2>err
	expect_empty err
}

# json EXPRESSION: of the document d in out; prints it
json()
{
	/usr/bin/python3 -c "import json, sys
d = json.load(open('out'))
print($1)"
}

# expect_json VALUE EXPRESSION
expect_json()
{
	local got

	got=$(json "$2")
	[ "$got" = "$1" ] || fail "$2 is '$got', not '$1'"
}

case_text()
{
	simulate --nodes=24 --message=40000 --loss=0.01 --seed=1
	[ "$(wc -l <out)" = 5 ] || fail "not five lines: $(cat out)"
	expect_match '^24 ranks, 40000 bytes to each, all-at-once$' out
	expect_match '^all messages came within .* \(median\), .* \(last' out
	expect_match ' sent again, [0-9]+ of status; .* MiB on links$' out
	expect_match '^dropped: [1-9]' out
	expect_match ' events, digest [0-9a-f]{16}$' out
}

case_json()
{
	simulate --nodes=64 --records=1M --link=100G --json
	expect_json "64 24414 100000000000 all-at-once True" \
		"d['nodes'], d['message_bytes'], d['link_bits_per_s'],
		d['schedule'], d['compared']"
	expect_json "True" "d['sent_bytes'] == 64 * 63 * 24414"
	expect_json "True" "0 < d['median_ns'] <= d['max_ns'] <= d['end_ns']"
	simulate --nodes=8 --message=0 --json
	expect_json "0 True" "d['sent_datagrams'], d['max_ns'] > 0"
}

case_grid()
{
	simulate --nodes=128 --schedule=grid --json
	expect_json "grid True" "d['schedule'], d['compared']"
	# Each byte but those for the own row or column travels twice.
	expect_json "True" "d['sent_bytes'] > 1.8 * 128 * 127 * 250"
	simulate --nodes=200 --json
	expect_json "grid" "d['schedule']"
}

# Exchanges one after the other, of messages that are not all alike.
case_lengths()
{
	simulate --nodes=8 --message=1000 --lengths=one --times=3
	expect_match '^8 ranks, up to 1000 bytes to each, all-at-once, 3 t' out
	simulate --nodes=8 --message=1000 --lengths=one --times=3 --json
	expect_json "$((3 * 7 * 1000)) True" "d['sent_bytes'], d['compared']"
	simulate --nodes=8 --message=1000 --lengths=some --json
	expect_json "True" "d['sent_bytes'] in range(1000, 56000, 1000)"
	simulate --nodes=8 --message=1000 --lengths=skewed --schedule=rounds \
		--json
	expect_json "True" "0 < d['sent_bytes'] < 28000"
	simulate --nodes=8 --message=1000 --lengths=skewed --schedule=grid \
		--times=3
}

digest_of()
{
	"$1" simulate --nodes=20 --message=9000 --loss=0.01 --noise=1000:5000 \
		"${@:2}" | sed -n 's/.*digest //p'
}

# All builds of a program run alike, on any machine.
case_seeds()
{
	local build first

	first=$(digest_of "$PROBE" --seed=7)
	[ -n "$first" ]
	[ "$(digest_of "$PROBE" --seed=7)" = "$first" ] || fail "another run"
	[ "$(digest_of "$PROBE" --seed=8)" != "$first" ] || fail "the same run"
	for build in "$BUILD"/*/bin/blinkprobe; do
		[ "$("$build" --version)" = "$("$PROBE" --version)" ] ||
			continue
		[ "$(digest_of "$build" --seed=7)" = "$first" ] ||
			fail "another run: $build"
	done
}

# A timeline has a process for each rank, and no part in the run.
case_trace()
{
	simulate --nodes=6 --message=9000
	mv out plain
	simulate --nodes=6 --message=9000 --trace=t.json
	expect_same out plain
	mv t.json out
	expect_json "[1, 2, 3, 4, 5, 6] True" \
		"sorted({e['pid'] for e in d['traceEvents']}),
		{'send', 'receive', 'wait'} <= {e['name'] for e in
			d['traceEvents']}"
	expect_refused 3 '^/nowhere/t: its folder: No such file' simulate --nodes=2 \
		--trace=/nowhere/t
}

case_join()
{
	simulate --nodes=16 --json
	mv out without
	simulate --nodes=16 --join --json
	# A hello that comes first spares a rank its answer.
	expect_json "True" "d['status_datagrams'] > 16 * 14 +
		json.load(open('without'))['status_datagrams']"
}

case_failures()
{
	expect_refused 4 '^rank 3 \(10.0.0.4:7300\): has .* 5.0 s' simulate \
		--nodes=8 --kill=3:0
	expect_refused 4 '^rank 2 \(10.0.0.3:7300\): nothing that it sent has' \
		simulate --nodes=8 --message=9000 --lose-long=2:1000 --deadline=1
	# It says where it stands, and none of its records comes.
	expect_refused 4 '^rank 2 \(10.0.0.3:7300\): nothing that it sent has' \
		simulate --nodes=8 --message=300 --lose-long=2:300 --deadline=1
	expect_refused 4 '^rank . \(10.0.0..:7300\): has not come' \
		simulate --nodes=2 --lose-long=0:0 --deadline=1
	expect_refused 4 '^rank 0 died before it ended' \
		simulate --nodes=2 --kill=0:0 --kill=1:0
	expect_refused 4 '^rank [12] \(10.0.0..:7300\): has been silent' \
		simulate --nodes=3 --kill=1:0.025 --kill=2:0.03 --deadline=1
	expect_refused 4 '^rank 0 has not ended within 2 s' \
		simulate --nodes=2 --limit=2 --pause=0:0.02:3000
	expect_refused 2 '^--threads: 8 of each of 4096 ranks need more than' \
		simulate --nodes=4096 --threads=8
	expect_refused 4 '^rank 2 \(10.0.0.3:7300\): nothing that it sent has' \
		simulate --nodes=8 --message=9000 --lose-long=2:1000 \
		--deadline=1 --threads=3
	# A pause that is shorter than the deadline is no failure.
	simulate --nodes=8 --pause=3:0:500 --deadline=1
}

# Networks at random: make sim searches more of them.
case_search()
{
	local seeds=300

	[ -z "$SANITIZED$QUICK" ] || seeds=60
	expect_status 0 "$SEARCH" "$seeds" >out
	expect_match "^$seeds seeds: $seeds passed, 0 failed, [1-9]" out
}

# The line by which the search tells a seed repeats it.
case_search_commands()
{
	local seed words

	for seed in {1..20}; do
		"$SEARCH" 1 "$seed" >told
		if grep -qE 'blames|did not end' told; then
			continue
		fi
		read -ra words < <(sed -n '1s/^bin.blinkprobe simulate //p' told)
		simulate "${words[@]}"
		grep -o 'digest .*' out >repeated
		grep -o 'digest .*' told | expect_same repeated -
	done
}

# Whatever there is no memory for, the program says so and ends.
case_little_memory()
{
	local limit

	for limit in {45500..54500..300}; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		expect_status 5 bash -c 'ulimit -v "$1" && exec "${@:2}"' \
			- "$limit" "$PROBE" simulate --nodes=64 --message=20000 \
			>out 2>err
		expect_one_line err
		expect_match '^blinkprobe: memory: Out of memory$' err
		expect_empty out
	done
}

case_refusals()
{
	expect_refused 2 '^--nodes: is missing' simulate
	expect_refused 2 '^--nodes=1: not a number from 2 to 4096' simulate \
		--nodes=1
	expect_refused 2 '^x: one word too many for simulate' simulate \
		--nodes=2 x
	expect_refused 2 '^--records: not with --message' simulate --nodes=2 \
		--records=1 --message=1
	expect_refused 2 '^--loss=2: not from 0 to 1' simulate --nodes=2 \
		--loss=2
	expect_refused 2 '^--loss=0.0x: not from 0 to 1' simulate --nodes=2 \
		--loss=0.0x
	expect_refused 2 '^--link=x: not bits a second' simulate --nodes=2 \
		--link=x
	expect_refused 2 '^--kill=3: not of the form RANK:MS' simulate \
		--nodes=2 --kill=3
	expect_refused 2 '^--kill=3:0.0000001: not of the form RANK:MS' \
		simulate --nodes=4 --kill=3:0.0000001
	expect_refused 2 '^--pause=1.5:1:1: not of the form RANK:MS:MS' \
		simulate --nodes=4 --pause=1.5:1:1
	expect_refused 2 '^--times=0: not a number from 1 to 1000' simulate \
		--nodes=2 --times=0
	expect_refused 2 '^--lengths=odd: ' simulate --nodes=2 --lengths=odd
	expect_refused 2 '^--send-cost=1:2:3:4: not of the form' simulate \
		--nodes=2 --send-cost=1:2:3:4
	expect_refused 2 '^--noise=0:1: not COUNT:NS' simulate --nodes=2 \
		--noise=0:1
	expect_refused 2 '^--noise=10:50000000,1:500000000: leaves a CPU no' \
		simulate --nodes=2 --noise=10:50000000,1:500000000
	expect_refused 2 '^--slow: no CPU computes in no time' simulate \
		--nodes=2 --slow=1:0
	expect_refused 2 '^--nodes: there is no rank 2' simulate --nodes=2 \
		--kill=2:5
}

check simulate_text case_text
check simulate_json case_json
check simulate_grid case_grid
check simulate_lengths case_lengths
check simulate_seeds case_seeds
check simulate_trace case_trace
check simulate_join case_join
check simulate_failures case_failures
check simulate_search case_search
check simulate_search_commands case_search_commands
if [ -n "$SANITIZED" ]; then
	skip simulate_little_memory "the sanitizer itself needs more"
else
	check simulate_little_memory case_little_memory
fi
check simulate_refusals case_refusals
finish
