/*
 * spawn_probe.h - what starting a program and waiting for its end costs
 *
 * The program is started by posix_spawn(3), which does not copy the parent, and
 * waited for by wait4(2), as in a trial.  So the time of a program that does
 * nothing is the part of every trial that is not the sort.
 */
#ifndef SPAWN_PROBE_H
#define SPAWN_PROBE_H

#include <stdint.h>

#include "base/failure.h"

/* Start argv once for each round (argv[0] is a path; PATH is not searched). The
 * output goes to /dev/null.  Returns 0, or -errno with *failure filled:
 * EXIT_FILE if the program can't be started, EXIT_WRONG if its status is not 0.
 */
int spawn_probe_run(char *const *argv, unsigned rounds, uint64_t *samples_ns,
		    struct failure *failure);

#endif /* SPAWN_PROBE_H */
