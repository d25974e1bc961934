#!/bin/bash
# check_trial_commands.sh - blinktrial with commands of any kind: what it times,
# how they may misbehave, and what is left behind

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

TRIAL=$BIN/blinktrial REPORT=$BIN/blinkreport
TESTED=(run_trial) TESTED_AS=blinktrial

run_trial()
{
	timeout 300 "$TRIAL" "$@"
}

# expect_trial STATUS ARGUMENT...: in ./out and ./err
expect_trial()
{
	local want=$1 status=0
	shift

	run_trial "$@" >out 2>err || status=$?
	[ "$status" = "$want" ] ||
		fail "status $status, not $want: $*: $(head -c 400 err)"
}

# ask EXPRESSION: of the record in ./record
ask()
{
	python3 - "$1" <<-'END' || fail "not so: $1"
		import json, sys
		design = json.load(open("record/design.json"))
		trials = [json.loads(line) for line in open("record/trials.jsonl")]
		arms = design["configurations"]
		sys.exit(not eval(f"({sys.argv[1]})"))
	END
}

# No record is asked for: a table, and nothing stays.
case_table()
{
	mkdir temporary
	COLUMNS=80 TMPDIR=$PWD/temporary expect_trial 0 --trials=6 true \
		'sleep 0.02' -n nothing
	expect_empty err
	expect_match '^  1  nothing: true$' out
	expect_match '^  2  sleep 0.02$' out
	expect_match '^6 runs of each:$' out
	expect_match '^1 +[0-9.]+ [mu]s \[' out
	expect_match '^1 again +[0-9]' out
	expect_match '^2 +[0-9.]+ ms \[[0-9., ]+\] +[0-9.]+ \[[0-9., ]+\] ' out
	expect_match 'Starting a program that ends at once takes [0-9.]+ [mun]?s' out
	! grep 'See the results' out || fail "of no record"
	[ "$(awk 'length > 80' out)" = "" ] || fail "wider than a terminal"
	[ -z "$(ls -A temporary)" ]
}

# Each block has each command, and the first one twice, in an order of chance.
case_record()
{
	expect_trial 0 --out=record --trials=8 --quiet --seed=5 true 'sleep 0.001' \
		-n one
	expect_status 0 "$TRIAL" validate record
	ask '[arm["name"] for arm in arms] == ["one", "one (control)", "sleep 0.001"]'
	ask 'len(trials) == 24 and all(t["outcome"] == "ok" for t in trials)'
	# Short commands are not kept waiting by looks at the noise.
	ask 'min(t["noise"]["places"][0]["time_ns"] for t in trials) == 5e6'
	ask 'len({tuple(t["configuration"] for t in trials[at:at + 3])
	          for at in range(0, 24, 3)}) > 1'
	ask 'all(t["measures"]["max_rss_bytes"] > 0 and t["ranks"] == []
	         and t["scenario_met"] for t in trials)'
	for format in text csv csv-summary html hyperfine benchfmt hlog; do
		expect_status 0 "$REPORT" --format="$format" record >shown
		[ -s shown ]
	done
	expect_status 0 "$REPORT" --format=html record >shown
	expect_match '<h1>Times of commands</h1>' shown
	expect_match '<b>one: [0-9.]+ [mu]s</b>, median of 8 trials' shown
	expect_status 0 "$REPORT" record >shown
	expect_match '^command    one: true$' shown
	expect_match '^A/A        the control is the reference again' shown
	# Too few trials to tell anything of the second command
	expect_status 7 "$REPORT" compare record record >shown
}

# A command is run as often as fits into 3 s, but 10 times at least.
case_number_of_trials()
{
	expect_trial 0 --out=record --quiet 'sleep 0.5'
	ask 'design["trials"] == 10'
}

# What stands beside a command is run off the clock, in its order.
case_hooks()
{
	expect_trial 0 --out=record --trials=2 --quiet --warmup=1 \
		--setup='echo setup {n} >>log' --prepare='echo prepare {n} >>log' \
		--conclude='echo conclude {n} >>log' \
		--cleanup='echo cleanup {n} >>log' -L n 1,2 \
		"sh -c 'echo run {n} >>log'"
	# Twice before the first trial, for it and for its control.
	[ "$(grep -c '^setup' log),$(grep -c '^cleanup' log)" = 2,2 ]
	[ "$(grep -c '^run 1' log),$(grep -c '^run 2' log)" = 8,4 ] ||
		fail "$(cat log)"
	[ "$(head -n 2 log | paste -sd,)" = "setup 1,setup 2" ]
	awk '/^run/ && before != "prepare " $2 { exit 1 }
		before ~ /^run/ && !/^conclude/ { exit 1 }
		{ before = $0 }' log || fail "$(cat log)"
	expect_refused 1 "^--prepare: no$" --trials=2 -p 'echo no >&2; exit 3' true
	expect_refused 1 "^--setup: 'exit 3' ended with status 3$" --setup='exit 3' \
		true
	rm log
	expect_trial 1 --trials=2 --cleanup='echo cleanup >>log' \
		--conclude='test ! -e log; exit 1' true
	expect_match '^blinktrial: --conclude: ' err
	[ "$(cat log)" = cleanup ]
	# What concludes a trial sees the output, which is removed behind it; that a
	# command fails is told before that there is no output.
	expect_trial 0 --trials=2 --output=made --conclude='grep -q x made' \
		"sh -c 'echo x >made'"
	[ ! -e made ]
	expect_refused 1 "^sh -c 'exit 5': ended with status 5" --trials=2 \
		--conclude='grep -q x made' "sh -c 'exit 5'"
}

# is_stopped FILE: the process whose number it has
is_stopped()
{
	grep '^State:.T' "/proc/$(cat "$1")/status"
}

# A command that stops the process which times it is ended with it all the same.
case_stopped()
{
	local trial

	timeout --foreground 300 "$TRIAL" \
		"sh -c 'echo \$PPID >parent; echo \$\$ >shell; kill -STOP \$PPID; sleep 1000'" \
		>out 2>err &
	trial=$!
	wait_until test -s shell
	wait_until is_stopped parent
	kill -TERM "$trial"
	expect_status 143 wait "$trial"
	wait_until is_gone parent
	wait_until is_gone shell
}

# is_gone FILE: the process whose number it has, but for what init reaps
is_gone()
{
	! grep '^State:.[^Z]' "/proc/$(cat "$1")/status"
}

# has_run COUNT: so many lines are in ./run
has_run()
{
	[ "$(wc -l <run)" -ge "$1" ]
}

# Scripts for hyperfine find a result for each value.
case_export()
{
	expect_trial 0 --trials=2 --quiet --export-json=times.json -L n 1,2 \
		'echo {n}'
	python3 - <<-'END'
		import json
		results = json.load(open("times.json"))["results"]
		assert [(one["command"], one["parameters"]) for one in results] == [
		    ("echo 1", {"n": "1"}), ("echo 1 (control)", {"n": "1"}),
		    ("echo 2", {"n": "2"})], results
		assert all(len(one["times"]) == 2 for one in results)
	END
	expect_refused 2 'there is --export-json' --export-csv=times.csv true
	# A command finds the name by which it was called.
	expect_refused 1 "^ls /none: ls: cannot access" 'ls /none'
	# What can't be written in the end is refused before anything has run.
	expect_refused 3 '^none/a.json: No such file or directory' \
		--export-json=none/a.json 'touch ran'
	expect_refused 3 '^[.]: is a folder' --export-json=. 'touch ran'
	[ ! -e ran ]
}

# What is set up may be a server, which nobody waits for.
case_server()
{
	# shellcheck disable=SC2016 # the shell of the setup expands it
	expect_trial 0 --trials=2 --quiet \
		--setup='sleep 1000 & echo $! >server' \
		--cleanup='kill $(cat server)' true
	wait_until is_gone server
}

# A signal is not kept waiting by what prepares a command, nor does it keep from
# clearing up; of no record nothing is told.
case_interrupt_without_record()
{
	local trial

	mkdir temporary
	TMPDIR=$PWD/temporary timeout --foreground 300 "$TRIAL" \
		--prepare='echo $$ >shell; exec sleep 1000' \
		--cleanup='echo done >log' true >out 2>err &
	trial=$!
	wait_until test -s shell
	kill -TERM "$trial"
	expect_status 143 wait "$trial"
	expect_match '^blinktrial: interrupted: before the first trial$' err
	[ "$(cat log)" = "done" ]
	wait_until is_gone shell
	TMPDIR=$PWD/temporary timeout --foreground 300 "$TRIAL" --trials=1000 \
		"sh -c 'echo >>run; sleep 0.1'" >out 2>err &
	trial=$!
	# Two are rehearsals.
	wait_until has_run 4
	kill -INT "$trial"
	expect_status 130 wait "$trial"
	expect_match '^blinktrial: interrupted: after [0-9]+ trials, of which --out' \
		err
	[ -z "$(ls -A temporary)" ]
}

case_shell()
{
	expect_trial 0 --out=record --trials=1 --quiet --shell 'echo a | cat >x; exit 0'
	ask 'arms[0]["command"]["words"][:2] == ["/bin/sh", "-c"]'
	[ "$(cat x)" = a ]
	# shellcheck disable=SC2016 # that shell expands it
	expect_trial 1 --trials=1 -S /bin/bash 'exit 3 | cat; exit "${PIPESTATUS[0]}"'
	expect_match 'ended with status 3$' err
	expect_refused 2 "needs a shell; give --shell$" 'echo a | cat'
}

# Each says in one line what is wrong with the command.
case_bad_commands()
{
	printf 'no program' >text
	chmod +x text
	expect_refused 1 '^false: ended with status 1$' true false
	expect_refused 1 '^sh -c .echo oh >&2; exit 2.: oh$' "sh -c 'echo oh >&2; exit 2'"
	expect_refused 1 '^nosuch: no such program in PATH' nosuch
	expect_refused 1 './nosuch: cannot start: No such file' ./nosuch
	expect_refused 1 './text: cannot start: Exec format error' ./text
	expect_refused 1 '/tmp: ' /tmp
	# shellcheck disable=SC2016 # its shell ends itself
	expect_refused 1 '^kill -9 ..: killed by SIGKILL$' 'kill -9 $$' --shell
	expect_refused 2 'is empty$' ''
	expect_trial 0 --trials=3 -i false true --out=record
	expect_match '^  1 again: 3 of 3 runs ended with another status than 0' out
	expect_status 0 "$REPORT" record >shown
	expect_match '^  as-is, false: 3 of 3 trials ended with another status' shown
}

# It prints more than memory or a disk should hold, waits for words from the
# terminal, goes elsewhere, and leaves a process behind.
case_unruly_commands()
{
	local seconds=$((50000 + RANDOM)).$$

	expect_trial 0 --out=record --trials=1 --quiet \
		'head -c 1000000000 /dev/zero' \
		"sh -c 'head -c 100000000 /dev/zero >&2'" cat \
		"sh -c 'cd /; exec true'" "sh -c 'sleep $seconds & true'" \
		"setsid -f sleep $seconds"
	ask '{t["measures"]["left_processes"] for t in trials} == {0, 1}'
	! pgrep -f "^sleep $seconds\$" >/dev/null || fail "a process is left"
	ask '{t["message"] for t in trials if t["measures"]["left_processes"]} ==
	     {"left 1 process, which was ended"}'
	ask 'all(t["whole_ns"] < 100e9 for t in trials)'
}

case_directory_and_files()
{
	local setting

	mkdir a
	echo 1 >a/in
	(
		cd a
		expect_trial 0 --out=../record --trials=2 --quiet \
			--scenario=pagecache --input=in --output=out 'cp in out' \
			'cat in' --stdin=in
	)
	ask 'all(t["scenario_met"] for t in trials)'
	expect_gone a/out
	expect_refused 2 'give --input=FILE' --scenario=pagecache true
	expect_refused 2 'page: no scenario; there are as-is, pagecache, ' \
		--scenario=page true
	expect_refused 2 '^--parameter-step-size: needs --parameter-scan$' -D 2 true
	expect_refused 3 '^.*nosuch: No such file' --input=nosuch true
	expect_refused 2 '^--records: is for trials of blinksort' --records=5 true
	for setting in 'sort.threads 1 | 2' 'ranks.count 1 | 2'; do
		echo "$setting" >settings
		expect_refused 2 "^${setting%% *}: is for trials of blinksort" \
			--sweep=settings true
	done
	expect_refused 2 '^--prepare: needs a command' -p true --scenario=cache \
		--trials=2 --out=x
}

# It goes on where it was interrupted, and nothing lives on.
case_interrupt()
{
	local trial

	# It passes the signal on twice.
	timeout 300 "$TRIAL" --out=record --trials=50 --cleanup='echo done >>log' \
		"sh -c 'echo >here; sleep 0.1'" >out 2>err &
	trial=$!
	wait_until test -s record/trials.jsonl
	kill -INT "$trial"
	expect_status 130 wait "$trial"
	expect_match 'interrupted: [0-9]+ trials are recorded; to go on: .*--resume' err
	[ "$(cat log)" = "done" ]
	python3 - <<-'END'
		import json
		design = json.load(open("record/design.json"))
		assert design["command"][-2:] == [
		    "--", "sh -c 'echo >here; sleep 0.1'"], design["command"]
	END
	expect_refused 2 'the commands: is' --resume --out=record true
	sed -i 's/"trials": 50/"trials": 2/' record/design.json
	sed -i 's/--trials=50/--trials=2/' record/design.json
	head -n 2 record/trials.jsonl >kept
	rm here
	cat kept >record/trials.jsonl
	# From anywhere it goes on where it was begun.
	(cd / && run_trial --resume --out="$OLDPWD/record") >out 2>err ||
		fail "$(cat err)"
	expect_status 0 "$TRIAL" validate record
	ask 'len(trials) == 4'
	[ -e here ]
}

check table case_table
check record case_record
check number_of_trials case_number_of_trials
check hooks case_hooks
check export case_export
check server case_server
check interrupt_without_record case_interrupt_without_record
check shell case_shell
check bad_commands case_bad_commands
check unruly_commands case_unruly_commands
check directory_and_files case_directory_and_files
check interrupt case_interrupt
check stopped case_stopped
finish
