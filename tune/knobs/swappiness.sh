# swappiness.sh - how readily the kernel swaps rather than drop page cache

knob_swappiness_file=/proc/sys/vm/swappiness
knob_swappiness_range=0-200
knob_swappiness_values='0 to 200 (100 before Linux 5.8)'

knob_swappiness_explain='
How readily the kernel swaps anonymous memory out rather than drop
page cache: 0 not until there is no other way, 100 both alike, 60 by default.
A buffer that was swapped out costs a disk read when it is needed.
Source: Documentation/admin-guide/sysctl/vm.rst.'
