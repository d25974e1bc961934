# numa-balancing.sh - pages that follow the CPU that uses them
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables

# shellcheck source=tune/lib/setting.sh
. "$TUNE/lib/setting.sh"

knob_numa_balancing_lifetime=boot
knob_numa_balancing_risk=none
knob_numa_balancing_order=50

numa_balancing_file=/proc/sys/kernel/numa_balancing

knob_numa_balancing_targets()
{
	TARGETS=(-)
}

knob_numa_balancing_supported()
{
	setting_supported $numa_balancing_file
}

knob_numa_balancing_get()
{
	file_read $numa_balancing_file
}

knob_numa_balancing_goal()
{
	setting_goal "$3" 0 3
}

knob_numa_balancing_set()
{
	file_write $numa_balancing_file "$2"
}

knob_numa_balancing_values()
{
	VALUES='0 off, 1 on, 2 memory tiers only, 3 both'
}

knob_numa_balancing_act()
{
	ACT="echo $2 >$numa_balancing_file"
}

knob_numa_balancing_explain()
{
	EXPLAIN='Whether the kernel unmaps pages now and then, to see by the
faults which CPU uses them and move them to its node.  The faults and the
copies come at times of their own; a program that places its memory itself
gains nothing.  Source: Documentation/admin-guide/sysctl/kernel.rst.'
}
