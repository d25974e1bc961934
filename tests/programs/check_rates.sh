#!/bin/bash
# check_rates.sh - the counters of --trace: their integrals are what was moved

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/sort_lib.sh
. "$(dirname "$0")/sort_lib.sh"

# moved TRACE: a line for each counter's name: the sum over all processes
moved()
{
	/usr/bin/python3 - "$1" <<-'END'
		import json, sys

		steps, sums = {}, {}
		for event in json.load(open(sys.argv[1]))["traceEvents"]:
		    if event["ph"] == "C":
		        steps.setdefault((event["name"], event["pid"]), []).append(
		            (event["ts"], event["args"]["bytes/s"]))
		for (name, _), found in steps.items():
		    assert found[-1][1] == 0, (name, found)
		    sums[name] = sums.get(name, 0) + sum(
		        rate * (after - before) / 1e6 for (before, rate), (after, _)
		        in zip(found, found[1:]))
		for name in sorted(sums):
		    print(name, round(sums[name]))
	END
}

# expect_moved TRACE NAME BYTES...: the integrals are these, within a thousandth
expect_moved()
{
	local trace=$1

	shift
	moved "$trace" >sums
	printf '%s %s\n' "$@" >wanted
	paste -d ' ' wanted sums | awk '
		$1 != $3 || ($2 - $4) ^ 2 > ($2 / 1000) ^ 2 { bad = 1 }
		END { exit bad }' ||
		fail "moved $(tr '\n' ',' <sums), not $(tr '\n' ',' <wanted)"
}

# In memory each byte is read once and written once, whatever the way.
case_in_memory()
{
	local io

	"$BIN/blinkgen" -a 200000 in
	for io in auto buffered mmap direct; do
		expect_sorted in -o out "--io=$io" --trace=trace
		expect_moved trace read 20000000 write 20000000
		rm out
	done
}

case_tmpfs()
{
	local out

	out=$(mktemp -d /dev/shm/blinksort-check.XXXXXX)
	"$BIN/blinkgen" -a 200000 in
	expect_sorted in -o "$out/out" --trace=trace
	rm -r "$out"
	expect_moved trace read 20000000 write 20000000
}

# passes FILE: what the document says that all passes have read and written
passes()
{
	/usr/bin/python3 -c 'import json, sys
passes = json.load(open(sys.argv[1]))["external"]["passes"]
print("read", sum(each["read_bytes"] for each in passes),
      "write", sum(each["written_bytes"] for each in passes))' "$1"
}

case_beyond_memory()
{
	local options

	"$BIN/blinkgen" -a 400000 in
	for options in --threads=2 --compress=lz4 --unique --sync; do
		expect_sorted in -o out -S 12M --io=direct "$options" --json \
			--trace=trace
		# shellcheck disable=SC2046 # these are words
		expect_moved trace $(passes "$STDOUT")
		rm out
	done
}

case_streams()
{
	"$BIN/blinkgen" -a 100000 in
	# shellcheck disable=SC2002 # a pipe is wanted
	cat in | "$BIN/blinksort" - -o - --trace=trace | cat >out
	expect_moved trace read 10000000 write 10000000
}

# run_ranks OPTION...: three, of which each has a third
run_ranks()
{
	local port=$((20000 + $$ % 10000)) rank hosts

	hosts=127.0.0.1:$port,127.0.0.1:$((port + 1)),127.0.0.1:$((port + 2))
	for rank in 0 1 2; do
		"$BIN/blinksort" --cluster --key-file=key --job=rates \
			--nodes="$hosts" \
			"--rank=$rank" "in.$rank" -o "out.$rank" --trace=trace \
			--deadline=60 "$@" >"said.$rank" &
	done
	wait -n && wait -n && wait -n
}

# What one rank sends, another one receives.
case_ranks()
{
	local options rank sent

	"$BIN/blinksh" keygen key
	for rank in 0 1 2; do
		"$BIN/blinkgen" -a -b$((rank * 100000)) 100000 "in.$rank"
	done
	for options in --schedule=rounds --schedule=grid -S12M; do
		run_ranks "$options"
		moved trace >sums
		sent=$(sed -n 's/^send //p' sums)
		[ "$sent" -gt 15000000 ] || fail "sent $sent"
		[ "$options" != --schedule=rounds ] ||
			expect_moved trace read 30000000 receive "$sent" \
				send "$sent" write 30000000
		[ "$options" = --schedule=rounds ] ||
			[ "$(sed -n 's/^receive //p' sums)" = "$sent" ] ||
			fail "$(cat sums)"
	done
}


check rates_in_memory case_in_memory
check rates_tmpfs case_tmpfs
check rates_beyond_memory case_beyond_memory
check rates_streams case_streams
check rates_ranks case_ranks
finish
