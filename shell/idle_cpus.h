/*
 * idle_cpus.h - whether this machine has a CPU for each process that wants one
 *
 * Where it has, a process that expects a datagram soon may look for it again
 * and again rather than sleep; where it has not, that would take the CPU from
 * another process.  To ask the kernel costs 1 us.
 */
#ifndef IDLE_CPUS_H
#define IDLE_CPUS_H

#include <stdbool.h>

struct idle_cpus {
	int fd;		    /* /proc/loadavg; -1: it cannot be known */
	unsigned cpu_count; /* those that we may run on */
};

/* Never fails. */
void idle_cpus_open(struct idle_cpus *idle_cpus);

/* True if at most as many processes as there are CPUs are running or ready to
 * run now, the caller included.  False if it cannot be known. */
bool idle_cpus_available(const struct idle_cpus *idle_cpus);

void idle_cpus_close(struct idle_cpus *idle_cpus);

#endif /* IDLE_CPUS_H */
