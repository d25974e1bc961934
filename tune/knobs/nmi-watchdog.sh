# nmi-watchdog.sh - the watch for CPUs that hang
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_nmi_watchdog_lifetime=boot
knob_nmi_watchdog_risk=none
knob_nmi_watchdog_order=50

nmi_watchdog_file=/proc/sys/kernel/nmi_watchdog

knob_nmi_watchdog_targets()
{
	TARGETS=(-)
}

knob_nmi_watchdog_supported()
{
	setting_supported $nmi_watchdog_file
}

knob_nmi_watchdog_get()
{
	file_read $nmi_watchdog_file
}

knob_nmi_watchdog_goal()
{
	setting_goal "$3" 0 1
}

knob_nmi_watchdog_set()
{
	file_write $nmi_watchdog_file "$2"
}

knob_nmi_watchdog_values()
{
	VALUES='0 off, 1 on'
}

knob_nmi_watchdog_act()
{
	ACT="echo $2 >$nmi_watchdog_file"
}

knob_nmi_watchdog_explain()
{
	EXPLAIN='Whether a non-maskable interrupt looks every few seconds if a CPU
hangs.  It takes one of the performance counters of each CPU and a moment of its
time.  Source: Documentation/admin-guide/sysctl/kernel.rst.'
}
