/* query.c - ask every node one question: ping, status, cancel */
#include <string.h>

#include "base/clock.h"
#include "shell/query.h"

static struct query *query_of(struct client *client)
{
	return client->work->context;
}

static void query_send(struct client *client, struct client_node *node)
{
	struct query *query = query_of(client);
	struct wire_job_request request;

	query->nodes[node->rank].sent_ns = clock_now_ns();
	if (query->kind != QUERY_CANCEL) {
		client_send(client, node, WIRE_STATUS, NULL, 0,
			    WIRE_SHORT_BYTES);
		return;
	}
	memcpy(request.job, query->job, WIRE_JOB_BYTES);
	client_send(client, node, WIRE_CANCEL, &request, sizeof(request),
		    WIRE_SHORT_BYTES);
}

/* Returns whether that was the answer. */
static bool take_job(struct query *query, struct query_node *answer,
		     const struct command *command)
{
	struct wire_job job;

	memcpy(&job, command->body, sizeof(job));
	if (memcmp(job.job, query->job, WIRE_JOB_BYTES) != 0)
		return false;
	answer->job_state = (enum wire_job_state)le32_load(job.state);
	return answer->job_state != WIRE_JOB_RUNNING;
}

static void query_reply(struct client *client, struct client_node *node,
			const struct command *command)
{
	struct query *query = query_of(client);
	struct query_node *answer = &query->nodes[node->rank];

	answer->round_trip_ns = clock_now_ns() - answer->sent_ns;
	if (command->type == WIRE_NODE) {
		memcpy(&answer->status, command->body, sizeof(answer->status));
	} else if (!take_job(query, answer, command)) {
		client_pause(client, node, CLIENT_RETRY_NS);
		return;
	}
	answer->answered = true;
	client_end(client, node);
}

int query_run(struct query *query)
{
	const struct client_work work = {
		.send = query_send,
		.reply = query_reply,
		.context = query,
	};
	struct client *client = query->client;
	int ret;

	for (uint32_t i = 0; i < client->node_count; i++)
		client_begin(client, &client->nodes[i]);
	ret = client_run(client, &work);
	client->work = NULL;
	return ret;
}
