/*
 * launch.h - run one command on every node, and fetch its output
 *
 * Each node gets a START.  When a node has replied that the job runs, it is
 * asked for the state of the job (RENEW) at growing intervals, at least three
 * times a lease.  Output that did not come with the ends of the jobs is fetched
 * when the last node has ended and not before, so that it is not part of the
 * time measured.
 *
 * A START is sent again until it is answered, always with the id of the job, by
 * which the daemon knows that it has started the job.  It is not sent to a
 * daemon that was restarted since: the one before may have started the job,
 * which has ended then.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "shell/client.h"
#include "shell/job.h"

enum launch_phase {
	LAUNCH_STARTING,
	LAUNCH_RUNNING,
	LAUNCH_CANCELLING,
	LAUNCH_ENDED,
	LAUNCH_FETCHING,
};

/* The output of a job to one stream, as far as the daemon keeps it. */
struct launch_stream {
	uint64_t total_bytes;
	uint32_t kept_bytes;  /* the last ones, at most JOB_OUTPUT_BYTES */
	uint8_t *bytes;	      /* JOB_OUTPUT_BYTES + a NUL; kept_bytes count */
	bool complete;	      /* they are all here; true after launch_run() */
	uint32_t fetch_bytes; /* of them did not come with the end: the first */
	uint64_t asked;	      /* bit i: part i is under way or here */
	uint64_t got;	      /* bit i: part i is here */
};

struct launch_node {
	enum launch_phase phase;
	bool start_sent;
	uint32_t start_restarts; /* the node's, when START was sent first */
	bool cancelled;		 /* we sent CANCEL before the job had ended */
	/* The end of the job.  UNKNOWN: the node is lost, or its daemon does
	 * not know the job; FORGOTTEN: the daemon knows that it ended, not how.
	 */
	enum wire_job_state state;
	int code; /* exit status, signal or errno, as in wire.h */
	uint64_t elapsed_ns, user_ns, system_ns, max_rss_bytes;
	uint64_t start_ns, end_ns; /* our clock: START sent, end received */
	uint64_t ask_ns;	   /* the time between two RENEWs */
	struct launch_stream streams[2]; /* stdout, stderr */
};

struct launch_options {
	char *const *arguments; /* the first is an absolute path */
	uint32_t argument_count;
	uint32_t lease_ms;
	uint32_t timeout_ms; /* 0: none */
	bool kill_on_fail;
	/* Standard error is a terminal, for lines of progress (job_progress.h):
	 * they are drawn there, and dropped from the streams. */
	bool shows_progress;
};

struct launch {
	struct client *client;
	struct launch_options options;
	uint8_t job[WIRE_JOB_BYTES];
	struct launch_node *nodes; /* client->node_count of them */
	uint8_t *output;	   /* the bytes of all streams */
	/* The parts of START: the fields, the arguments and the list of hosts.
	 */
	uint8_t body[WIRE_LONG_BODY_BYTES];
	size_t body_bytes; /* without the host of the node */
	bool cancelled;	   /* a node failed, or a signal came */
	uint64_t whole_ns; /* from the first datagram to the last end */
};

/* True if the node's daemon was restarted since the START was sent. */
bool launch_met_restart(const struct launch_node *state,
			const struct client_node *node);

/* Packs the command.  0 or -errno with *failure filled: it may be too long. */
int launch_init(struct launch *launch, struct client *client,
		const struct launch_options *options, struct failure *failure);
void launch_fini(struct launch *launch);

/* Draws the id of a new job, which launch_run() will start.  0 or -errno. */
int launch_prepare(struct launch *launch);

/* Runs the job.  Returns 0 when the ends on all nodes are known, lost nodes
 * included; -EINTR or -ETIME when a signal ended it, and some ends may be
 * unknown; or -errno. */
int launch_run(struct launch *launch);

#endif /* LAUNCH_H */
