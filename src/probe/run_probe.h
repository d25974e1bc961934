/*
 * run_probe.h - run a program once, and measure what it takes with all its
 * descendants
 *
 * Between the two readings of the clock are the start, as posix_spawn(3) does
 * it, and wait4(2): any caller of a program waits for both.  All else is done
 * before or after.  A program that ends at once is started a few times before,
 * since the first start by a new process takes longer than the next.
 *
 * Times, memory, faults and switches are what getrusage(2) tells of all that
 * this process has waited for.  The bytes of block devices are the growth of
 * its /proc/self/io, to which the kernel adds what a process that was waited
 * for has counted.  So this process has to be a new one.  It should be small,
 * too: the kernel counts the image that execve(2) replaces, which is that of
 * this process, towards the peak of the program's memory.
 *
 * This process becomes the subreaper of what it starts: the processes that are
 * still there when the program has ended are killed and counted, and what they
 * have used counts.  A program that a signal stops, as when it reads a terminal
 * in the background, is killed, since nothing would continue it.
 */
#ifndef RUN_PROBE_H
#define RUN_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/failure.h"
#include "probe/event_counters.h"

struct run_probe {
	const char *path; /* of the program; may be relative to directory */
	/* Its words, ended by NULL: the first is the name that it finds. */
	char *const *argv;
	const char *directory;	 /* to run it in; NULL: this one */
	const char *stdout_path; /* the file is replaced */
	uint64_t timeout_ms;	 /* 0: none */
	pid_t parent;		 /* end the program when this one ends; or 0 */
	struct event_counters counters;
};

struct run_figures {
	uint64_t begin_unix_ns;
	uint64_t begin_ns, end_ns; /* of CLOCK_MONOTONIC */
	int wait_status;
	bool timed_out;
	int stopped_by; /* the signal, or 0 */
	struct rusage usage;
	unsigned left_processes;
	/* Each of these may be EVENT_COUNTERS_UNKNOWN. */
	uint64_t read_bytes, written_bytes;
	uint64_t counts[EVENT_COUNTERS_MAX];
};

/* Run it.  Returns 0, however it ended; or -errno with *failure filled
 * (EXIT_FILE): it can't be started. */
int run_probe_run(struct run_probe *probe, struct run_figures *figures,
		  struct failure *failure);

#endif /* RUN_PROBE_H */
