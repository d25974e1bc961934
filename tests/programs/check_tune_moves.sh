#!/bin/bash
# check_tune_moves.sh - settings that move others, and undoing both
#
# On recorded trees whose tools are wrapped: a service that needs another stops
# with it; a driver that sets itself up anew forgets its queue length.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

readonly MACHINES=$REPO/tests/data/machines
readonly QUEUE=tree/sys/class/net/eno1/tx_queue_len

# machine NAME: as ./tree, and as it is to be again as ./want
machine()
{
	rm -rf tree want state
	cp -R "$MACHINES/$1" tree
	put tree/proc/sys/kernel/random/boot_id \
		'11111111-2222-3333-4444-555555555555\n'
}

# wrap TOOL: the script on stdin runs before it; $REAL is the tool.
wrap()
{
	mv "tree/tools/$1" "tree/tools/$1.real"
	{
		# shellcheck disable=SC2016 # for the script
		printf '%s\n' '#!/bin/bash' 'set -eu' 'REAL=$0.real' \
			'read -r _ _ _ PARENT _ <"/proc/$PPID/stat"'
		cat
		# shellcheck disable=SC2016 # for the script
		echo 'exec "$REAL" "$@"'
	} >"tree/tools/$1"
	chmod +x "tree/tools/$1"
	cp -R tree want
}

expect_back()
{
	diff -r want tree >&2 || fail "${1:-the tree} has changed"
}

# needing_units [COMMAND...]: exim4 runs only as long as cron does; COMMAND runs
# when cron has been stopped.
needing_units()
{
	machine systemd-server
	wrap systemctl <<-END
		if [[ \$* == *' start '*exim4* ]]; then
			"\$REAL" start cron.service
		elif [[ \$* == *' stop '*cron* ]]; then
			"\$REAL" stop cron.service exim4.service
			$*
		fi
	END
}

# forgetful_driver [COMMAND...]: a change of offloads sets the queue length to
# 777; COMMAND runs after it.
forgetful_driver()
{
	machine sata-raid
	wrap ethtool <<-END
		if [[ \$1 == -K ]]; then
			"\$REAL" "\$@"
			echo 777 >"\$BLINKTUNE_ROOT/sys/class/net/eno1/tx_queue_len"
			$*
			exit 0
		fi
	END
}

case_taken_along()
{
	local units=daemons:cron.service=stopped,daemons:exim4.service=stopped

	needing_units :
	"${TUNE[@]}" apply "$units" >out 2>err
	expect_match '^applied +daemons:\{?cron.service,exim4.service.*running -> stopped' out
	! grep -q 'stop exim4' err || fail 'stopped twice'
	tune revert
	expect_back
}

# Killed when one had been stopped and the other had not been looked at
case_taken_along_killed()
{
	local units=daemons:cron.service=stopped,daemons:exim4.service=stopped

	# shellcheck disable=SC2016 # for the script
	needing_units 'kill -KILL $PARENT'
	tune apply "$units" 2>err && fail 'not killed'
	if grep "^exim4.* running " tree/tools/units; then
		fail "still running"
	fi
	tune revert
	expect_back
}

# Whichever is first: what moves is set again, in apply and in revert.
case_moved()
{
	local settings offloads=nic-offloads:eno1='rx-gro-list on'

	forgetful_driver :
	for settings in "tx-queue-length:eno1=500,$offloads" \
		"$offloads,tx-queue-length:eno1=500"; do
		"${TUNE[@]}" apply "$settings" >out 2>/dev/null
		[ "$(cat "$QUEUE")" = 500 ] || fail "$settings: $(cat "$QUEUE")"
		expect_match '^applied +tx-queue-length:eno1: 1000 -> 500' out
		tune verify >out
		"${TUNE[@]}" revert >out 2>/dev/null
		expect_back "$settings"
		expect_match '^reverted +tx-queue-length:eno1: 500 -> 1000' out
		expect_gone state/journal
	done
}

# It was as wanted, and is put back only because something else moved it.
case_moved_though_as_wanted()
{
	local offloads=nic-offloads:eno1='rx-gro-list on'

	forgetful_driver :
	tune apply "tx-queue-length:eno1=1000,$offloads"
	[ "$(cat "$QUEUE")" = 1000 ]
	tune revert
	expect_back
}

# Killed when something had moved that was as wanted, or not yet looked at
case_moved_killed()
{
	local settings offloads=nic-offloads:eno1='rx-gro-list on'

	for settings in "tx-queue-length:eno1=1000,$offloads" \
		"$offloads,tx-queue-length:eno1=500"; do
		# Not when it is put back
		# shellcheck disable=SC2016 # for the script
		forgetful_driver '[[ $* != *" on"* ]] || kill -KILL $PARENT'
		tune apply "$settings" 2>err && fail 'not killed'
		[ "$(cat "$QUEUE")" = 777 ]
		tune revert
		expect_back "$settings"
		expect_gone state/journal
	done
}

# The revert is killed when it has moved something that was back already.
case_moved_revert_killed()
{
	local settings offloads=nic-offloads:eno1='rx-gro-list on'

	for settings in "tx-queue-length:eno1=1000,$offloads" \
		"tx-queue-length:eno1=500,$offloads" \
		"$offloads,tx-queue-length:eno1=500"; do
		# shellcheck disable=SC2016 # for the script
		forgetful_driver \
			'[[ $* == *" on"* || -e tree.killed ]] || {
				touch tree.killed; kill -KILL $PARENT; }'
		rm -f tree.killed
		tune apply "$settings"
		tune revert 2>err && fail 'not killed'
		[ "$(cat "$QUEUE")" = 777 ]
		tune revert
		expect_back "$settings"
		expect_gone state/journal
	done
}

# What a driver turns out not to have is no failure, unless it must be had.
case_unsupported_after_all()
{
	machine sata-raid
	cp -R "$REPO/tune" program
	TUNE[0]=$PWD/program/blinktune
	cat >>program/knobs/swappiness.sh <<-'END'
		knob_swappiness_set() { SUPPORT=unsupported WHY='not here'; return 1; }
	END
	put tree/proc/sys/vm/swappiness '60\n'
	cp -R tree want
	put try.profile 'try swappiness 1\n'
	"${TUNE[@]}" apply ./try.profile >out 2>/dev/null
	expect_match '^unsupported +swappiness' out
	tune revert
	expect_status 5 tune apply swappiness=1 2>err
	expect_gone state/journal
	expect_back
}

# A value that another program has set stays, though it is not the original.
case_theirs()
{
	make_tree tree
	tune apply swappiness=60,numa-balancing=0
	put tree/proc/sys/vm/swappiness 50
	tune revert
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
	expect_gone state/journal
	put tree/proc/sys/vm/swappiness 60
	# Nor if a revert is killed on its way: theirs is noted before.
	tune apply swappiness=60,numa-balancing=0
	put tree/proc/sys/vm/swappiness 50
	cp state/journal good
	killed_at "$(revert_writes_at)" revert || fail 'not killed'
	expect_match '^done	0	reverted	50	' state/journal
	tune revert
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
	put tree/proc/sys/vm/swappiness 60
	expect_tree_restored
}

# revert_writes_at: prints the step of a revert that opens numa_balancing for
# writing; all is as before.
revert_writes_at()
{
	cp -r tree tree.kept
	print_steps revert | awk '/\/numa_balancing$/ && !found++'
	rm -r tree
	mv tree.kept tree
	cp good state/journal
}

# A killed apply has noted what it set: another value is another program's.
case_conflict_after_kill()
{
	make_tree tree
	tune apply swappiness=1,numa-balancing=0
	sed -i '/^complete/d' state/journal
	put tree/proc/sys/vm/swappiness 50
	expect_status 6 tune revert
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
	tune revert --force
	expect_tree_restored
}

# An apply that was killed before its first change has changed nothing.
case_nothing_begun()
{
	make_tree tree
	tune apply swappiness=1,numa-balancing=0
	sed -i '/^\(doing\|done\|complete\)/d' state/journal
	rm -r tree
	make_tree tree
	put tree/proc/sys/vm/swappiness 50
	tune revert
	[ "$(cat tree/proc/sys/vm/swappiness)" = 50 ]
}

check taken_along case_taken_along
check taken_along_killed case_taken_along_killed
check moved case_moved
check moved_though_as_wanted case_moved_though_as_wanted
check moved_killed case_moved_killed
check moved_revert_killed case_moved_revert_killed
check_able trace theirs case_theirs
check unsupported_after_all case_unsupported_after_all
check conflict_after_kill case_conflict_after_kill
check nothing_begun case_nothing_begun
finish
