# number.sh - is a text a number, as the kernel and blinktune write them?
#
# bash evaluates what stands in an arithmetic expression or an index: "08" is an
# error there, "010" is 8, and "a[$(COMMAND)]" runs a command.  So each text from
# a journal, a file, a tool, an option or the environment passes through here
# before it is used in one.
#
#   number_is TEXT LOW HIGH   0 if TEXT is a whole decimal number from LOW to
#                             HIGH, without a sign, blanks and leading zeros.
#                             LOW and HIGH are from 0 to 10^18 - 1.

# No number that is read or set here has 19 digits, and bash counts to 2^63.
NUMBER_MAX=999999999999999999

number_is()
{
	# "=~" would take the caller's BASH_REMATCH from it.
	[[ $1 == 0 || ($1 == [1-9]* && $1 != *[!0-9]* && ${#1} -le 18) ]] &&
		(($1 >= $2 && $1 <= $3))
}
