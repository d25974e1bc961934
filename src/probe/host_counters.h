/*
 * host_counters.h - what the host of a virtual machine takes from it, as far as
 * the kernel tells, and the frequencies of CPUs
 *
 * All are read as any user may.  What is not told is HOST_COUNTERS_UNKNOWN.
 */
#ifndef HOST_COUNTERS_H
#define HOST_COUNTERS_H

#include <stdint.h>

#include "system/topology.h"

#define HOST_COUNTERS_UNKNOWN UINT64_MAX

struct host_counters {
	/* The time since the boot in which the CPU of that number had work, but
	 * the host ran something else.  /proc/stat counts it in ticks of 10 ms.
	 */
	uint64_t steal_ns[TOPOLOGY_CPU_NUMBERS];
	/* Pages that the balloon driver has given to the host since the boot,
	 * and that the host has given back (/proc/vmstat). */
	uint64_t balloon_inflated, balloon_deflated;
	/* MemTotal, from which some hosts take what a balloon holds. */
	uint64_t memory_bytes;
};

void host_counters_read(struct host_counters *counters);

/* The frequency at which the governor runs the CPU now (cpufreq). */
uint64_t host_counters_frequency_khz(unsigned cpu);

#endif /* HOST_COUNTERS_H */
