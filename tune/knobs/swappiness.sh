# swappiness.sh - how readily the kernel swaps rather than drop page cache
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_swappiness_lifetime=boot
knob_swappiness_risk=none
knob_swappiness_order=50

swappiness_file=/proc/sys/vm/swappiness

knob_swappiness_targets()
{
	TARGETS=(-)
}

knob_swappiness_supported()
{
	setting_supported $swappiness_file
}

knob_swappiness_get()
{
	file_read $swappiness_file
}

knob_swappiness_goal()
{
	setting_goal "$3" 0 200
}

knob_swappiness_set()
{
	file_write $swappiness_file "$2"
}

knob_swappiness_values()
{
	VALUES='0 to 200 (100 before Linux 5.8)'
}

knob_swappiness_act()
{
	ACT="echo $2 >$swappiness_file"
}

knob_swappiness_explain()
{
	EXPLAIN='How readily the kernel swaps anonymous memory out rather than drop
page cache: 0 not until there is no other way, 100 both alike, 60 by default.
A buffer that was swapped out costs a disk read when it is needed.
Source: Documentation/admin-guide/sysctl/vm.rst.'
}
