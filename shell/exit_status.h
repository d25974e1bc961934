/*
 * exit_status.h - turn the ends of jobs into the exit status of blinksh
 *
 * The statuses of nodes are never mixed: the worst one wins.  A lost node is
 * worse than a refused command, that is worse than a time-out, and that is
 * worse than a failure of the command; of several failures the highest status
 * wins. A command that itself ends with 127 is a failure of the command.
 */
#ifndef EXIT_STATUS_H
#define EXIT_STATUS_H

#include "shell/wire.h"

enum exit_status_class {
	EXIT_STATUS_OK,
	EXIT_STATUS_APPLICATION, /* the command's status, or 128 + signal */
	EXIT_STATUS_TIMEOUT,
	EXIT_STATUS_REFUSED,
	/* The node is silent, the lease expired there, or the daemon does not
	 * know the job, or has forgotten its end. */
	EXIT_STATUS_LOST,
};

struct node_exit {
	enum exit_status_class class;
	int status;
};

struct node_exit exit_status_of(enum wire_job_state state, int code);
struct node_exit exit_status_worst(struct node_exit a, struct node_exit b);

/* Returns "exited", "killed", "timed out", ...; "lost" for UNKNOWN. */
const char *exit_status_state_name(enum wire_job_state state);

#endif /* EXIT_STATUS_H */
