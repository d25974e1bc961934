/*
 * survey.h - one question to every node: ping, status, cancel
 */
#ifndef SURVEY_H
#define SURVEY_H

#include "shell/client.h"

enum survey_kind {
	SURVEY_PING,
	SURVEY_STATUS,
	SURVEY_CANCEL, /* answered when the job has ended */
};

struct survey_node {
	bool answered;
	uint64_t round_trip_ns; /* the last request's */
	uint64_t sent_ns;
	struct wire_node_status status; /* SURVEY_STATUS and SURVEY_PING */
	enum wire_job_state job_state;	/* SURVEY_CANCEL */
};

struct survey {
	struct client *client;
	enum survey_kind kind;
	uint8_t job[WIRE_JOB_BYTES]; /* SURVEY_CANCEL */
	struct survey_node *nodes;   /* the caller's, one a node, zeroed */
};

/* 0 when all have answered or are lost; -EINTR; or -errno. */
int survey_run(struct survey *survey);

#endif /* SURVEY_H */
