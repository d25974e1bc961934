# setting.sh - a setting that is one file
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables
#
#   setting_supported PATH             0; or 1 with SUPPORT and WHY
#   setting_write PATH VALUE LOW HIGH  0; or 1 with WHY
#
# setting_write takes a whole number from LOW to HIGH and refuses the rest in
# the kernel's words: the kernel would as well, but a tree would not.

setting_supported()
{
	if ! file_exists "$1"; then
		SUPPORT=unsupported WHY="no $1"
		return 1
	fi
	if ! file_writable "$1"; then
		SUPPORT=denied WHY="$1: not writable by this user"
		return 1
	fi
}

# setting_is_number VALUE LOW HIGH: written as the kernel would show it?
setting_is_number()
{
	# No number of the kernel's that is set here has 19 digits.
	[[ $1 =~ ^(0|[1-9][0-9]{0,17})$ ]] && (($1 >= $2 && $1 <= $3))
}

setting_write()
{
	if ! setting_is_number "$2" "$3" "$4"; then
		WHY="$1: Invalid argument: not $3 to $4"
		return 1
	fi
	file_write "$1" "$2"
}
