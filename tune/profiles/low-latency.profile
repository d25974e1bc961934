# Beyond reference: the shortest wake-ups, at any price in heat.  Not for long runs.
summary  as reference, and idle CPUs poll
include  reference

try c-states 0
  because  an idle CPU polls: no waking at all
  source   ours; Documentation/admin-guide/pm/cpuidle.rst

try energy-performance performance
  because  a CPU that chooses its frequency itself chooses speed
  source   ours; Documentation/admin-guide/pm/intel_pstate.rst

try timer-migration 0
  because  no CPU that works gets the timers of those that sleep
  source   ours; kernel/time/timer.c

try irq-affinity:default 0
  because  interrupts that begin from now on go to the first CPU, away from the work on the others
  source   ours; Documentation/core-api/irq/irq-affinity.rst
