/*
 * launch.h - one command on every node: started, kept alive, ended, gathered
 *
 * Each node gets a START; as soon as it says that the job runs it is asked how
 * things are (RENEW) at growing intervals, at least three times a lease.  When
 * the last node has ended, and not before, since that is after what is
 * measured, output that did not come with the ends of the jobs is fetched.
 *
 * A START is sent again until it is answered, with the job's id, by which the
 * daemon knows that it has started it.  It is not sent to a daemon that was
 * restarted since: the one before may have started the job, which has ended
 * then.
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

/* What a stream has written, as far as the daemon keeps it. */
struct launch_stream {
	uint64_t total_bytes;
	uint32_t kept_bytes;  /* the last ones, at most JOB_OUTPUT_BYTES */
	uint8_t *bytes;	      /* JOB_OUTPUT_BYTES + a NUL; kept_bytes count */
	bool complete;	      /* they are all there; so when it has run */
	uint32_t fetch_bytes; /* the first ones of them, that did not come
				 along with the end */
	uint64_t asked;	      /* bit i: part i is under way or there */
	uint64_t got;	      /* bit i: part i is there */
};

struct launch_node {
	enum launch_phase phase;
	bool start_sent;
	uint32_t start_restarts; /* the node's, when START was sent first */
	bool cancelled;		 /* by us, before it ended */
	/* How it ended.  UNKNOWN: lost, or the daemon does not know the job;
	 * FORGOTTEN: the daemon knows that it has ended and not how. */
	enum wire_job_state state;
	int code; /* exit status, signal or errno, as in wire.h */
	uint64_t elapsed_ns, user_ns, system_ns, max_rss_bytes;
	uint64_t start_ns, end_ns;	 /* here: START sent, end heard of */
	uint64_t ask_ns;		 /* between two RENEWs */
	struct launch_stream streams[2]; /* stdout, stderr */
};

struct launch_options {
	char *const *arguments; /* the first is an absolute path */
	uint32_t argument_count;
	uint32_t lease_ms;
	uint32_t timeout_ms; /* 0: none */
	bool kill_on_fail;
};

struct launch {
	struct client *client;
	struct launch_options options;
	uint8_t job[WIRE_JOB_BYTES];
	struct launch_node *nodes;	    /* client's node_count */
	uint8_t *output;		    /* all streams' bytes */
	uint8_t body[WIRE_LONG_BODY_BYTES]; /* START's: fields, arguments and
					       the list of hosts */
	size_t body_bytes;		    /* without the node's host */
	bool cancelled;			    /* by us: a failure or a signal */
	uint64_t whole_ns;		    /* first datagram to last end */
};

/* Was the daemon restarted since its START was sent? */
bool launch_met_restart(const struct launch_node *state,
			const struct client_node *node);

/* 0 or -errno with *failure filled: the command may be too long. */
int launch_init(struct launch *launch, struct client *client,
		const struct launch_options *options, struct failure *failure);
void launch_fini(struct launch *launch);

/* A new job, not started yet.  0 or -errno. */
int launch_prepare(struct launch *launch);

/* Run the job.  0 when all nodes' ends are known (lost ones included), -EINTR
 * or -ETIME when a signal ended it (then some may not be), or -errno. */
int launch_run(struct launch *launch);

#endif /* LAUNCH_H */
