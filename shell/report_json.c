/* report_json.c - print one JSON document on stdout: a launch, or a query */
#include <stdio.h>

#include "base/base.h"
#include "base/format.h"
#include "base/json.h"
#include "shell/exit_status.h"
#include "shell/report_json.h"

static void print_stream(const char *name, const struct launch_stream *stream)
{
	char total[32];

	snprintf(total, sizeof(total), "%s_total_bytes", name);
	json_bytes(name, (const char *)stream->bytes, stream->kept_bytes);
	json_number(total, stream->total_bytes);
}

static void print_node(const struct launch *launch, uint32_t rank)
{
	const struct launch_node *node = &launch->nodes[rank];
	bool ran = node->elapsed_ns != 0;

	json_line();
	json_open(NULL, '{');
	json_text("host", launch->client->nodes[rank].host);
	json_number("rank", rank);
	json_text("state", exit_status_state_name(node->state));
	json_number("status",
		    (uint64_t)exit_status_of(node->state, node->code).status);
	json_known("elapsed_ns", ran, node->elapsed_ns);
	json_known("user_ns", ran, node->user_ns);
	json_known("system_ns", ran, node->system_ns);
	json_known("max_rss_bytes", ran, node->max_rss_bytes);
	json_known("round_trip_ns",
		   node->start_sent && node->state != WIRE_JOB_UNKNOWN,
		   node->end_ns - node->start_ns);
	print_stream("stdout", &node->streams[0]);
	print_stream("stderr", &node->streams[1]);
	json_close('}');
}

void report_json(const struct launch *launch, int status,
		 const struct report_samples *samples)
{
	char job[2 * WIRE_JOB_BYTES + 1];

	json_begin("blinksh-run-1");
	json_text("job", format_hex(job, launch->job, WIRE_JOB_BYTES));
	json_number("status", (uint64_t)status);
	json_number("whole_ns", launch->whole_ns);
	json_number("ignored_datagrams", launch->client->ignored);
	json_open("samples_whole_ns", '[');
	for (uint32_t i = 0; i < samples->count; i++)
		json_number(NULL, samples->whole_ns[i]);
	json_close(']');
	json_open("nodes", '[');
	for (uint32_t i = 0; i < launch->client->node_count; i++)
		print_node(launch, i);
	putchar('\n');
	json_close(']');
	json_end();
}

/* --- queries -------------------------------------------------------------- */

static void print_counts(const struct query_node *answer)
{
	const struct wire_node_status *status = &answer->status;
	const struct {
		const char *name;
		struct le64 value;
	} counts[] = {
		{ "uptime_ns", status->uptime_ns },
		{ "jobs_started", status->started },
		{ "jobs_running", status->running },
		{ "refused_length", status->refused_length },
		{ "refused_tag", status->refused_tag },
		{ "refused_fields", status->refused_fields },
		{ "refused_replay", status->refused_replay },
		{ "resident_bytes", status->resident_bytes },
	};

	for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
		json_known(counts[i].name, answer->answered,
			   le64_load(counts[i].value));
}

static const char *job_state_name(const struct query_node *answer)
{
	if (!answer->answered)
		return "lost";
	return answer->job_state == WIRE_JOB_UNKNOWN
		       ? "unknown"
		       : exit_status_state_name(answer->job_state);
}

void report_query_json(const struct query *query)
{
	json_begin("blinksh-query-1");
	json_open("nodes", '[');
	for (uint32_t i = 0; i < query->client->node_count; i++) {
		const struct query_node *answer = &query->nodes[i];

		json_line();
		json_open(NULL, '{');
		json_text("host", query->client->nodes[i].host);
		json_number("rank", i);
		json_bool("answered", answer->answered);
		json_known("round_trip_ns", answer->answered,
			   answer->round_trip_ns);
		if (query->kind == QUERY_CANCEL)
			json_text("job_state", job_state_name(answer));
		if (query->kind == QUERY_STATUS)
			print_counts(answer);
		json_close('}');
	}
	putchar('\n');
	json_close(']');
	json_end();
}
