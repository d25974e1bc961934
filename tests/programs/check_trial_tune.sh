#!/bin/bash
# check_trial_tune.sh - trials under settings that blinktune holds
#
# Both programs are the real ones; the machine is a small tree of files.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

TRIAL=$BIN/blinktrial

if [ ! -x "$TRIAL" ]; then
	skip trial_tune "Python has no sanitizer"
	finish
fi

# machine: ./tree, and blinktune turned to it
machine()
{
	make_tree tree
	export BLINKTUNE_ROOT=$PWD/tree BLINKTUNE_STATE=$PWD/state
}

# begin ARGUMENT...: trials of a few milliseconds each
begin()
{
	timeout 100 "$TRIAL" --scenario=pagecache --records=2000 --out=record \
		"$@" </dev/null
}

# ask EXPRESSION: true of the record's design and trials
ask()
{
	python3 - "$1" <<-'END' || fail "not so: $1"
		import json, sys
		design = json.load(open("record/design.json"))
		trials = [json.loads(line) for line in open("record/trials.jsonl")]
		reasons = {c["name"]: c["skipped"] for c in design["configurations"]}
		def held(name):
		    return [t["tuning"] for t in trials
		            if t["configuration"] == name]
		sys.exit(not eval(f"({sys.argv[1]})"))
	END
}

case_profiles()
{
	machine
	cat >quiet.profile <<-'END'
		set swappiness 1
		set cpu-governor performance
		try turbo off
	END
	cat >cannot.profile <<-'END'
		set swappiness 1
		set turbo off
	END
	echo 'tune.profile reference | ./quiet.profile ./cannot.profile' >sweep
	begin --sweep=sweep --trials=2 >out 2>err || fail "$(cat err)"
	"$TRIAL" validate record >/dev/null
	expect_match '^skipped: profile=./cannot.profile: blinktune: turbo: required, but unsupported' out
	ask '"turbo: required, but unsupported" in (
		reasons["profile=./cannot.profile"])'
	ask '[t["profile"] for t in held("profile=./quiet.profile")]
		== ["./quiet.profile"] * 2'
	ask '[t["profile"] for t in held("reference")] == ["reference"] * 2'
	ask 'all(len(t["tuning"]["journal_sha256"]) == 64 for t in trials)'
	ask 'all(t["runner"]["tuning_ns"] >= 0 for t in trials)'
	expect_gone state/journal
	expect_tree_restored
}

# The settings are there while a trial runs: its sorter sees them.
case_in_force()
{
	machine
	mkdir programs
	for name in blinkgen blinkprobe blinkval blinksh blinktrial \
		blinktune; do
		ln -s "$BIN/$name" "programs/$name"
	done
	cat >programs/blinksort <<-END
		#!/bin/bash
		cat "$PWD/tree/proc/sys/vm/swappiness" >>"$PWD/seen"
		echo >>"$PWD/seen"
		exec "$BIN/blinksort" "\$@"
	END
	chmod +x programs/blinksort
	TRIAL=$PWD/programs/blinktrial
	echo 'tune.swappiness keep | 7 8' >sweep
	begin --sweep=sweep --trials=1 >out 2>err || fail "$(cat err)"
	sort -u seen >values
	printf '60\n7\n8\n' | expect_same - values
	expect_tree_restored
}

# Some blinktune is still at work here, or about to.
somebody_tunes()
{
	local file words

	[ ! -e state/journal ] || return 0
	for file in /proc/[0-9]*/cmdline; do
		words=$( (tr '\0' ' ' <"$file") 2>/dev/null) || continue
		if [[ $words == *blinktune* &&
			$(readlink "${file%/*}/cwd") == "$PWD" ]]; then
			return 0
		fi
	done
	return 1
}

# killed_after SECONDS ARGUMENT...
killed_after()
{
	local seconds=$1 pid
	shift

	"$TRIAL" "$@" >out 2>err </dev/null &
	pid=$!
	sleep "$seconds"
	kill -KILL "$pid" 2>/dev/null || fail "ended by itself: $(cat err)"
	wait "$pid" 2>/dev/null || true
	wait_until nobody_tunes
	expect_tree_restored
}

nobody_tunes()
{
	! somebody_tunes
}

# has_more_than LINES: the record
has_more_than()
{
	[ "$(lines_of_record)" -gt "$1" ]
}

lines_of_record()
{
	if [ -e record/trials.jsonl ]; then
		wc -l <record/trials.jsonl
	else
		echo 0
	fi
}

# Killed at any time it leaves the machine as it was, and can be gone on with.
case_killed()
{
	local round before=0 seconds tries

	machine
	printf '%s\n' 'tune.swappiness 60 | 1 2' 'tune.io-scheduler keep | none' \
		'tune.c-states keep | 3' >sweep
	RANDOM=7
	for ((round = 0; round < (QUICK ? 2 : 4); round++)); do
		printf -v seconds '0.%03d' $((300 + RANDOM % 700))
		if [ -e record/design.json ]; then
			killed_after "$seconds" --resume --out=record
		else
			killed_after "$seconds" --scenario=pagecache \
				--records=2000 --trials=5000 --sweep=sweep \
				--out=record
		fi
	done
	for ((tries = 0; tries < 20; tries++)); do
		! has_more_than $((before + 3)) || break
		resumed_for_a_while
	done
	has_more_than $((before + 3)) || fail "no more trials by --resume"
	"$TRIAL" validate record >/dev/null
	ask 'all(t["outcome"] == "ok" for t in trials)'
	ask '[t["trial"] for t in trials] == list(range(len(trials)))'
	ask 'all((t["tuning"] or {"journal_sha256": "x"})["journal_sha256"]
		for t in trials)'
}

# Until there are more trials; ended by a signal
resumed_for_a_while()
{
	local pid status=0

	before=$(lines_of_record)
	if [ -e record/design.json ]; then
		set -- --resume
	else
		set -- --scenario=pagecache --records=2000 --trials=5000 \
			--sweep=sweep
	fi
	"$TRIAL" "$@" --out=record >out 2>err </dev/null &
	pid=$!
	wait_until eval "has_more_than $((before + 3)) || ! kill -0 $pid"
	kill -0 "$pid" || fail "ended by itself: $(cat err)"
	kill -TERM "$pid"
	wait "$pid" || status=$?
	[ "$status" = 143 ] || fail "status $status: $(cat err)"
	expect_gone state/journal
	expect_tree_restored
}

check profiles case_profiles
check in_force case_in_force
check killed case_killed
finish
