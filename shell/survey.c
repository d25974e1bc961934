#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "shell/survey.h"

static struct survey *survey_of(struct client *client)
{
	return client->work->context;
}

static void survey_send(struct client *client, struct client_node *node)
{
	struct survey *survey = survey_of(client);
	struct wire_job_request request;

	survey->nodes[node->rank].sent_ns = clock_now_ns();
	if (survey->kind != SURVEY_CANCEL) {
		client_send(client, node, WIRE_STATUS, NULL, 0,
			    WIRE_SHORT_BYTES);
		return;
	}
	memcpy(request.job, survey->job, WIRE_JOB_BYTES);
	client_send(client, node, WIRE_CANCEL, &request, sizeof(request),
		    WIRE_SHORT_BYTES);
}

/* Whether that was the answer. */
static bool take_job(struct survey *survey, struct survey_node *answer,
		     const struct command *command)
{
	struct wire_job job;

	memcpy(&job, command->body, sizeof(job));
	if (memcmp(job.job, survey->job, WIRE_JOB_BYTES) != 0)
		return false;
	answer->job_state = (enum wire_job_state)le32_load(job.state);
	return answer->job_state != WIRE_JOB_RUNNING;
}

static void survey_reply(struct client *client, struct client_node *node,
			 const struct command *command)
{
	struct survey *survey = survey_of(client);
	struct survey_node *answer = &survey->nodes[node->rank];

	answer->round_trip_ns = clock_now_ns() - answer->sent_ns;
	if (command->type == WIRE_NODE) {
		memcpy(&answer->status, command->body, sizeof(answer->status));
	} else if (!take_job(survey, answer, command)) {
		client_pause(client, node, CLIENT_RETRY_NS);
		return;
	}
	answer->answered = true;
	client_end(client, node);
}

static void survey_lost(struct client *client, struct client_node *node)
{
	(void)client;
	(void)node;
}

int survey_run(struct survey *survey)
{
	const struct client_work work = {
		.send = survey_send,
		.reply = survey_reply,
		.lost = survey_lost,
		.context = survey,
	};
	struct client *client = survey->client;
	int ret;

	for (uint32_t i = 0; i < client->node_count; i++)
		client_begin(client, &client->nodes[i]);
	ret = client_run(client, &work);
	client->work = NULL;
	return ret;
}
