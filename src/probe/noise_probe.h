/*
 * noise_probe.h - how much of each CPU others take from a thread that needs it
 *
 * One thread on each CPU of the process's affinity, all at once, does nothing
 * but read CLOCK_MONOTONIC, again and again, for a given time.  Two readings
 * that follow each other are some 20 ns apart.  Where they are further apart
 * than a threshold, the CPU did something else: an interrupt, another thread,
 * a fault of the firmware, another machine on the same host.  That is a gap,
 * and counts with its whole length, as in Linux' osnoise tracer and in
 * sysjitter:
 *
 *      noise of a CPU = sum of its gaps / time that was watched
 *
 * The threshold is 5 us unless told, as osnoise's; sysjitter's is 200 ns.
 * The thread is an ordinary one: on a CPU that it shares with one other busy
 * thread, half the time is lost.  What waits until the probe has ended, such
 * as a thread of lower priority, is not seen, and neither is a CPU that is
 * slower by a neighbour in its core, or in the memory.
 *
 * A CPU is watched from the first reading on.  What keeps its thread from
 * taking it is not counted.
 */
#ifndef NOISE_PROBE_H
#define NOISE_PROBE_H

#include <stdint.h>

#include "base/failure.h"
#include "probe/host_counters.h"
#include "system/topology.h"

/* The histogram counts gaps by length: below 10 us, 100 us, 1 ms, 10 ms, and
 * longer. */
#define NOISE_PROBE_BINS 5
#define NOISE_PROBE_FIRST_BIN_NS 10000

struct noise_probe {
	uint64_t time_ns;      /* of watching, 1 or more */
	uint64_t threshold_ns; /* a gap is longer than this */
};

struct noise_cpu {
	uint64_t watched_ns; /* time_ns or more, by a last gap */
	uint64_t readings;   /* of the clock, 1 or more */
	uint64_t lost_ns;    /* <= watched_ns */
	uint64_t longest_ns; /* 0: no gap */
	uint64_t count;	     /* of gaps */
	uint64_t histogram[NOISE_PROBE_BINS];
};

struct noise_figures {
	struct topology topology; /* the CPUs that were watched */
	struct noise_cpu cpus[TOPOLOGY_CPUS_MAX];
	/* What each clock runs at after the watching, while it is still high */
	uint64_t frequency_khz[TOPOLOGY_CPUS_MAX];
	struct host_counters before, after;
};

/* Watch the CPU that this thread runs on, by readings of now_ns. */
void noise_probe_watch(const struct noise_probe *probe,
		       uint64_t (*now_ns)(void), struct noise_cpu *cpu);

/* Watch all CPUs.  Returns 0, or -errno with *failure filled (EXIT_RESOURCES):
 * also if a thread could not stay on its CPU.  Then threads may be left, and
 * the process has to end. */
int noise_probe_run(const struct noise_probe *probe,
		    struct noise_figures *figures, struct failure *failure);

#endif /* NOISE_PROBE_H */
