/*
 * query.h - ask every node one question: ping, status, cancel
 */
#ifndef QUERY_H
#define QUERY_H

#include "shell/client.h"

enum query_kind {
	QUERY_PING,
	QUERY_STATUS,
	QUERY_CANCEL, /* the answer comes when the job has ended */
};

struct query_node {
	bool answered;
	uint64_t round_trip_ns; /* of the last request */
	uint64_t sent_ns;
	struct wire_node_status status; /* QUERY_STATUS and QUERY_PING */
	enum wire_job_state job_state;	/* QUERY_CANCEL */
};

struct query {
	struct client *client;
	enum query_kind kind;
	uint8_t job[WIRE_JOB_BYTES]; /* QUERY_CANCEL */
	struct query_node *nodes; /* the caller owns them: one a node, zeroed */
};

/* Returns 0 when all nodes have answered or are lost; -EINTR if a signal came;
 * or -errno. */
int query_run(struct query *query);

#endif /* QUERY_H */
