#!/bin/bash
# check_tune_state.sh - what blinktune finds of an earlier run: its journal, its
# state folder and processes that hold a setting
#
# A journal that was tampered with and a folder that another user could write are
# refused in words before anything is read from them or changed.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

TESTED=(tune) TESTED_AS=blinktune

# of WHAT COMMAND...: when COMMAND fails, the case does, and says of what.
of()
{
	local status

	# Not "... || ...": bash ignores set -e within that.
	set +e
	(
		set -e
		"${@:2}"
	)
	status=$?
	set -e
	[ "$status" = 0 ] || fail "of: $1"
}

# --- journals ----------------------------------------------------------------

# Lines that are added at the end of a good journal.  In the last column, T stands
# for a tab.
added_lines()
{
	cat <<-'END'
		doingT08
		doingT09
		doingT010
		doingT00
		doingT0x1
		doingT-1
		doingT+1
		doingT 1
		doingT1 
		doingT
		doingT2
		doingT99999999999999999999
		doingTa[$(touch ran)]
		doingT1?$(touch ran):0
		doneT08TappliedT1
		doneT0TfrobbedT1
		doneT0TT1
		doneT0Tapplied
		holderT08T5
		holderT-1T5
		holderT0T5
		holderT1T5
		holderT99999999999T5
		holderTT5
		holderT100Tfive
		holderT100T05
		holderTa[$(touch ran)]T5
		deadmanT../selfT5
		deadmanT-9T5
		confirmedTagain
		complete\x41
		doneT0TappliedT\x41
		doneT0TappliedTa\cb
		doneT0TappliedTa\
	END
}

case_added_lines()
{
	local line

	make_tree tree
	tune apply swappiness=1,numa-balancing=0
	cp -r tree kept
	cp state/journal good
	while IFS= read -r line; do
		cp good state/journal
		printf '%s\t.\n' "${line//T/$'\t'}" >>state/journal
		of "$line" expect_refused 3 damaged revert
		of "$line" expect_same good <(head -n -1 state/journal)
	done < <(added_lines)
	cp good state/journal
	tune revert
	expect_tree_restored
}

# sed's commands for the beginning of a journal; its sum is right again then.
edits()
{
	cat <<-'END'
		s/^id\t[^\t]*/id\ta[$(touch ran)].1/
		s/^id\t[^\t]*/id\t08.123456.7/
		s/^id\t[^\t]*/id\t/
		/^id\t/d
		/^id\t/p
		/^boot\t/d
		s/^boot\t[^\t]*/boot\t/
		/^root\t/d
		s/^root\t[^\t]*/root\ttree/
		/^profile\t/d
		s/^profile\t[^\t]*/profile\t/
		/^version\t/d
		s/^entry\t1/entry\t01/
		s/^entry\t1/entry\t2/
		s/^entry\t1/entry\t-1/
		s/^entry\t1/entry\ta[$(touch ran)]/
		s/\tswappiness\t/\t..\/knobs\/swappiness\t/
		s/\tswappiness\t/\tswappiness;touch ran\t/
		s/\tswappiness\t/\t\t/
		s/\tswappiness\t-/\tswappiness\t..\/../
		s/\tswappiness\t-/\tswappiness\t../
		s/\tswappiness\t-/\tswappiness\ta\/b/
		s/\tswappiness\t-/\tswappiness\ta b/
		s/\tswappiness\t-/\tswappiness\t/
		s/\tboot\tnone\t/\tever\tnone\t/
		s/\tboot\tnone\t/\tboot\tsome\t/
		s/\tset\t/\tmust\t/
	END
}

case_edited_beginnings()
{
	local edit verb

	make_tree tree
	tune apply swappiness=1,numa-balancing=0
	cp -r tree kept
	cp state/journal good
	while IFS= read -r edit; do
		sed "$edit" good >state/journal
		! cmp -s good state/journal || fail "no edit: $edit"
		sum_again state/journal
		of "$edit" expect_refused 3 damaged revert
	done < <(edits)
	for verb in status verify confirm 'apply swappiness=1'; do
		# shellcheck disable=SC2086 # words are meant
		of "$verb" expect_refused 3 damaged $verb
	done
	# With the right sum and nothing edited it is taken.
	cp good state/journal
	sum_again state/journal
	expect_same good state/journal
	tune revert
	expect_tree_restored
}

# A variable of the environment that has the name of one of ours is not ours.
case_environment()
{
	make_tree tree
	tune apply swappiness=1
	J_TORN_BYTES=5 tune apply swappiness=1
	tune status >/dev/null
	# shellcheck disable=SC2016 # not to be expanded by us either
	COLUMNS='a[$(touch ran)]' tune status >out
	expect_gone ran
	COLUMNS=08 tune status >out
	tune revert
	expect_tree_restored
}

# Numbers in files of the tree, where the kernel would have written plain ones
case_numbers_of_a_tree()
{
	local number

	# shellcheck disable=SC2016 # not to be expanded by us either
	for number in 'a[$(touch ran)]' 08 0x10 -1 1.5 '' \
		99999999999999999999; do
		of "$number" number_of_a_tree "$number"
	done
}

number_of_a_tree()
{
	local policy=tree/sys/devices/system/cpu/cpufreq/policy0

	rm -rf tree state
	cp -R "$REPO/tests/data/machines/sata-raid" tree
	put tree/sys/block/sda/size "$1\n"
	put "$policy/scaling_min_freq" "$1\n"
	put "$policy/scaling_max_freq" "$1\n"
	put tree/sys/block/md0/md/level "raid0\n"
	put tree/sys/block/md0/md/chunk_size "$1\n"
	tune plan cpu-frequency=1000-2000 >out 2>err
	expect_empty err
	tune plan md-stripe-cache:md0=512 >out 2>err
	expect_empty err
	tune disks plan --data-bytes 1000000 /dev/sda >out 2>err || [ $? = 3 ]
	[ ! -s err ] || expect_match "^blinktune: disks plan: " err
	expect_match 'refused: ' out
	expect_status 5 tune apply cpu-frequency:policy0=1000-2000 >out 2>err
	expect_one_line err
	expect_gone ran
}

# Names of folders become indices of arrays.
case_names_of_a_tree()
{
	local name

	make_tree tree
	# shellcheck disable=SC2016 # not to be expanded by us either
	for name in 'policya[$(touch ran)]' 'policy08' 'policy'; do
		cp -R tree/sys/devices/system/cpu/cpufreq/policy0 \
			"tree/sys/devices/system/cpu/cpufreq/$name"
	done
	# shellcheck disable=SC2016 # not to be expanded by us either
	for name in 7 '7a[$(touch ran)]' 09; do
		put "tree/proc/irq/$name/smp_affinity_list" '0-3\n'
	done
	put tree/proc/irq/default_smp_affinity 'f\n'
	tune plan cpu-governor=performance,irq-affinity=0 >out 2>err
	expect_empty err
	expect_gone ran
	expect_match '^cpu-governor:policy\[0-3\]: ' out
	expect_match '^irq-affinity:default,7: ' out
}

# --- the state folder --------------------------------------------------------

# folder_is COMMAND...: ./here/state of an apply, after COMMAND; ./victim is what
# must not be written through it, ./before what is there.
folder_is()
{
	make_tree tree
	TUNE=("$BLINKTUNE" --root tree --state here/state)
	mkdir -m 755 here
	tune apply numa-balancing=0
	echo precious >victim
	cp -r tree kept
	"$@"
	list_all >before
}

list_all()
{
	find . -name tree -prune -o -name out -prune -o -name err -prune -o \
		-name before -prune -o -name after -prune -o \
		-type f -exec cksum '{}' + -o -printf '%p %m %u %s %l\n' | sort
}

# expect_all_refused WORDS VERB...: by each verb, and nothing there has changed
expect_all_refused()
{
	local words=$1 verb

	shift
	for verb; do
		# shellcheck disable=SC2086 # words are meant
		of "$verb" expect_refused 3 "$words" $verb
	done
	list_all >after
	diff before after >&2
}

# What a user may have done to a folder of its own: a command, and the words that
# refuse it
folders()
{
	cat <<-'END'
		mv here/state real && ln -s ../real here/state|here/state: .*symbolic link
		rm -r here/state && ln -s nowhere here/state|here/state: .*symbolic link
		rm -r here/state && touch here/state|here/state: .*not a folder
		chmod 770 here/state|here/state: .*written by its group or others
		chmod 702 here/state|here/state: .*written by its group or others
		chmod 1777 here/state|here/state: .*written by its group or others
		ln -sf ../../victim here/state/lock|state/lock: .*symbolic link
		ln -sf ../../victim here/state/journal.new|state/journal.new: .*symbolic link
		ln -sf ../../nowhere here/state/journal.new|state/journal.new: .*symbolic link
		cp here/state/journal . && ln -sf ../../journal here/state/journal|state/journal: .*symbolic link
		ln -sf ../../victim here/state/journal.last|state/journal.last: .*symbolic link
		mkdir here/state/journal.new|state/journal.new: .*not a regular file
		rm here/state/lock && mkfifo here/state/lock|state/lock: .*not a regular file
		chmod 620 here/state/journal|state/journal: .*written by its group or others
		chmod 602 here/state/lock|state/lock: .*written by its group or others
		chmod 777 here|here: .*written by its group or others.*sticky
		chmod 775 here|here: .*written by its group or others.*sticky
	END
	[ "$UID" != 0 ] || cat <<-'END'
		chown 65534 here/state|here/state: .*belongs to user 65534
		chown 65534 here/state/journal|state/journal: .*belongs to user 65534
		chown 65534 here/state/lock|state/lock: .*belongs to user 65534
		chown 65534 here|here: .*belongs to user 65534
		mv here real && ln -s real here && chown -h 65534 here|here: .*belongs to user 65534
		mkdir real && chown 65534 real && mv here real/here && ln -s real/here here|real: .*belongs to user 65534
	END
}

case_folders()
{
	local command words number=0

	while IFS='|' read -r command words; do
		number=$((number + 1))
		mkdir "$number"
		of "$command" refused_folder "$number" "$command" "$words"
	done < <(folders)
}

# refused_folder NUMBER COMMAND WORDS: the first by all verbs that would read or
# write the folder, the others by one that reads and those that write
refused_folder()
{
	local verbs=(status revert 'apply swappiness=1')

	[ "$1" != 1 ] || verbs+=(verify confirm 'revert --force'
		'prepare swappiness=1' 'run swappiness=1 -- touch ran'
		'hold swappiness=1')
	cd "$1"
	folder_is eval "$2"
	expect_all_refused "$3" "${verbs[@]}"
}

# What another user can't have made, or can't change, is taken.
good_folders()
{
	cat <<-'END'
		chmod 1777 here
		chmod 755 here/state
		mv here real && ln -s real here
		chmod 644 here/state/*
	END
}

case_good_folders()
{
	local command number=0

	while IFS= read -r command; do
		number=$((number + 1))
		mkdir "$number"
		of "$command" good_folder "$number" "$command"
	done < <(good_folders)
}

good_folder()
{
	cd "$1"
	folder_is eval "$2"
	tune status >out
	tune revert >out
	expect_tree_restored
}

# Nobody else may read what is made, or write it, whatever the mask is.
case_modes()
{
	make_tree tree
	umask 0
	tune apply swappiness=1
	[ "$(stat -c %a state state/journal state/lock | paste -s -d ' ')" = \
		'700 600 600' ] || fail "$(stat -c '%n %a' state state/*)"
	tune revert
	expect_folder state journal.last lock
	[ "$(stat -c %a state/journal.last)" = 600 ]
	# A command has the mask that we were started with.
	[ "$(tune run swappiness=1 -- bash -c umask)" = 0000 ]
	umask 022
	# What a killed apply has left there is not written to, but replaced.
	echo left >state/journal.new
	ln state/journal.new left
	tune apply swappiness=1
	[ "$(cat left)" = left ]
	# What is a folder is not moved into.
	tune revert
	tune apply swappiness=1
	rm state/journal.last
	mkdir state/journal.last
	expect_status 3 tune revert 2>err
	expect_match 'not a regular file' err
	rmdir state/journal.last
	tune revert
	expect_tree_restored
}

# waits_for_lock PID: this blinktune waits for a lock.  /proc/locks does not show
# that in a PID namespace, where the process that took the lock has ended.
waits_for_lock()
{
	pgrep -x -P "$1" flock >/dev/null
}

# What another node of the machine has set for a while is not taken for the
# original: apply reads it when the other is done.
case_two_folders()
{
	local fd pid

	make_tree tree
	exec {fd}<tree
	flock "$fd"
	put tree/proc/sys/vm/swappiness '10'
	"${TUNE[@]}" -q --state other apply swappiness=1 {fd}>&- &
	pid=$!
	wait_until waits_for_lock "$pid"
	put tree/proc/sys/vm/swappiness '60'
	flock -u "$fd"
	wait "$pid"
	# It keeps nobody waiting while its values are set; revert waits, too.
	flock "$fd"
	"${TUNE[@]}" -q --state other revert {fd}>&- &
	pid=$!
	wait_until waits_for_lock "$pid"
	[ "$(cat tree/proc/sys/vm/swappiness)" = 1 ]
	flock -u "$fd"
	wait "$pid"
	expect_tree_restored
}

# as NUMBER COMMAND...: as that user
as()
{
	local user=$1

	shift
	setpriv --reuid="$user" --regid="$user" --clear-groups -- "$@"
}

# Two users, neither of them root: what one has prepared the other refuses, and
# what is root's it may read.
case_two_users()
{
	local verb

	open_program
	make_tree tree
	chown -R 65533 tree
	mkdir -m 1777 shared
	as 65534 mkdir -m 755 shared/theirs
	as 65534 ln -s "$PWD/shared/theirs" shared/link
	for verb in 'apply swappiness=1' status revert; do
		# shellcheck disable=SC2086 # words are meant
		expect_status 3 as 65533 "$PROGRAM" -q --root tree \
			--state shared/theirs $verb >out 2>err
		expect_match 'theirs: .*belongs to user 65534' err
		# shellcheck disable=SC2086 # words are meant
		expect_status 3 as 65533 "$PROGRAM" -q --root tree \
			--state shared/link/state $verb >out 2>err
		expect_match 'link: .*belongs to user 65534' err
	done
	expect_folder shared/theirs
	as 65533 "$PROGRAM" -q --root tree --state shared/ours apply swappiness=1
	# Of root, too, it is another user's.
	expect_status 3 "$PROGRAM" -q --root tree --state shared/ours revert 2>err
	expect_match 'ours: .*belongs to user 65533' err
	as 65533 "$PROGRAM" -q --root tree --state shared/ours revert
	tune apply swappiness=1
	chmod 755 state
	chmod 644 state/*
	as 65533 "$PROGRAM" --root tree --state state status >out
	expect_match '^profile ' out
	tune revert
}

# Who may not write the folder is told why.
case_denied()
{
	open_program
	make_tree tree
	mkdir -m 755 owned
	for verb in 'apply swappiness=1' 'run swappiness=1 -- true'; do
		# shellcheck disable=SC2086 # words are meant
		expect_status 3 as 65533 "$PROGRAM" -q --root tree \
			--state owned/state $verb >out 2>err
		expect_one_line err
		expect_match 'owned/state: .*Permission denied.*root' err
		# shellcheck disable=SC2086 # words are meant
		expect_status 3 as 65533 "$PROGRAM" -q --root tree \
			--state owned $verb >out 2>err
		expect_one_line err
		expect_match 'owned: .*Permission denied.*root' err
	done
	mkdir -m 700 closed
	for verb in status revert verify; do
		expect_status 3 as 65533 "$PROGRAM" -q --root tree \
			--state closed "$verb" >out 2>err
		expect_one_line err
		expect_match 'closed: .*Permission denied.*root' err
	done
}

# --- strays -------------------------------------------------------------------

# holder_of STATE: prints the process that its journal names.
holder_of()
{
	sed -n 's/^holder\t\([0-9]*\)\t.*/\1/p' "$1/journal"
}

# Whatever fails, no holder of this case's is left.
end_strays()
{
	local pid

	for pid in $(tune_processes "$PWD"); do
		kill -KILL "$pid" || true
	done
}

# stray: ./tree with a holder, $pid, that no journal knows
stray()
{
	make_tree tree
	at_end end_strays
	tune apply c-states=3
	pid=$(holder_of state)
	# It takes its name when apply has ended.
	until grep -q '^blinktune-holder' "/proc/$pid/cmdline"; do
		sleep 0.01
	done
	find state -type f ! -name lock -delete
	cp -r tree kept
}

case_stray_is_refused()
{
	local pid verb

	stray
	for verb in 'apply swappiness=1' 'apply c-states=3' \
		'prepare swappiness=1' 'run swappiness=1 -- touch ran' \
		'hold swappiness=1'; do
		# shellcheck disable=SC2086 # words are meant
		of "$verb" expect_refused 3 \
			"process $pid: .*c-states=3.*revert --holder $pid" $verb
		expect_gone state/journal
	done
	# It is about this tree.
	make_tree other
	tune --root other --state other.state apply swappiness=1
	tune --root other --state other.state revert
}

case_stray_is_shown()
{
	local pid

	stray
	tune status >out
	expect_match 'nothing is applied' out
	expect_match "^process $pid: it holds c-states=3, " out
	tune --json status >out
	ask out "[(h['pid'], h['holds'], h['known']) for h in d['holders']] \
		== [($pid, 'c-states=3', False)]"
	expect_status 1 tune verify swappiness=60 >out
	expect_match "^process $pid: it holds c-states=3, " out
	expect_status 1 tune --json verify swappiness=60 >out
	ask out "d['holders'][0]['state'] == '$PWD/state' and d['status'] == 1"
	expect_status 7 tune revert >out 2>err
	expect_one_line err
	expect_match "process $pid: .*revert --holder $pid" err
	[ "$(tune_processes "$PWD")" = "$pid" ]
}

# ask FILE EXPRESSION: true of the document, d
ask()
{
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval(sys.argv[2]))' "$1" "$2" || fail "not so: $2: $(cat "$1")"
}

case_stray_is_ended()
{
	local pid other

	stray
	sleep 100 &
	other=$!
	# Only what is one, and by its own number
	for other in "$other" $$ 4194304; do
		expect_status 3 tune revert --holder "$other" 2>err
		expect_one_line err
	done
	for other in 1 0 08 -1 x '' 4194305; do
		expect_status 2 tune revert --holder "$other" 2>err
		expect_one_line err
	done
	kill $!
	[ "$(tune_processes "$PWD")" = "$pid" ]
	"${TUNE[@]}" revert --holder "$pid" 2>err
	expect_match "^\+ kill -KILL $pid\$" err
	[ -z "$(tune_processes "$PWD")" ] || fail 'not ended'
	expect_status 3 tune revert --holder "$pid" 2>err
	tune status >out
	! grep process out || fail 'still shown'
	tune apply swappiness=1
	tune revert
	expect_tree_restored
}

# Another state folder whose journal names its holder is in order.
case_holder_of_another_folder()
{
	local pid

	make_tree tree
	at_end end_strays
	tune --state first apply c-states=3
	pid=$(holder_of first)
	tune --state first status >out
	! grep process out || fail 'its own'
	tune --state first verify >out
	tune --state first verify swappiness=60 >out
	tune apply swappiness=1
	tune verify >out
	expect_match "^process $pid: it holds c-states=3 for .*$PWD/first" out
	tune status >out
	expect_match "^process $pid: " out
	expect_status 3 tune revert --holder "$pid" 2>err
	expect_match "$PWD/first needs it" err
	tune revert
	[ "$(tune_processes "$PWD")" = "$pid" ]
	# The journal elsewhere still names the holder; its path is not known.
	mv first second
	expect_status 3 tune apply swappiness=1 2>err
	expect_match "process $pid: " err
	tune --state second verify >out
	tune --state second revert
	[ -z "$(tune_processes "$PWD")" ] || fail 'not ended'
	expect_tree_restored
}

# What another user has left, or pretends to be, refuses nothing.
case_stray_of_another_user()
{
	local pid tries

	open_program
	make_tree tree
	mkdir theirs
	chown 65533 theirs
	BLINKTUNE_HOLDS=c-states=3 BLINKTUNE_STATE=$PWD/gone \
		BLINKTUNE_ROOT=$PWD/tree setpriv --reuid=65533 --regid=65533 \
		--clear-groups bash -c 'exec -a blinktune-holder sleep 100' &
	pid=$!
	for ((tries = 0; tries < 1000; tries++)); do
		! grep -q blinktune-holder "/proc/$pid/cmdline" || break
		sleep 0.02
	done
	tune status >out
	! grep process out || fail 'shown'
	expect_status 3 tune revert --holder "$pid" 2>err
	tune apply swappiness=1
	tune revert
	# To the user itself it counts.
	expect_status 3 as 65533 "$PROGRAM" -q --root tree --state theirs/state \
		apply swappiness=1 2>err
	kill "$pid"
	expect_tree_restored
}

check added_lines case_added_lines
check edited_beginnings case_edited_beginnings
check environment case_environment
check numbers_of_a_tree case_numbers_of_a_tree
check names_of_a_tree case_names_of_a_tree
check folders case_folders
check good_folders case_good_folders
check modes case_modes
check two_folders case_two_folders
if [ "$UID" != 0 ]; then
	skip two_users "needs root"
	skip denied "needs root"
	skip stray_of_another_user "needs root"
else
	check two_users case_two_users
	check denied case_denied
	check stray_of_another_user case_stray_of_another_user
fi
check stray_is_refused case_stray_is_refused
check stray_is_shown case_stray_is_shown
check stray_is_ended case_stray_is_ended
check holder_of_another_folder case_holder_of_another_folder
finish
