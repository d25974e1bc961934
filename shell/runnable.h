/*
 * runnable.h - has this machine a CPU for each process that wants one?
 *
 * Where it has, one may do on a CPU what saves time later, or look again and
 * again for what is about to come; where it has not, somebody waits for us.
 * Asking costs 1 us.
 */
#ifndef RUNNABLE_H
#define RUNNABLE_H

#include <stdbool.h>

struct runnable {
	int fd;		    /* /proc/loadavg; -1: cannot be known */
	unsigned cpu_count; /* those that we may run on */
};

/* Never fails. */
void runnable_open(struct runnable *runnable);

/* Now, us included.  False if it cannot be known. */
bool runnable_all_run(const struct runnable *runnable);

void runnable_close(struct runnable *runnable);

#endif /* RUNNABLE_H */
