# knob_lib.sh - what the checks of single knobs share
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153 # arguments and results in variables
#
# The knobs are called as blinktune calls them, in the shell of the case.

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

TUNE=$REPO/tune
MACHINES=$REPO/tests/data/machines
ROOT=
# shellcheck source=tune/lib/file.sh
. "$TUNE/lib/file.sh"
# shellcheck source=tune/lib/tool.sh
. "$TUNE/lib/tool.sh"
# shellcheck source=tune/lib/knob.sh
. "$TUNE/lib/knob.sh"

# machine NAME: a copy of that tree, as ROOT
machine()
{
	MACHINE=$MACHINES/$1
	cp -R "$MACHINE" tree
	ROOT=$PWD/tree
}

# read_only FILE: of the tree; what file_writable remembers is forgotten.
read_only()
{
	chmod a-w "$1"
	file_readonly=() file_readonly_known=
}

# expect_restored: the tree is what it was, byte for byte.
expect_restored()
{
	diff -r "$MACHINE" "$ROOT" >&2 || fail "the tree has changed"
}

# expect_targets KNOB NAMES [TARGET...]: in the order of the names
expect_targets()
{
	local knob=$1 names=$2
	shift 2

	knob_load "$knob"
	knob_targets "$knob" "$@"
	[ "${TARGETS[*]}" = "$names" ] ||
		fail "$knob: targets '${TARGETS[*]}', not '$names'"
}

# expect_value KNOB TARGET VALUE
expect_value()
{
	knob_load "$1"
	knob_supported "$1" "$2" || fail "$1 $2: $SUPPORT: $WHY"
	knob_get "$1" "$2" || fail "$1 $2: $WHY"
	[ "$VALUE" = "$3" ] || fail "$1 $2: '$VALUE', not '$3'"
}

# expect_not KNOB TARGET unsupported|denied WHY: one line that matches WHY
expect_not()
{
	knob_load "$1"
	if knob_supported "$1" "$2"; then
		fail "$1 $2: supported"
	fi
	[ "$SUPPORT" = "$3" ] || fail "$1 $2: $SUPPORT, not $3: $WHY"
	expect_why "$1 $2" "$4"
}

# expect_why WHOSE PATTERN
expect_why()
{
	[[ $WHY == *"$2"* && $WHY != *$'\n'* ]] || fail "$1: WHY is '$WHY'"
}

# expect_set_refused KNOB TARGET VALUE WHY: set fails, and the tree is untouched.
expect_set_refused()
{
	knob_load "$1"
	if knob_set "$1" "$2" "$3"; then
		fail "$1 $2: took '$3'"
	fi
	expect_why "$1 $2" "$4"
	expect_restored
}

# expect_unwanted KNOB NIC WANTED WHY: it has no goal.
expect_unwanted()
{
	knob_load "$1"
	knob_get "$1" "$2"
	! knob_goal "$1" "$2" "$VALUE" "$3" || fail "$1: '$3' is '$VALUE'"
	expect_why "$1" "$4"
}

# expect_satisfied KNOB NIC WANTED: it is so already.
expect_satisfied()
{
	local now

	knob_load "$1"
	knob_get "$1" "$2"
	now=$VALUE
	knob_goal "$1" "$2" "$now" "$3" || fail "$1: $3: $WHY"
	[ "$VALUE" = "$now" ] || fail "$1: $3 would be $VALUE"
}

# change KNOB TARGET WANTED: sets it; VALUE is what it reads then.
change()
{
	local goal

	knob_load "$1"
	knob_get "$1" "$2" || fail "$1 $2: $WHY"
	knob_goal "$1" "$2" "$VALUE" "$3" || fail "$1 $2: $WHY"
	goal=$VALUE
	knob_act "$1" "$2" "$goal"
	[ -n "$ACT" ] || fail "$1 $2: no act"
	knob_set "$1" "$2" "$goal" || fail "$1 $2: $WHY"
	knob_get "$1" "$2" || fail "$1 $2: $WHY"
	[ "$VALUE" = "$goal" ] || fail "$1 $2: '$VALUE', not '$goal'"
}

# round_trip KNOB TARGET WANTED [ACT]: there and back, byte for byte
round_trip()
{
	local original

	knob_load "$1"
	knob_get "$1" "$2"
	original=$VALUE
	change "$1" "$2" "$3"
	[ "$VALUE" != "$original" ] || fail "$1 $2: $3 has changed nothing"
	[ $# = 3 ] || [ "$ACT" = "$4" ] || fail "$1 $2: act '$ACT', not '$4'"
	change "$1" "$2" "$original"
	expect_restored
}

# expect_documented KNOB TARGET: a text each, and known traits
expect_documented()
{
	knob_load "$1"
	knob_explain "$1"
	[[ $EXPLAIN == *Source:* ]] || fail "$1: no source"
	[[ $EXPLAIN != *[![:print:][:space:]]* ]] || fail "$1: not plain"
	knob_values "$1" "$2"
	[ -n "$VALUES" ] || fail "$1: no values"
	knob_traits "$1"
	[[ $LIFETIME =~ ^(boot|device|holder)$ ]] || fail "$1: $LIFETIME"
	[[ $RISK =~ ^(none|cutoff|data)$ ]] || fail "$1: $RISK"
	[[ $ORDER =~ ^[0-9][0-9]$ ]] || fail "$1: $ORDER"
}
