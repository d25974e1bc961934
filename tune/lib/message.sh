# message.sh - messages on stderr, and exit statuses
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
#   misuse WHY...      one line, and the program ends with STATUS_USAGE
#   die WHY...         the same with STATUS_FILE: a profile, the state folder or
#                      a device is unusable
#   say WHAT...        prints one line about the progress; not with -q
#   act COMMAND        prints the privileged action that follows; not with -q

# 1 to 5 mean what they mean for the other programs: the run failed or the data
# is not as it should be, usage, a file, a peer, resources.
readonly STATUS_DIFFERS=1
readonly STATUS_FAILED=1
readonly STATUS_USAGE=2
readonly STATUS_FILE=3
readonly STATUS_NODE=4
readonly STATUS_REFUSED=5
readonly STATUS_CONFLICT=6
readonly STATUS_INCOMPLETE=7

misuse()
{
	printf 'blinktune: %s\n' "$*" >&2
	exit $STATUS_USAGE
}

die()
{
	printf 'blinktune: %s\n' "$*" >&2
	exit $STATUS_FILE
}

say()
{
	[[ $QUIET ]] || printf 'blinktune: %s\n' "$*" >&2
}

act()
{
	[[ $QUIET ]] || printf '+ %s\n' "$*" >&2
}
