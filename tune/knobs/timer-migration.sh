# timer-migration.sh - timers of idle CPUs that move to busy ones
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_timer_migration_lifetime=boot
knob_timer_migration_risk=none
knob_timer_migration_order=50

timer_migration_file=/proc/sys/kernel/timer_migration

knob_timer_migration_targets()
{
	TARGETS=(-)
}

knob_timer_migration_supported()
{
	setting_supported $timer_migration_file
}

knob_timer_migration_get()
{
	file_read $timer_migration_file
}

knob_timer_migration_goal()
{
	setting_goal "$3" 0 1
}

knob_timer_migration_set()
{
	file_write $timer_migration_file "$2"
}

knob_timer_migration_values()
{
	VALUES='0 off, 1 on'
}

knob_timer_migration_act()
{
	ACT="echo $2 >$timer_migration_file"
}

knob_timer_migration_explain()
{
	EXPLAIN='Whether timers set on an idle CPU may move to one that is awake.
It saves power; the CPU that is awake is the one that works, and pays for them.
Source: kernel/time/timer.c, sysctl_timer_migration.'
}
