# numa-balancing.sh - pages that follow the CPU that uses them

knob_numa_balancing_file=/proc/sys/kernel/numa_balancing
knob_numa_balancing_range=0-3
knob_numa_balancing_values='0 off, 1 on, 2 memory tiers only, 3 both'

knob_numa_balancing_explain='
Whether the kernel unmaps pages now and then, to see by the
faults which CPU uses them and move them to its node.  The faults and the
copies come at times of their own; a program that places its memory itself
gains nothing.  Source: Documentation/admin-guide/sysctl/kernel.rst.'
