/*
 * event_counters.h - count events of the processor, or of the kernel, in the
 * programs that this process starts
 *
 * perf_event_open(2) opens an event on this process, where it counts nothing:
 * it is inherited by each process that is started later, and begins when that
 * executes a program.  So neither this process counts nor what it costs to
 * start another; and no system call is needed between the start of a program
 * and its end.
 *
 * A processor has only a few counters.  Where several users share one, each has
 * it for part of the time, and what the kernel tells then is an estimate, which
 * event_counters_read() does not return.
 */
#ifndef EVENT_COUNTERS_H
#define EVENT_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define EVENT_COUNTERS_MAX 8
#define EVENT_COUNTERS_UNKNOWN UINT64_MAX
#define EVENT_COUNTERS_NAMES                                                   \
	"instructions, cycles, cache_misses, branch_misses, page_faults or "   \
	"task_clock_ns"

struct event_counters {
	unsigned count;
	const char *names[EVENT_COUNTERS_MAX];
	/* The rest is filled by event_counters_open(). */
	int fds[EVENT_COUNTERS_MAX]; /* -1: the kernel has refused it */
	int error; /* an errno value: why the first that it has refused; or 0 */
	/* The kernel lets us count in user space only. */
	bool user_only;
	/* A count was an estimate. */
	bool shared;
};

/* Add an event by its name, one of EVENT_COUNTERS_NAMES in length bytes.
 * Returns false if there is none of that name, or it was added before. */
bool event_counters_add(struct event_counters *counters, const char *name,
			unsigned length);

/* Open as many as the kernel lets us. */
void event_counters_open(struct event_counters *counters);

/* The count of one in all programs that have ended, or EVENT_COUNTERS_UNKNOWN.
 */
uint64_t event_counters_read(struct event_counters *counters, unsigned i);

/* Why a count is unknown; NULL: none is. */
const char *event_counters_explain(const struct event_counters *counters);

#endif /* EVENT_COUNTERS_H */
