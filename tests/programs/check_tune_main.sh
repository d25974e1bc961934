#!/bin/bash
# check_tune_main.sh - blinktune's verbs, over a small tree of files

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

cat >"$SCRATCH/all.profile" <<'END'
# all that the tree has
summary  everything
set cpu-governor performance
  because  frequencies do not move
  source   ours
try transparent-huge-pages:enabled never
set swappiness 1
set numa-balancing 0
set io-scheduler none
set read-ahead 4096
try tx-queue-length 10000
try turbo off
END
readonly ALL=$SCRATCH/all.profile

# expect_one_error STATUS COMMAND...: that status and one line on stderr
expect_one_error()
{
	local want=$1
	shift
	expect_status "$want" "$@" >out 2>err
	expect_one_line err
	expect_match '^blinktune: ' err
}

expect_json()
{
	python3 -m json.tool "$1" >/dev/null
}

# --- planning ----------------------------------------------------------------

case_plan()
{
	make_tree tree
	"${TUNE[@]}" plan "$ALL" >out
	expect_match '^cpu-governor:policy\[0-3\]: schedutil -> performance' out
	expect_match 'performance +\(supported\)$' out
	expect_match '^    because frequencies do not move$' out
	[[ $(tail -n 1 out) == '10 to change, 1 unsupported; apply goes on'* ]] ||
		fail "$(tail -n 1 out)"
	"${TUNE[@]}" -v plan "$ALL" >out
	expect_match '^turbo: .*' out
	expect_match '\(unsupported: ' out
	"${TUNE[@]}" -v plan reference >out
	expect_match '\(source: ' out
	tune -v plan reference >out
	grep -o -E '\((supported|already|denied|unsupported)' out | uniq >order
	[ "$(tail -n 1 order)" = '(unsupported' ]
	[ "$(grep -c unsupported order)" = 1 ] || fail "$(cat out)"
	tune -v plan swappiness=60,numa-balancing=0 >out
	expect_match '^swappiness: 60 .*\(already\)' out
	expect_match '^numa-balancing: 1 -> 0 .*\(supported\)' out
	[ "$(tail -n 1 out)" = '1 to change, 1 already' ]
	tune plan swappiness=60 >out
	[ "$(cat out)" = 'nothing to change, 1 already' ]
	tune plan reference >out
	awk 'length > 80 { print; exit 1 }' out >&2
	expect_gone state
	expect_tree_restored
}

# Lines for what apply would change or fail at only; and with -q no reasons.
case_plan_is_short()
{
	make_tree tree
	cat >short.profile <<-'END'
		try turbo on
		set swappiness 60
		set numa-balancing 0
		  because pages stay
	END
	"${TUNE[@]}" plan ./short.profile >out
	printf '%s\n' 'numa-balancing: 1 -> 0  (supported)' \
		'    because pages stay' \
		'1 to change, 1 already, 1 unsupported; apply goes on without these' >want
	diff want out >&2
	sed -i '/because/d' want
	tune plan ./short.profile >out
	diff want out >&2
	"${TUNE[@]}" -v plan ./short.profile >out
	expect_match '^turbo: \? -> on' out
	expect_match '^swappiness: 60 +\(already\)' out
	# Required, but not to be had
	tune plan turbo=on >out
	expect_match '^turbo: \? -> on' out
	expect_match '^nothing to change, 1 unsupported; apply refuses: 1 of these is' \
		out
}

# apply needs no permission for a value that is there already, and plan says so.
case_plan_denied_already()
{
	local as=()

	make_tree tree
	open_program
	chmod -R go+rX "$SCRATCH"
	[ "$UID" = 0 ] || chmod a-w tree/proc/sys/vm/swappiness
	[ "$UID" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as[@]}" "$PROGRAM" --root "$PWD/tree" --state /nonexistent/state \
		plan swappiness=60 >out
	[ "$(cat out)" = 'nothing to change, 1 already' ] || fail "$(cat out)"
}

# By a user other than root: no file is opened for writing, and none changes.
case_plan_writes_nothing()
{
	local as=()

	make_tree tree
	open_program
	chmod -R go+rX "$SCRATCH"
	[ "$UID" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	strace -f -qq -o "$SCRATCH/plan.log" -e \
		trace=openat,open,creat,truncate,ftruncate,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,chmod,fchmodat,link,symlink,mknod,ioctl \
		"${as[@]}" "$PROGRAM" --root "$PWD/tree" \
		--state /nonexistent/state plan "$ALL" >out
	grep -E 'O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat|trunc|unlink|rename|mkdir|chmod|link\(|mknod|SIOCS' \
		"$SCRATCH/plan.log" |
		grep -v -E '"/dev/(null|tty)"' >writes || true
	expect_empty writes
	[ "$UID" != 0 ] || expect_match 'denied' out
	expect_tree_restored
}

case_later_lines_win()
{
	make_tree tree
	cat >base.profile <<-END
		set swappiness 10
		set cpu-governor performance
		set numa-balancing 0
	END
	cat >top.profile <<-END
		include ./base.profile
		try swappiness 20
		set cpu-governor:policy[23] keep
		set numa-balancing keep
	END
	tune plan ./top.profile >out
	expect_match '^cpu-governor:policy\[0-1\]:' out
	expect_match '^swappiness: 60 -> 20' out
	expect_match '^3 to change$' out
	[ "$(grep -c . out)" = 3 ] || fail "$(cat out)"
}

case_inline_profile()
{
	make_tree tree
	tune plan 'swappiness=5,cpu-governor:policy[02]=performance' >out
	expect_match '^cpu-governor:policy\[0,2\]: ' out
	expect_match '^swappiness: 60 -> 5 ' out
}

case_damaged_profiles()
{
	local text

	make_tree tree
	for text in 'sett swappiness 1' 'set swappines 1' 'set swappiness' \
		'set' '  because alone' 'include nothing-of-that-name' \
		'include ./bad.profile' 'set swappiness: 1' 'set swappiness \001' \
		'set ../knobs/swappiness 1' '\377\376' 'set swappiness [1' \
		'include' 'include ../../etc/passwd'; do
		put bad.profile "$text\n"
		[ "$text" != 'set swappiness [1' ] || continue
		expect_one_error 3 tune plan ./bad.profile
		expect_one_error 3 tune apply ./bad.profile
	done
	for text in '' nothing 'nosuchknob=1' 'swappiness=' ./gone /; do
		expect_one_error 3 tune plan "$text"
	done
	expect_tree_restored
}

# --- applying ----------------------------------------------------------------

case_round_trip()
{
	make_tree tree
	"${TUNE[@]}" apply "$ALL" >out 2>err
	expect_match '^applied +cpu-governor:policy\[0-3\]: schedutil -> performance' out
	expect_match '^unsupported +turbo' out
	expect_match '^\+ echo 1 >/proc/sys/vm/swappiness$' err
	[ "$(cat tree/proc/sys/vm/swappiness)" = 1 ]
	[ "$(cat tree/sys/block/sda/queue/scheduler)" = '[none] mq-deadline ' ]
	tune verify "$ALL" >/dev/null
	tune verify >/dev/null
	tune status >out
	expect_match "^profile +$ALL" out
	expect_match '^state +complete' out
	tune revert >/dev/null
	expect_tree_restored
	tune revert >out
	expect_match 'nothing to revert' out
}

case_quiet()
{
	make_tree tree
	"${TUNE[@]}" -q apply "$ALL" >out 2>err
	expect_empty out
	expect_empty err
	tune revert
}

# Before a change is made it has been told, and the journal knows the original.
case_told_and_written_before()
{
	local line

	make_tree tree
	strace -f -qq -o traced -e trace=openat,write -s 2000 \
		"${TUNE[@]}" apply swappiness=1 2>/dev/null >&2
	sed 's/^[0-9]* *//' traced >log
	line=$(grep -n '^write(1, "+ echo 1 ' log | cut -d: -f1)
	tail -n "+$line" log >after
	expect_match 'openat.*tree/proc/sys/vm/swappiness", O_RDWR' after
	head -n "$line" log >before
	expect_match 'write\(1, ".*entry' before
	if grep -E 'tree/proc/sys/vm/swappiness", O_RDWR' before; then
		fail 'changed before it was told'
	fi
	tune revert
}

case_required_unsupported()
{
	make_tree tree
	expect_status 5 tune apply 'swappiness=1,turbo=off' >out 2>err
	expect_tree_restored
	expect_gone state/journal
}

case_required_denied()
{
	make_tree tree
	chmod 444 tree/proc/sys/kernel/numa_balancing
	expect_status 5 tune apply 'swappiness=1,numa-balancing=0' >out 2>err
	[ "$(cat tree/proc/sys/vm/swappiness)" = 60 ]
	tune plan numa-balancing=0 >out
	expect_match 'change, 1 denied; apply refuses: 1 of these is required$' out
	put p.profile 'try numa-balancing 0\nset swappiness 1\n'
	tune plan ./p.profile >out
	expect_match '^numa-balancing: 1 -> 0' out
	expect_match '^1 to change, 1 denied; apply goes on without these$' out
	tune apply ./p.profile >out 2>err
	tune revert
	# A value that is set already needs no permission.
	tune apply numa-balancing=1
	tune revert
}

# A required knob that fails after others were set rolls all back.
case_rolled_back()
{
	make_tree tree
	# The plan can't know that nothing may stay behind here.
	put p.profile 'set cpu-governor performance\nset mtu 9000\n'
	expect_status 5 env BLINK_JOB=1 "${TUNE[@]}" apply ./p.profile >out 2>err
	expect_match '^reverted +cpu-governor' out
	expect_tree_restored
	expect_gone state/journal
	put p.profile 'try mtu 9000\nset cpu-governor performance\n'
	BLINK_JOB=1 "${TUNE[@]}" apply ./p.profile >out 2>err
	expect_match '^denied +mtu:eth0' out
	tune revert
	expect_tree_restored
}

case_apply_again()
{
	make_tree tree
	tune apply "$ALL"
	echo 77 >tree/proc/sys/vm/swappiness
	"${TUNE[@]}" apply "$ALL" >out 2>/dev/null
	expect_match '^applied +swappiness: 60 -> 1' out
	expect_match '^already +numa-balancing' out
	expect_one_error 3 tune apply swappiness=3
	expect_match "active" err
	expect_one_error 3 tune run "$ALL" -- true
	tune revert
	expect_tree_restored_but_newline
}

# echo above has given swappiness a newline that is not ours to take.
expect_tree_restored_but_newline()
{
	[ "$(cat tree/proc/sys/vm/swappiness)" = 60 ]
	put tree/proc/sys/vm/swappiness 60
	expect_tree_restored
}

case_two_at_once()
{
	local first second one=0 two=0

	make_tree tree
	tune apply "$ALL" >one 2>&1 &
	first=$!
	tune apply swappiness=3 >two 2>&1 &
	second=$!
	wait "$first" || one=$?
	wait "$second" || two=$?
	[ "$one$two" = 03 ] || [ "$one$two" = 30 ] || fail "$one $two"
	tune revert
	expect_tree_restored
}

case_lock()
{
	local lock

	make_tree tree
	mkdir state
	exec {lock}>state/lock
	flock "$lock"
	expect_one_error 3 tune apply swappiness=3
	expect_match 'at work' err
	expect_tree_restored
}

# --- differences and conflicts -----------------------------------------------

case_verify_names_differences()
{
	make_tree tree
	tune apply "$ALL"
	put tree/proc/sys/vm/swappiness 50
	put tree/sys/devices/system/cpu/cpufreq/policy2/scaling_governor 'schedutil\n'
	expect_status 1 tune verify >out
	expect_match '^differs +swappiness: 50, not 1' out
	expect_match '^differs +cpu-governor:policy2: schedutil, not performance' out
	expect_status 1 tune verify "$ALL" >out
	[ "$(grep -c '^differs' out)" = 2 ]
	expect_status 1 tune --json verify >out
	expect_json out
	tune revert --force
	expect_tree_restored
}

case_conflict()
{
	make_tree tree
	tune apply "$ALL"
	put tree/proc/sys/vm/swappiness 50
	expect_status 6 "${TUNE[@]}" revert >out 2>err
	expect_match '^conflict +swappiness: 50, not 60' out
	expect_match 'revert --force' err
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
	[ "$(cat tree/proc/sys/kernel/numa_balancing)" = 1 ]
	# Still so, and still known
	expect_status 6 tune revert 2>err
	tune status >out
	expect_match '\(restored by a revert that had to leave others\)' out
	tune revert --force
	expect_tree_restored
	tune apply "$ALL"
	put tree/proc/sys/vm/swappiness 50
	"${TUNE[@]}" revert --keep >out 2>err
	expect_match '^kept +swappiness: 50, not 60' out
	expect_gone state/journal
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
}

# An interface in another namespace, a disk that is unplugged or a CPU that is
# offline comes back with the value that was set.
case_target_away()
{
	make_tree tree
	tune apply "$ALL"
	mv tree/sys/class/net/eth0 away
	expect_status 7 "${TUNE[@]}" revert >out 2>err
	expect_match '^unsupported +tx-queue-length:eth0: ' out
	expect_match '^blinktune: not all is restored.*revert --keep' err
	[ -f state/journal ]
	[ "$(cat tree/proc/sys/vm/swappiness)" = 60 ]
	mv away tree/sys/class/net/eth0
	tune revert
	expect_gone state/journal
	expect_tree_restored
	tune apply "$ALL"
	rm -r tree/sys/class/net/eth0
	expect_status 7 tune revert 2>err
	tune revert --keep
	expect_gone state/journal
	# One that was never set may go for good.
	make_tree tree
	tune apply swappiness=1,tx-queue-length:eth0=1000
	rm -r tree/sys/class/net/eth0
	tune revert
	expect_gone state/journal
}

# --- a journal that can't be written -------------------------------------------

case_disk_full()
{
	make_tree tree
	mkdir small
	mount -t tmpfs -o size=64k,mode=700 none small
	# shellcheck disable=SC2064 # now
	at_end "umount '$PWD/small'"
	cat /dev/zero >small/fill 2>/dev/null || true
	TUNE=("$BLINKTUNE" --root tree --state small/state)
	expect_one_error 3 tune apply "$ALL"
	expect_match "state: .*: No space left on device" err
	expect_gone small/state/journal.new
	expect_gone small/state/journal
	expect_tree_restored
}

# noting_fails N ARGUMENT...: from the Nth line on that is appended to the journal;
# 0 if there were so many
noting_fails()
{
	local number=$1
	shift

	status=0
	strace -qq -f -o log -P "$PWD/state/journal" -e trace=write \
		-e "inject=write:error=ENOSPC:when=$number+" \
		"${TUNE[@]}" -q "$@" >out 2>err || status=$?
	grep -q INJECTED log
}

case_disk_full_meanwhile()
{
	local number

	make_tree tree
	for ((number = 1; ; number++)); do
		noting_fails "$number" apply swappiness=1,numa-balancing=0 || break
		[ "$status" = 3 ] || fail "apply, line $number: status $status"
		expect_match '^blinktune: .*state/journal: cannot be written: .' err
		! grep -v '^blinktune: ' err >&2 || fail 'not our words'
		expect_gone state/journal
		expect_tree_restored
	done
	[ "$number" -gt 4 ] || fail "apply wrote $number lines only"
	for ((number = 1; ; number++)); do
		tune revert >out
		tune apply swappiness=1,numa-balancing=0
		noting_fails "$number" revert || break
		[ "$status" = 0 ] || fail "revert, line $number: status $status"
		expect_match '^blinktune: .*state/journal: cannot be written: .' err
		expect_gone state/journal
		expect_tree_restored
	done
	[ "$number" -gt 2 ] || fail "revert wrote $number lines only"
}

# --- every failure has its line -------------------------------------------------

# failing_commands: STATUS ARGUMENT..., quiet
failing_commands()
{
	cat <<-'END'
		2 apply
		2 apply --no-such swappiness=1
		2 explain no-such-knob
		2 frobnicate
		2 hold
		2 list more
		2 revert --no-such
		2 run swappiness=1
		2 verify
		3 apply no-such-profile
		3 plan swappiness=
		3 export --tuned swappiness=1 /dev/null/folder
		3 revert --holder 4194304
		5 apply turbo=on
		5 hold turbo=on
		5 run turbo=on -- true
		6 revert
		7 revert
	END
}

case_failures_have_lines()
{
	local want arguments

	while read -r want arguments; do
		rm -rf tree state
		make_tree tree
		case $want in
		6)
			tune apply swappiness=1
			put tree/proc/sys/vm/swappiness 50
			;;
		7)
			tune apply tx-queue-length:eth0=500
			rm -r tree/sys/class/net/eth0
			;;
		esac
		# shellcheck disable=SC2086 # words are meant
		expect_status "$want" tune $arguments >out 2>err </dev/null
		expect_match '^blinktune: ' err || fail "$arguments"
		! grep -v -E '^(blinktune: |[a-z]+ +[a-z-]+[:a-z0-9]*: )' err >&2 ||
			fail "not our words: $arguments"
	done < <(failing_commands)
}

case_other_boot()
{
	make_tree tree
	tune apply "$ALL"
	put tree/proc/sys/kernel/random/boot_id 'another\n'
	tune status >out
	expect_match 'another boot' out
	# Gone with the boot: what is there now is not ours.
	"${TUNE[@]}" revert >out
	expect_one_line out
	expect_match "^profile '.*' was applied before the last boot.*forgotten" out
	expect_gone state/journal
	[ "$(cat tree/proc/sys/vm/swappiness)" = 1 ]
}

# A unit that applies at boot needs no revert first after a power cut, unless a
# device may have kept what was set.
case_apply_after_boot()
{
	make_tree tree
	tune apply swappiness=1
	put tree/proc/sys/kernel/random/boot_id 'another\n'
	put tree/proc/sys/vm/swappiness 60
	tune prepare swappiness=2
	"${TUNE[@]}" apply swappiness=2 >out 2>err
	expect_match "^blinktune: profile 'swappiness=1' was applied before" err
	[ "$(cat tree/proc/sys/vm/swappiness)" = 2 ]
	[ -f state/journal.last ]
	tune revert
	expect_tree_but_boot
	sed -i 's/^entry\t0\tswappiness\t-\tboot/entry\t0\tswappiness\t-\tdevice/
		s/^boot\t[^\t]*/boot\tbefore/' state/journal.last
	sum_again state/journal.last
	mv state/journal.last state/journal
	expect_one_error 3 tune apply swappiness=2
	expect_match 'devices may keep its values: blinktune revert first' err
}

# expect_tree_but_boot: all as make_tree made it, but for the boot's number
expect_tree_but_boot()
{
	put tree/proc/sys/kernel/random/boot_id \
		'11111111-2222-3333-4444-555555555555\n'
	expect_tree_restored
}

case_knob_without_value()
{
	make_tree tree
	expect_one_error 3 tune apply swappiness
	expect_match "is a knob, and needs a value: swappiness=VALUE" err
	expect_one_error 3 tune plan no-such
	expect_match "^blinktune: profile 'no-such': no such profile; see 'blink" err
	expect_one_error 3 tune plan ./no-such
	expect_match 'no such file: ./no-such; see blinktune list$' err
	expect_one_error 2 tune plan
	expect_match '^blinktune: plan: takes one PROFILE; see blinktune list$' err
}

# --- journals ----------------------------------------------------------------

case_damaged_journals()
{
	local lines line

	make_tree tree
	tune apply swappiness=1,numa-balancing=0
	cp -r tree applied
	cp state/journal good
	lines=$(wc -l <good)
	for ((line = 1; line <= lines; line++)); do
		# Its line cut in the middle
		awk -v n="$line" 'NR == n { print substr($0, 1, length($0) / 2); next }
			{ print }' good >state/journal
		expect_one_error 3 tune revert
		expect_match 'damaged|version' err
		# Not there at all, of those that must be
		[ "$line" -le 9 ] || continue
		sed "${line}d" good >state/journal
		expect_one_error 3 tune revert
		# Another digit in it
		sed "${line}y/0123456789/1234567890/" good >state/journal
		! cmp -s good state/journal || continue
		expect_one_error 3 tune revert
	done
	for line in '' 'x' '\0\0\0\n' '\377\n.\n' 'blinktune-journal\t2\t.\n'; do
		put state/journal "$line"
		expect_one_error 3 tune revert
	done
	{
		cat good
		head -c 5000000 /dev/zero | tr '\0' x
	} >state/journal
	expect_one_error 3 tune revert
	head -c 300000 /dev/urandom >state/journal
	expect_one_error 3 tune revert
	diff -r tree applied
	# Only the last line may be torn: then it was being written.
	head -c -3 good >state/journal
	tune revert
	expect_tree_restored
}

case_journal_of_another_tree()
{
	make_tree tree
	make_tree other
	tune apply swappiness=1
	expect_one_error 3 "$BLINKTUNE" -q --root other --state state revert
	tune revert
	expect_tree_restored
}

# --- run and hold ------------------------------------------------------------

case_run()
{
	make_tree tree
	echo "input" | tune run swappiness=1 -- \
		sh -c 'cat tree/proc/sys/vm/swappiness; cat; exit 7' >out ||
		[ $? = 7 ]
	[ "$(cat out)" = 1input ] || fail "$(cat out)"
	expect_tree_restored
	expect_status 2 tune run swappiness=1 -- /nonexistent 2>err
	expect_status 2 tune run swappiness=1 2>err
	expect_status 5 tune run turbo=off -- touch ran 2>err
	expect_gone ran
	expect_tree_restored
}

# The command gets the signal, and then all is put back.
case_run_signals()
{
	local signal pid status

	for signal in HUP TERM; do
		make_tree tree
		rm -f up
		"${TUNE[@]}" -q run swappiness=1 -- sh -c 'trap "exit 9" HUP TERM
			touch up; while :; do sleep 0.05; done' &
		pid=$!
		wait_until test -e up
		kill -"$signal" "$pid"
		status=0
		wait "$pid" || status=$?
		[ "$status" = 9 ] || fail "status $status"
		expect_tree_restored
	done
}

case_run_conflict()
{
	make_tree tree
	expect_status 6 tune run swappiness=1 -- \
		sh -c 'printf 33 >tree/proc/sys/vm/swappiness' 2>err >out
	expect_match '^blinktune: something else has changed settings' err
	[ "$(cat tree/proc/sys/vm/swappiness)" = 33 ]
	tune revert --force
	expect_tree_restored
}

# hold_start: in the background, its input from the pipe ./pipe
hold_start()
{
	make_tree tree
	rm -f pipe held
	mkfifo pipe
	"${TUNE[@]}" -q hold swappiness=1,c-states=3 <pipe >held &
	holder=$!
	exec {pipe}>pipe
	wait_until grep -q held held
	[ "$(cat tree/proc/sys/vm/swappiness)" = 1 ]
}

case_hold()
{
	local holder pipe signal

	hold_start
	exec {pipe}>&-
	wait "$holder"
	expect_tree_restored
	for signal in HUP INT TERM; do
		hold_start
		# Background commands ignore SIGINT.
		[ "$signal" != INT ] || signal=TERM
		kill -"$signal" "$holder"
		wait "$holder" || true
		exec {pipe}>&-
		expect_tree_restored
	done
	# Killed itself, it leaves the journal.
	hold_start
	kill -KILL "$holder"
	wait "$holder" 2>/dev/null || true
	exec {pipe}>&-
	tune revert
	expect_tree_restored
}

# Whoever has the pipe's other end is killed: end of file.
case_hold_parent_killed()
{
	make_tree tree
	cat >parent.py <<-'END'
		import subprocess, sys, time
		hold = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
		                        stdout=subprocess.PIPE, text=True)
		print(hold.stdout.readline(), end="", flush=True)
		time.sleep(1000)
	END
	python3 parent.py "${TUNE[@]}" -q hold swappiness=1 >held &
	wait_until grep -q held held
	kill -KILL $!
	wait $! 2>/dev/null || true
	wait_until test ! -e state/journal
	expect_tree_restored
}

# Nobody reads "held": killed while it was being applied.
case_hold_nobody_listens()
{
	make_tree tree
	{
		tune hold swappiness=1 </dev/null
		echo $? >status
	} | true
	expect_same status <(echo 0)
	expect_gone state/journal
	expect_tree_restored
	# Nor what it does
	"${TUNE[@]}" hold swappiness=1,numa-balancing=0 </dev/null 2>&1 | true
	expect_gone state/journal
	expect_tree_restored
	# The command is as if we were not there.
	tune run swappiness=1 -- sh -c 'trap' >out
	expect_empty out
	tune run swappiness=1 -- grep SigIgn /proc/self/status >out
	grep SigIgn /proc/self/status | expect_same - out
}

# --- the dead-man and the holder ---------------------------------------------

nothing_runs()
{
	[ -z "$(tune_processes "$PWD")" ]
}

case_deadman_undoes()
{
	make_tree tree
	# In a session that ends: it is to outlive it.  And it keeps no pipe of
	# ours open, or this would not end.
	: "$(setsid -w "${TUNE[@]}" apply mtu=9000,swappiness=1 \
		--confirm-within="$patience" 2>&1)"
	[ "$(cat tree/sys/class/net/eth0/mtu)" = 9000 ]
	wait_until grep -q -x 1500 tree/sys/class/net/eth0/mtu
	wait_until nothing_runs
	# A knob that can't cut a connection off stays.
	[ "$(cat tree/proc/sys/vm/swappiness)" = 1 ]
	expect_status 1 tune verify >out
	expect_match 'not confirmed' out
	expect_one_error 3 tune confirm
	tune revert
	expect_tree_restored
}

case_confirm()
{
	make_tree tree
	tune apply --confirm-within "$patience" mtu=9000
	tune status >out
	expect_match 'blinktune confirm' out
	tune confirm >out
	expect_match '^confirmed' out
	[ -z "$(tune_processes "$PWD")" ]
	sleep "$(seconds_of 1300)"
	[ "$(cat tree/sys/class/net/eth0/mtu)" = 9000 ]
	tune revert
	expect_tree_restored
	tune confirm >out
	expect_match '^nothing' out
}

case_revert_ends_deadman()
{
	make_tree tree
	tune apply --confirm-within 1000 mtu=9000
	[ -n "$(tune_processes "$PWD")" ]
	tune revert
	[ -z "$(tune_processes "$PWD")" ] || fail "left: $(tune_processes "$PWD")"
	expect_tree_restored
}

# Neither can stay behind where blinkd would end it.
case_job_of_blinkd()
{
	make_tree tree
	expect_status 5 env BLINK_JOB=1 "${TUNE[@]}" apply mtu=9000 >out 2>err
	expect_match 'blinkd' err
	expect_tree_restored
	BLINK_JOB=1 tune run mtu=9000,c-states=3 -- \
		cat tree/sys/class/net/eth0/mtu >out
	[ "$(cat out)" = 9000 ]
	expect_tree_restored
}

case_holder()
{
	local pid

	make_tree tree
	tune apply c-states=3
	pid=$(sed -n 's/^holder\t\([0-9]*\)\t.*/\1/p' state/journal)
	[ "$(readlink "/proc/$pid/fd/"* | grep -c cpu_dma_latency)" = 1 ]
	tune verify >/dev/null
	kill -KILL "$pid"
	wait_until test ! -e "/proc/$pid/exe"
	expect_status 1 tune verify >out
	expect_match 'no process holds' out
	# Held again by another
	tune apply c-states=3
	tune verify >/dev/null
	tune revert
	[ -z "$(tune_processes "$PWD")" ] || fail "left: $(tune_processes "$PWD")"
	expect_tree_restored
	# One of that number, but not that one: it is not to be killed.
	tune apply swappiness=1
	sleep 100 &
	printf 'holder\t%d\t%d\t.\n' $! 12345 >>state/journal
	tune revert
	kill -0 $!
	kill $!
}

# --- the rest ----------------------------------------------------------------

case_json()
{
	local verb

	make_tree tree
	put 'q".profile' \
		'set swappiness 1\n  because  a "quote", a \\\\ and \303\244 \377\n'
	# shellcheck disable=SC2089 # a quote in a name is meant
	for verb in list 'explain swappiness' 'plan ./q".profile' \
		'apply ./q".profile' verify status confirm revert revert \
		status 'prepare swappiness=1'; do
		# shellcheck disable=SC2086,SC2090 # words are meant
		"${TUNE[@]}" --json $verb >out 2>/dev/null
		expect_json out || fail "$verb: $(cat out)"
		expect_match "\"verb\": \"${verb%% *}\"" out
	done
}

case_usage()
{
	local path verb word

	"$BLINKTUNE" --help >out
	expect_match '^Usage: ' out
	awk 'length > 80 { exit 1 }' out
	expect_same out <("$BLINKTUNE" -h)
	expect_same <("$BLINKTUNE" -V) <("$BLINKTUNE" --version)
	# As the others say it
	for path in "$BIN/blinktune" "$BLINKTUNE"; do
		"$path" --version >out
		"$BIN/blinksort" --version | sed 's/sort/tune/' |
			expect_same - out
	done
	make_tree tree
	expect_one_error 2 "$BLINKTUNE"
	expect_one_error 2 "$BLINKTUNE" frob
	expect_match '^blinktune: frob: no such verb; plan, apply, status and revert' \
		err
	for verb in profile:apply active:status recommend:list off:revert; do
		expect_one_error 2 "$BLINKTUNE" "${verb%:*}"
		expect_match "^blinktune: ${verb%:*}: use ${verb#*:}" err
	done
	expect_one_error 2 "$BLINKTUNE" apply --dry-run swappiness=1
	expect_match '^blinktune: --dry-run: use plan' err
	expect_one_error 2 "$BLINKTUNE" --frob plan x
	expect_match '^blinktune: --frob: no such option; see --help$' err
	expect_one_error 2 "$BLINKTUNE" --root tree apply swappiness=1
	expect_one_error 3 "$BLINKTUNE" --root none --state s plan swappiness=1
	expect_one_error 2 tune plan
	expect_one_error 2 tune plan a b
	expect_match ': plan: takes one PROFILE; see blinktune list$' err
	for verb in plan apply verify hold prepare; do
		expect_one_error 2 tune "$verb" --frob
		expect_match ": $verb: --frob: no such option; see --help\$" err
	done
	expect_one_error 2 tune apply --confirm-within=x swappiness=1
	expect_one_error 2 tune apply --frob swappiness=1
	expect_one_error 2 tune revert --frob
	expect_one_error 2 tune explain nothing
	expect_match ": explain: 'nothing': no such knob; see blinktune list\$" err
	expect_one_error 2 tune status now
	expect_match ': status: now: no argument is expected$' err
	# What a terminal would obey: controls, line ends, reversed text
	for word in $'\n' $'\e' $'\x7f' $'\xc2\x9b' $'\xe2\x80\xae' $'\xe2\x81\xa6'; do
		expect_one_error 2 tune status "ä${word}b"
		expect_match ': status: ä\?b: no argument is expected$' err
	done
	expect_one_error 2 tune verify
	"$BLINKTUNE" list >out
	expect_match '^  swappiness  ' out
	tune explain swappiness >out
	expect_match '^swappiness: 60' out
}

case_export()
{
	tune_export=("$BLINKTUNE" export --tuned)
	"${tune_export[@]}" "$ALL" dir >out
	expect_match '^\[main\]' dir/tuned.conf
	expect_match '^vm.swappiness *= *1$' dir/tuned.conf
	expect_match '^governor *= *performance$' dir/tuned.conf
	python3 -c 'import configparser, sys
c = configparser.ConfigParser(delimiters="=", interpolation=None)
c.read("dir/tuned.conf")
assert c["main"]["summary"] == "everything"'
	"${tune_export[@]}" "$ALL" >out
	cmp out dir/tuned.conf
}

case_all_profiles()
{
	local file

	make_tree tree
	for file in "$REPO"/tune/profiles/*.profile; do
		file=${file##*/}
		tune plan "${file%.profile}" >out || fail "$file"
	done
}

# --- on many nodes -----------------------------------------------------------

# patient_blinktune: it asks nodes that may be slow, or stopped for a while; the
# blinksh beside it is the one that it takes
patient_blinktune()
{
	mkdir patient
	ln -s "$BLINKTUNE" patient/blinktune
	printf '#!/bin/sh\nexec "%s" --lost-after=60 --lease=60 "$@"\n' \
		"$BIN/blinksh" >patient/blinksh
	chmod +x patient/blinksh
	ASKS=$PWD/patient/blinktune
}

ASKS=$BLINKTUNE
cluster_tune()
{
	"$ASKS" -q -w "^$WCOLL" --root "$PWD/tree.%r" \
		--state "$PWD/state.%r" "$@"
}

case_cluster()
{
	local i

	patient_blinktune
	for i in 0 1 2; do make_tree "tree.$i"; done
	cluster_tune apply swappiness=1,numa-balancing=0 >out
	for i in 0 1 2; do
		[ "$(cat "tree.$i/proc/sys/vm/swappiness")" = 1 ]
	done
	cluster_tune verify >out
	(
		key=$BLINK_KEY
		unset BLINK_KEY
		expect_status 4 cluster_tune verify 2>err
		expect_match '^blinksh: --key-file: is missing' err
		cluster_tune --key-file="$key" verify >out
		cluster_tune --key-file "$key" verify >out
	)
	put tree.1/proc/sys/vm/swappiness 8
	expect_status 1 cluster_tune --json verify >out
	expect_json out
	expect_status 6 cluster_tune revert >out
	cluster_tune revert --force >out
	# One can't: none does.
	rm tree.1/proc/sys/kernel/numa_balancing
	expect_status 4 cluster_tune apply swappiness=1,numa-balancing=0 >out 2>err
	for i in 0 1 2; do
		[ "$(cat "tree.$i/proc/sys/vm/swappiness")" = 60 ]
	done
	# One fails: all go back.
	put tree.1/proc/sys/kernel/numa_balancing '1\n'
	put tree.0/sys/class/net/eth0/mtu '9000\n'
	expect_status 4 cluster_tune apply swappiness=1,mtu=9000 >out 2>err
	for i in 0 1 2; do
		[ "$(cat "tree.$i/proc/sys/vm/swappiness")" = 60 ]
		expect_gone "state.$i/journal"
	done
}

# hold_on_nodes SETTING: $pid holds it until descriptor 7 is closed
hold_on_nodes()
{
	local i

	for i in 0 1 2; do
		rm -rf "tree.$i"
		make_tree "tree.$i"
	done
	rm -f end
	mkfifo end
	: >held
	"$ASKS" -w "^$WCOLL" --root "$PWD/tree.%r" --state "$PWD/state.%r" \
		hold "$1" <end >held 2>err &
	pid=$!
	exec 7>end
	wait_until expect_file_has held held
}

expect_file_has()
{
	[[ $(<"$2") == *"$1"* ]]
}

nodes_have()
{
	local i

	for i in 0 1 2; do
		[ "$(<"tree.$i/proc/sys/vm/swappiness")" = "$1" ] || return 1
	done
}

nodes_are_as_before()
{
	nodes_have 60 && [ ! -e state.0/journal ] &&
		[ ! -e state.1/journal ] && [ ! -e state.2/journal ]
}

case_cluster_hold()
{
	local pid

	patient_blinktune
	hold_on_nodes swappiness=1
	nodes_have 1
	exec 7>&-
	wait "$pid"
	nodes_are_as_before
	# A signal, and the end of the client that nobody can wait for.
	hold_on_nodes swappiness=2
	kill -TERM "$pid"
	expect_status 143 wait "$pid"
	nodes_are_as_before
	hold_on_nodes swappiness=3
	nodes_have 3
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	wait_until nodes_are_as_before
	exec 7>&-
	# One can't: none does.
	rm tree.1/proc/sys/kernel/numa_balancing
	expect_status 4 cluster_tune hold swappiness=1,numa-balancing=0 \
		</dev/null >out 2>err
	expect_match 'blinktune: numa-balancing: required, but unsupported' err
	nodes_are_as_before
}

case_cluster_node_lost()
{
	local i

	for i in 0 1 2; do make_tree "tree.$i"; done
	kill -KILL "$(cat "$BLINK_CLUSTER/3.pid")"
	expect_status 4 cluster_tune apply swappiness=1 >out 2>err
	expect_match 'lost' out
	for i in 0 1; do
		[ "$(cat "tree.$i/proc/sys/vm/swappiness")" = 60 ]
	done
}

# These mostly wait: beside the others.  What fails shows in its line.
{
	for name in deadman_undoes confirm; do
		check $name patiently case_$name
	done
	for name in lock damaged_journals hold run_signals; do
		check $name case_$name
	done
} >"$SCRATCH/beside" 2>&1 &
beside=$!
check plan case_plan
check plan_is_short case_plan_is_short
check plan_denied_already case_plan_denied_already
check_able trace plan_writes_nothing case_plan_writes_nothing
check_able trace told_and_written_before case_told_and_written_before
check later_lines_win case_later_lines_win
check inline_profile case_inline_profile
check damaged_profiles case_damaged_profiles
check round_trip case_round_trip
check quiet case_quiet
check required_unsupported case_required_unsupported
check required_denied case_required_denied
check rolled_back case_rolled_back
check apply_again case_apply_again
check two_at_once case_two_at_once
check verify_names_differences case_verify_names_differences
check conflict case_conflict
check target_away case_target_away
check_able mount disk_full case_disk_full
check_able trace disk_full_meanwhile case_disk_full_meanwhile
check failures_have_lines case_failures_have_lines
check other_boot case_other_boot
check apply_after_boot case_apply_after_boot
check knob_without_value case_knob_without_value
check journal_of_another_tree case_journal_of_another_tree
check run case_run
check run_conflict case_run_conflict
check hold_parent_killed case_hold_parent_killed
check hold_nobody_listens case_hold_nobody_listens
check revert_ends_deadman case_revert_ends_deadman
check job_of_blinkd case_job_of_blinkd
check holder case_holder
check json case_json
check usage case_usage
check export case_export
check all_profiles case_all_profiles
if [ -x "$BIN/blinkd" ]; then
	export BLINK_CLUSTER=$SCRATCH/nodes BLINK_PORT=$((17300 + $$ % 4000))
	export BIN
	at_end '"$REPO/tests/cluster" down >/dev/null 2>&1; rm -rf "$SCRATCH"'
	"$REPO/tests/cluster" up 3 -- --allow "$REPO/tune" \
		>"$SCRATCH/env" 2>"$SCRATCH/cluster.log"
	eval "$(cat "$SCRATCH/env")"
	check cluster case_cluster
	check cluster_hold case_cluster_hold
	check cluster_node_lost case_cluster_node_lost
else
	skip cluster "no blinkd"
fi
wait $beside
cat "$SCRATCH/beside"
! grep -q '^FAIL' "$SCRATCH/beside" || checks_failed=1
finish
