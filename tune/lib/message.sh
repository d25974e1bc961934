# message.sh - what is said on stderr, and how the program ends
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
#   die WHY...         one line and status 1: usage, a profile, a state folder
#   say WHAT...        one line about what goes on; not with -q
#   act COMMAND        a privileged act that is about to be done; not with -q

# The statuses; they differ from those of the other programs, since verify and
# conflicts must be told apart.
readonly STATUS_USAGE=1
readonly STATUS_DIFFERS=2
readonly STATUS_CONFLICT=3
readonly STATUS_REFUSED=4
readonly STATUS_INCOMPLETE=5
readonly STATUS_NODE=6

die()
{
	printf 'blinktune: %s\n' "$*" >&2
	exit $STATUS_USAGE
}

say()
{
	[[ $QUIET ]] || printf 'blinktune: %s\n' "$*" >&2
}

act()
{
	[[ $QUIET ]] || printf '+ %s\n' "$*" >&2
}
