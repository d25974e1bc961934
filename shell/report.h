/*
 * report.h - what blinksh prints when all nodes have ended
 *
 * Output is bytes: what a command wrote is printed as it was, except for
 * labels.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>

#include "shell/exit_status.h"
#include "shell/launch.h"
#include "shell/query.h"

enum report_mode {
	REPORT_LABELLED, /* "host: line" */
	REPORT_PLAIN,
	REPORT_GATHERED, /* output that hosts have in common once, below them */
	REPORT_JSON,
};

/* The times of all launches, of which --repeat makes many. */
struct report_samples {
	uint64_t *whole_ns;
	uint32_t count;
};

/* Returns the exit status, that of the worst node.  Nodes that were cancelled
 * because of another one do not count. */
int report_status(const struct launch *launch);

/* Prints stdout on stdout and stderr on stderr, or all as JSON. */
void report_output(const struct launch *launch, enum report_mode mode,
		   int status, const struct report_samples *samples);

/* Prints on stderr how nodes have failed, and whose output is cut: one line for
 * all nodes of which the same is to be said. */
void report_failures(const struct launch *launch);

/* Prints one line on stderr. */
void report_times(const struct launch *launch,
		  const struct report_samples *samples);

/* Prints a line for each node: on stdout if it answered, else on stderr. */
void report_query(const struct query *query, bool json);

#endif /* REPORT_H */
