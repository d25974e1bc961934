/*
 * environment.h - the environment variables that a job is given
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdint.h>

#include "base/format.h"
#include "shell/start.h"
#include "shell/wire.h"

/* "BLINK_JOB=", the digits of an id and a NUL. */
#define ENVIRONMENT_MARK_BYTES (10 + 2 * WIRE_JOB_BYTES + 1)

struct environment {
	const char *variables[11]; /* for execve(): ended by NULL */
	char rank[16 + FORMAT_U128_BYTES], nodes[16 + FORMAT_U128_BYTES];
	char mark[ENVIRONMENT_MARK_BYTES];
	char host[16 + START_HOST_BYTES_MAX];
	char hosts[16 + START_HOSTS_BYTES_MAX];
};

struct job_start;

/* node_variable is "BLINK_NODE=...", and borrowed.  The variables point into
 * *environment, which must stay where it is. */
void environment_make(struct environment *environment,
		      const struct job_start *start, const char *node_variable);

/* The variable by which processes of this job can be told from others. */
void environment_mark(const uint8_t id[WIRE_JOB_BYTES],
		      char mark[ENVIRONMENT_MARK_BYTES]);

#endif /* ENVIRONMENT_H */
