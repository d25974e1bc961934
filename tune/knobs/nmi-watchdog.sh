# nmi-watchdog.sh - the watch for CPUs that hang

knob_nmi_watchdog_file=/proc/sys/kernel/nmi_watchdog
knob_nmi_watchdog_range=0-1
knob_nmi_watchdog_values='0 off, 1 on'

knob_nmi_watchdog_explain='
Whether a non-maskable interrupt looks every few seconds if a CPU
hangs.  It takes one of the performance counters of each CPU and a moment of its
time.  Source: Documentation/admin-guide/sysctl/kernel.rst.'
