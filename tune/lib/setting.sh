# setting.sh - a setting that is one file
#
#   setting_needs PATH WHY             0; or 1 with SUPPORT=unsupported and WHY: it
#                                      is not there
#   setting_may PATH WHY               0; or 1 with SUPPORT=denied and WHY: this
#                                      user may not write it
#   setting_supported PATH             both, of one file
#   setting_goal VALUE LOW HIGH        0 if it is a number from LOW to HIGH;
#                                      or 1 with WHY
#   setting_refuse VALUE WHAT          1, and WHY: it is not WHAT
#   setting_lacks WHY                  1, and SUPPORT=unsupported
#
# A wanted value is checked when the plan is made, before anything is changed.  An
# original is not checked, since the kernel has shown it.

setting_needs()
{
	file_exists "$1" || setting_lacks "$2"
}

setting_may()
{
	file_writable "$1" && return 0
	SUPPORT=denied WHY=$2
	return 1
}

setting_supported()
{
	setting_needs "$1" "no $1" &&
		setting_may "$1" "$1: not writable by this user"
}

setting_goal()
{
	number_is "$1" "$2" "$3" || setting_refuse "$1" "$2 to $3"
}

setting_refuse()
{
	why_not "'$1': Invalid argument: not $2"
}

setting_lacks()
{
	SUPPORT=unsupported
	why_not "$1"
}
