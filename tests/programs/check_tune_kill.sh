#!/bin/bash
# check_tune_kill.sh - blinktune killed after every single step
#
# A plain revert must then restore the tree byte for byte.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tune_lib.sh"

cat >"$SCRATCH/few.profile" <<'END'
set cpu-governor:policy0 performance
set transparent-huge-pages:enabled never
set swappiness 1
try mtu 9000
try c-states 3
END

# shortest_steps UNDO ARGUMENT...: into ./steps, those of blinktune in the shortest
# of three runs; a longer one waited more often, as later runs may not.  The
# function UNDO undoes each run.
shortest_steps()
{
	local undo=$1 run
	shift

	for run in 1 2 3; do
		print_steps "$@" >"steps.$run"
		"$undo"
	done
	wc -l steps.[123] | sort -n | awk 'NR == 1 { print $2 }' |
		xargs cat >steps
}

revert_all()
{
	tune revert
}

apply_few()
{
	tune apply "$SCRATCH/few.profile"
}

# attempt "CALL N" apply|revert: 0 if it was killed there; else all is reverted.
attempt()
{
	if [ "$2" = apply ]; then
		! killed_at "$1" apply "$SCRATCH/few.profile" || return 0
	else
		apply_few
		! killed_at "$1" revert || return 0
	fi
	tune revert >out 2>&1
	return 1
}

expect_restored()
{
	diff -r "$SCRATCH/pristine" tree >&2 || fail "after: $*"
	expect_gone state/journal
}

case_apply()
{
	local step killed=0

	make_tree tree
	shortest_steps revert_all apply "$SCRATCH/few.profile"
	while read -r step; do
		! in_three_runs attempt "$step" apply || killed=$((killed + 1))
		tune revert >out 2>&1 || fail "$step: $(cat out)"
		expect_restored "apply killed at $step"
	done <steps
	expect_most_killed "$killed" steps
	expect_tree_restored
}

case_revert()
{
	local step killed=0

	make_tree tree
	apply_few
	shortest_steps apply_few revert
	tune revert
	while read -r step; do
		! in_three_runs attempt "$step" revert || killed=$((killed + 1))
		tune revert >out 2>&1 || fail "$step: $(cat out)"
		expect_restored "revert killed at $step"
	done <steps
	expect_most_killed "$killed" steps
	expect_tree_restored
}

# Killed in apply, killed in the revert after it, and in the one after that
case_again()
{
	local apply revert

	make_tree tree
	for apply in 'write 30' 'write 40' "openat 4 $PWD/state/journal"; do
		for revert in 'write 2' 'write 3' 'write 4'; do
			killed_at "$apply" apply "$SCRATCH/few.profile" || true
			killed_at "$revert" revert || true
			killed_at "$revert" revert || true
			tune revert >out 2>&1 || fail "$(cat out)"
			expect_restored "$apply, $revert"
		done
	done
}

case_nobody_left()
{
	local left

	left=$(tune_processes "$SCRATCH")
	[ -z "$left" ] || fail "still there: $left"
}

make_tree "$SCRATCH/pristine"
if ! cannot trace; then
	# Side by side, as they mostly wait.
	check apply_killed_at_every_step case_apply &
	first=$!
	check revert_killed_at_every_step case_revert
	check killed_again_and_again case_again
	wait $first
	check nobody_is_left case_nobody_left
else
	skip apply_killed_at_every_step "$why"
fi
finish
