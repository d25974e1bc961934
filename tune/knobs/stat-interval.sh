# stat-interval.sh - how often each CPU sums up its memory counters

knob_stat_interval_file=/proc/sys/vm/stat_interval
knob_stat_interval_range=1-3600
knob_stat_interval_values='seconds, 1 to 3600'

knob_stat_interval_explain='
The seconds between two rounds in which each CPU adds what it counted
of memory to the sums: a kernel thread that wakes on each CPU that works.
Source: Documentation/admin-guide/sysctl/vm.rst.'
