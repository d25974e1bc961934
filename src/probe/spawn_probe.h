/*
 * spawn_probe.h - what starting a program and waiting for its end costs
 *
 * By posix_spawn(3), which copies nothing of the one that starts, and wait4(2),
 * as a trial is timed: the time of a program that does nothing is what every
 * trial has in it besides the sort.
 */
#ifndef SPAWN_PROBE_H
#define SPAWN_PROBE_H

#include <stdint.h>

#include "base/failure.h"

/* Start argv (argv[0]: a path, no search) so many times; its output goes to
 * /dev/null.  0 or -errno with *failure filled: EXIT_FILE if it can't be
 * started, EXIT_WRONG if it ends with anything but 0. */
int spawn_probe_run(char *const *argv, unsigned rounds, uint64_t *samples_ns,
		    struct failure *failure);

#endif /* SPAWN_PROBE_H */
