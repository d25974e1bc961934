/* report_json.c - print one JSON document on stdout: a launch, or a query */
#include <stdio.h>

#include "base/base.h"
#include "base/format.h"
#include "shell/exit_status.h"
#include "shell/report_json.h"

static void print_u64(const char *name, uint64_t value)
{
	printf(", \"%s\": %llu", name, (unsigned long long)value);
}

static void print_known(const char *name, bool known, uint64_t value)
{
	format_json_number(stdout, name, known, (int64_t)value);
}

static void print_stream(const char *name, const struct launch_stream *stream)
{
	printf(", \"%s\": ", name);
	format_json_bytes(stdout, (const char *)stream->bytes,
			  stream->kept_bytes);
	printf(", \"%s_total_bytes\": %llu", name,
	       (unsigned long long)stream->total_bytes);
}

static void print_node(const struct launch *launch, uint32_t rank)
{
	const struct launch_node *node = &launch->nodes[rank];
	bool ran = node->elapsed_ns != 0;

	printf("%s\n  {\"host\": ", rank == 0 ? "" : ",");
	format_json_string(stdout, launch->client->nodes[rank].host);
	print_u64("rank", rank);
	printf(", \"state\": \"%s\"", exit_status_state_name(node->state));
	print_u64("status",
		  (uint64_t)exit_status_of(node->state, node->code).status);
	print_known("elapsed_ns", ran, node->elapsed_ns);
	print_known("user_ns", ran, node->user_ns);
	print_known("system_ns", ran, node->system_ns);
	print_known("max_rss_bytes", ran, node->max_rss_bytes);
	print_known("round_trip_ns",
		    node->start_sent && node->state != WIRE_JOB_UNKNOWN,
		    node->end_ns - node->start_ns);
	print_stream("stdout", &node->streams[0]);
	print_stream("stderr", &node->streams[1]);
	putchar('}');
}

void report_json(const struct launch *launch, int status,
		 const struct report_samples *samples)
{
	char job[2 * WIRE_JOB_BYTES + 1];

	printf("{\"schema\": \"blinksh-run-1\", \"job\": \"%s\", "
	       "\"status\": %d",
	       format_hex(job, launch->job, WIRE_JOB_BYTES), status);
	print_u64("whole_ns", launch->whole_ns);
	print_u64("ignored_datagrams", launch->client->ignored);
	fputs(", \"samples_whole_ns\": [", stdout);
	for (uint32_t i = 0; i < samples->count; i++)
		printf("%s%llu", i == 0 ? "" : ", ",
		       (unsigned long long)samples->whole_ns[i]);
	fputs("], \"nodes\": [", stdout);
	for (uint32_t i = 0; i < launch->client->node_count; i++)
		print_node(launch, i);
	puts("\n]}");
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
		print_known(counts[i].name, answer->answered,
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
	fputs("{\"schema\": \"blinksh-query-1\", \"nodes\": [", stdout);
	for (uint32_t i = 0; i < query->client->node_count; i++) {
		const struct query_node *answer = &query->nodes[i];

		printf("%s\n  {\"host\": ", i == 0 ? "" : ",");
		format_json_string(stdout, query->client->nodes[i].host);
		print_u64("rank", i);
		printf(", \"answered\": %s",
		       answer->answered ? "true" : "false");
		print_known("round_trip_ns", answer->answered,
			    answer->round_trip_ns);
		if (query->kind == QUERY_CANCEL)
			printf(", \"job_state\": \"%s\"",
			       job_state_name(answer));
		if (query->kind == QUERY_STATUS)
			print_counts(answer);
		putchar('}');
	}
	puts("\n]}");
}
