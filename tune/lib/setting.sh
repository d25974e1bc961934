# setting.sh - a setting that is one file
#
#   setting_supported PATH             0; or 1 with SUPPORT and WHY
#   setting_goal VALUE LOW HIGH        VALUE, if it is a number from LOW to HIGH;
#                                      or 1 with WHY
#   setting_refuse VALUE WHAT          1, and WHY: it is not WHAT
#
# A wanted value is checked when the plan is made, before anything is changed.  An
# original is not checked, since the kernel has shown it.

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

setting_goal()
{
	VALUE=$1
	number_is "$1" "$2" "$3" || setting_refuse "$1" "$2 to $3"
}

setting_refuse()
{
	WHY="'$1': Invalid argument: not $2"
	return 1
}
