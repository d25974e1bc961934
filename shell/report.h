/*
 * report.h - what blinksh prints when all nodes have ended
 *
 * Output is bytes: whatever a command wrote comes out as it was, labels apart.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>

#include "shell/launch.h"
#include "shell/outcome.h"
#include "shell/survey.h"

enum report_mode {
	REPORT_LABELLED, /* "host: line" */
	REPORT_PLAIN,
	REPORT_GATHERED, /* equal output once, under the list of its hosts */
	REPORT_JSON,
};

/* Of all launches: when --repeat is given, many. */
struct report_samples {
	uint64_t *whole_ns;
	uint32_t count;
};

/* The exit status: of the worst node; nodes that were cancelled because of it
 * do not count. */
int report_status(const struct launch *launch);

/* Commands' stdout to stdout and stderr to stderr; or all as JSON. */
void report_output(const struct launch *launch, enum report_mode mode,
		   int status, const struct report_samples *samples);

/* On stderr: a line for each node that failed or whose output is cut short. */
void report_failures(const struct launch *launch, uint64_t lost_after_ns);

/* On stderr: one line. */
void report_times(const struct launch *launch,
		  const struct report_samples *samples);

/* A line for each node; on stdout those that answered. */
void report_survey(const struct survey *survey, bool json);

/* 32 digits and a NUL */
char *report_job(char text[2 * WIRE_JOB_BYTES + 1],
		 const uint8_t job[WIRE_JOB_BYTES]);

#endif /* REPORT_H */
