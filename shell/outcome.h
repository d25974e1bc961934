/*
 * outcome.h - from how jobs ended to the exit status of blinksh
 *
 * Statuses of nodes are never mixed: the worst one wins, a lost node before a
 * refused command before a time-out before a failure of the command, and of
 * those the highest number.  A command that itself ends with 127 is a failure
 * of the command.
 */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "shell/wire.h"

enum outcome_class {
	OUTCOME_OK,
	OUTCOME_APPLICATION, /* its status, or 128 + signal */
	OUTCOME_TIMEOUT,
	OUTCOME_REFUSED,
	OUTCOME_LOST, /* silent, its lease expired, not known there, or its end
		       * forgotten */
};

struct outcome {
	enum outcome_class class;
	int status;
};

struct outcome outcome_of(enum wire_job_state state, int code);
struct outcome outcome_worst(struct outcome a, struct outcome b);

/* "exited", "killed", "timed out", "lost" */
const char *outcome_name(enum wire_job_state state);

#endif /* OUTCOME_H */
