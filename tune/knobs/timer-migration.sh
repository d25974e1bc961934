# timer-migration.sh - timers of idle CPUs that move to busy ones

knob_timer_migration_file=/proc/sys/kernel/timer_migration
knob_timer_migration_range=0-1
knob_timer_migration_values='0 off, 1 on'

knob_timer_migration_explain='
Whether timers set on an idle CPU may move to one that is awake.
It saves power; the CPU that is awake is the one that works, and pays for them.
Source: kernel/time/timer.c, sysctl_timer_migration.'
