# message.sh - standard output, messages on stderr, and exit statuses
#
#   misuse WHY...      one line, and the program ends with STATUS_USAGE
#   die WHY...         the same with STATUS_FILE: a profile, the state folder or
#                      a device is unusable
#   complain WHY...    the line only: the caller ends the program with a status
#   say WHAT...        prints one line about the progress; not with -q
#   act COMMAND        prints the privileged action that follows; not with -q
#   shorten TEXT       sets SHORT: no word of it is long
#   print FORMAT TEXT...
#                      prints results on stdout.  It always returns 0: what could
#                      not be written is told by message_end
#   message_end        for the end of the program: if it would end with 0, but
#                      something was not printed, it ends with STATUS_FILE

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

# SILENCE is a descriptor for messages that are to be lost.  It is open for reading:
# nothing is opened for writing.
exec {SILENCE}</dev/null
# The reason why something could not be written to stdout; empty: all was
PRINT_WHY=

# shorten TEXT: SHORT, which has each word of it, but of a word of more than 200
# bytes the beginning and the end, cut between characters
shorten()
{
	local rest=$1 word head tail

	SHORT=$1
	((${#rest} > 200)) || return 0
	# Texts of many words are no command lines of people.
	((${#rest} <= 4000)) || rest=${rest::2000}${rest: -2000}
	SHORT=
	while [[ $rest ]]; do
		word=${rest%%[[:space:]]*}
		rest=${rest:${#word}}
		if ((${#word} > 200)); then
			head=${word::99} tail=${word: -99}
			# These bytes are inside of a character in UTF-8.
			while [[ $head == *[$'\x80'-$'\xbf'] ]]; do
				head=${head%?}
			done
			while [[ $tail == [$'\x80'-$'\xbf']* ]]; do
				tail=${tail:1}
			done
			word=${head%[$'\xc0'-$'\xff']}...$tail
		fi
		SHORT+=$word${rest::1}
		rest=${rest:1}
	done
}

# A lost standard error ends nothing, and changes no status.
#
# Words of the command line and of files may hold what a terminal obeys: controls
# (C0, C1), and in UTF-8 ends of lines and reversals of the text's direction.
complain()
{
	local text SHORT

	shorten "$*"
	text=$SHORT
	text=${text//[[:cntrl:]]/?}
	text=${text//$'\xc2'[$'\x80'-$'\x9f']/?}
	text=${text//$'\xe2\x80'[$'\xa8'-$'\xae']/?}
	text=${text//$'\xe2\x81'[$'\xa6'-$'\xa9']/?}
	printf 'blinktune: %s\n' "$text" >&2 || :
}

misuse()
{
	complain "$@"
	exit $STATUS_USAGE
}

die()
{
	complain "$@"
	exit $STATUS_FILE
}

say()
{
	[[ $QUIET ]] || complain "$@"
}

act()
{
	[[ $QUIET ]] || printf '+ %s\n' "$*" >&2 || :
}

print()
{
	local fd

	# shellcheck disable=SC2059 # a format is meant
	[[ ! $PRINT_WHY ]] && ! printf "$@" 2>&"$SILENCE" || return 0
	# The words for it are in what bash says of another try.
	PRINT_WHY='Bad file descriptor'
	{ exec {fd}>&1; } 2>&"$SILENCE" || return 0
	PRINT_WHY=$( { printf '\n' >&"$fd"; } 2>&1) || true
	PRINT_WHY=${PRINT_WHY##*: }
	PRINT_WHY=${PRINT_WHY:-not all could be written}
	# A reader who has left misses nothing.
	[[ $PRINT_WHY != 'Broken pipe' ]] || PRINT_WHY=
	exec {fd}>&-
}

message_end()
{
	local status=$?

	[[ $PRINT_WHY ]] || return 0
	complain "standard output: $PRINT_WHY"
	[[ $status != 0 ]] || exit $STATUS_FILE
}
