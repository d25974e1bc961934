# stat-interval.sh - how often each CPU sums up its memory counters
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_stat_interval_lifetime=boot
knob_stat_interval_risk=none
knob_stat_interval_order=50

stat_interval_file=/proc/sys/vm/stat_interval

knob_stat_interval_targets()
{
	TARGETS=(-)
}

knob_stat_interval_supported()
{
	setting_supported $stat_interval_file
}

knob_stat_interval_get()
{
	file_read $stat_interval_file
}

knob_stat_interval_goal()
{
	setting_goal "$3" 1 3600
}

knob_stat_interval_set()
{
	file_write $stat_interval_file "$2"
}

knob_stat_interval_values()
{
	VALUES='seconds, 1 to 3600'
}

knob_stat_interval_act()
{
	ACT="echo $2 >$stat_interval_file"
}

knob_stat_interval_explain()
{
	EXPLAIN='The seconds between two rounds in which each CPU adds what it counted
of memory to the sums: a kernel thread that wakes on each CPU that works.
Source: Documentation/admin-guide/sysctl/vm.rst.'
}
