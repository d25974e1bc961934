#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/format.h"
#include "base/log.h"
#include "base/stdout.h"
#include "shell/report.h"
#include "shell/report_json.h"

static const struct client_node *client_node(const struct launch *launch,
					     uint32_t rank)
{
	return &launch->client->nodes[rank];
}

static bool was_cancelled(const struct launch *launch, uint32_t rank)
{
	return launch->nodes[rank].cancelled &&
	       launch->nodes[rank].state == WIRE_JOB_CANCELLED;
}

static struct node_exit status_of_node(const struct launch *launch,
				       uint32_t rank)
{
	return exit_status_of(launch->nodes[rank].state,
			      launch->nodes[rank].code);
}

int report_status(const struct launch *launch)
{
	struct node_exit worst = { EXIT_STATUS_OK, 0 };

	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		if (!was_cancelled(launch, i))
			worst = exit_status_worst(worst,
						  status_of_node(launch, i));
	}
	return worst.status;
}

/* --- labelled and plain --------------------------------------------------- */

static void print_labelled(FILE *stream, const char *host,
			   const struct launch_stream *output)
{
	const uint8_t *at = output->bytes;
	const uint8_t *end = at + output->kept_bytes;

	while (at < end) {
		const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
		const uint8_t *stop = newline ? newline : end;

		fprintf(stream, "%s: ", host);
		fwrite(at, 1, (size_t)(stop - at), stream);
		putc('\n', stream);
		at = stop + 1;
	}
}

static void print_plain(FILE *stream, const struct launch_stream *output)
{
	fwrite(output->bytes, 1, output->kept_bytes, stream);
}

static void print_node(const struct launch *launch, uint32_t rank,
		       enum report_mode mode)
{
	const char *host = client_node(launch, rank)->host;
	FILE *const files[] = { stdout, stderr };

	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		const struct launch_stream *output =
			&launch->nodes[rank].streams[i];

		if (mode == REPORT_LABELLED)
			print_labelled(files[i], host, output);
		else
			print_plain(files[i], output);
	}
}

/* --- gathered ------------------------------------------------------------- */

static bool same_stream(const struct launch_stream *a,
			const struct launch_stream *b)
{
	return a->total_bytes == b->total_bytes &&
	       a->kept_bytes == b->kept_bytes &&
	       memcmp(a->bytes, b->bytes, a->kept_bytes) == 0;
}

static bool same_output(const struct launch_node *a,
			const struct launch_node *b)
{
	return same_stream(&a->streams[0], &b->streams[0]) &&
	       same_stream(&a->streams[1], &b->streams[1]);
}

static void print_rule(const char *hosts)
{
	puts("---------------");
	puts(hosts);
	puts("---------------");
}

/* Prints the output of the first node below all nodes that have the same
 * output, and marks these as done. */
static void print_group(const struct launch *launch, uint32_t first, bool *done)
{
	const struct launch_node *nodes = launch->nodes;
	char *hosts = NULL;
	size_t hosts_bytes;
	FILE *list = open_memstream(&hosts, &hosts_bytes);
	uint32_t count = 0;

	if (!list)
		return;
	for (uint32_t i = first; i < launch->client->node_count; i++) {
		if (done[i] || !same_output(&nodes[i], &nodes[first]))
			continue;
		done[i] = true;
		fprintf(list, "%s%s", count++ ? "," : "",
			client_node(launch, i)->host);
	}
	if (count > 1)
		fprintf(list, " (%u)", count);
	fclose(list);
	print_rule(hosts);
	free(hosts);
	print_node(launch, first, REPORT_PLAIN);
	if (nodes[first].streams[0].kept_bytes > 0 &&
	    nodes[first].streams[0].bytes[nodes[first].streams[0].kept_bytes -
					  1] != '\n')
		putchar('\n');
	stdout_flush();
}

static void print_gathered(const struct launch *launch)
{
	uint32_t count = launch->client->node_count;
	bool *done = calloc(MAX(count, 1), sizeof(*done));

	if (!done)
		return;
	for (uint32_t i = 0; i < count; i++) {
		const struct launch_node *node = &launch->nodes[i];

		if (!done[i] && (node->streams[0].kept_bytes ||
				 node->streams[1].kept_bytes))
			print_group(launch, i, done);
	}
	free(done);
}

void report_output(const struct launch *launch, enum report_mode mode,
		   int status, const struct report_samples *samples)
{
	if (mode == REPORT_JSON) {
		report_json(launch, status, samples);
	} else if (mode == REPORT_GATHERED) {
		print_gathered(launch);
	} else {
		for (uint32_t i = 0; i < launch->client->node_count; i++)
			print_node(launch, i, mode);
	}
	stdout_flush();
}

/* --- failures ------------------------------------------------------------- */

static void report_lost(const struct client_node *node, uint64_t lost_after_ns)
{
	char silence[FORMAT_DURATION_BYTES];

	format_duration(silence, lost_after_ns);
	if (node->lookup_error)
		log_warnx("%s: lost: %s", node->host,
			  address_why(node->lookup_error));
	else if (node->send_error)
		log_warnx("%s: lost: %s", node->host,
			  strerror(node->send_error));
	else
		log_warnx("%s: lost: no reply for %s", node->host, silence);
}

/* The client does not know how the job ended. */
static void report_unknown(const struct client_node *node,
			   const struct launch_node *state,
			   uint64_t lost_after_ns)
{
	if (node->lost)
		report_lost(node, lost_after_ns);
	else if (launch_met_restart(state, node))
		log_warnx("%s: lost: its daemon was restarted, which ends all "
			  "jobs",
			  node->host);
	else
		log_warnx("%s: lost: its daemon does not know the job",
			  node->host);
}

static void report_end(const char *host, const struct launch_node *node)
{
	switch (node->state) {
	case WIRE_JOB_EXITED:
		if (node->code != 0)
			log_warnx("%s: exit status %d", host, node->code);
		break;
	case WIRE_JOB_KILLED:
		log_warnx("%s: killed by signal %d (%s)", host, node->code,
			  strsignal(node->code));
		break;
	case WIRE_JOB_REFUSED:
		log_warnx("%s: refused: %s", host, strerror(node->code));
		break;
	case WIRE_JOB_FORGOTTEN:
		log_warnx("%s: forgotten: the job has ended, and the daemon no "
			  "longer knows how",
			  host);
		break;
	default:
		log_warnx("%s: %s", host, exit_status_state_name(node->state));
	}
}

static void report_cut(const char *host, const char *name,
		       const struct launch_stream *stream)
{
	if (stream->kept_bytes < stream->total_bytes)
		log_warnx("%s: %s: only the last %u of %llu bytes", host, name,
			  stream->kept_bytes,
			  (unsigned long long)stream->total_bytes);
}

void report_failures(const struct launch *launch, uint64_t lost_after_ns)
{
	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		const struct client_node *node = client_node(launch, i);
		const struct launch_node *state = &launch->nodes[i];

		report_cut(node->host, "stdout", &state->streams[0]);
		report_cut(node->host, "stderr", &state->streams[1]);
		if (state->state == WIRE_JOB_UNKNOWN)
			report_unknown(node, state, lost_after_ns);
		else
			report_end(node->host, state);
	}
}

/* --- times ---------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the quantile at mille thousandths of count sorted values. */
static uint64_t quantile(const uint64_t *sorted, uint32_t count, unsigned mille)
{
	return sorted[(uint64_t)(count - 1) * mille / 1000];
}

/* Counts nodes by class, and sorts the times that the daemons have measured
 * into elapsed_ns.  Returns how many times there are. */
static uint32_t count_nodes(const struct launch *launch, uint64_t *elapsed_ns,
			    uint32_t counts[EXIT_STATUS_LOST + 1],
			    uint32_t *cancelled)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		if (launch->nodes[i].elapsed_ns != 0)
			elapsed_ns[count++] = launch->nodes[i].elapsed_ns;
		if (was_cancelled(launch, i))
			++*cancelled;
		else
			counts[status_of_node(launch, i).class]++;
	}
	qsort(elapsed_ns, count, sizeof(*elapsed_ns), compare_u64);
	return count;
}

static void print_runs(const struct report_samples *samples)
{
	static const unsigned milles[] = { 0, 500, 900, 990, 1000 };
	char texts[ARRAY_LEN(milles)][FORMAT_DURATION_BYTES];

	if (samples->count < 2)
		return;
	qsort(samples->whole_ns, samples->count, sizeof(*samples->whole_ns),
	      compare_u64);
	for (unsigned i = 0; i < ARRAY_LEN(milles); i++)
		format_duration(texts[i], quantile(samples->whole_ns,
						   samples->count, milles[i]));
	log_warnx("%u runs: whole %s min, %s median, %s p90, %s p99, %s max",
		  samples->count, texts[0], texts[1], texts[2], texts[3],
		  texts[4]);
}

void report_times(const struct launch *launch,
		  const struct report_samples *samples)
{
	uint32_t node_count = launch->client->node_count;
	uint64_t *elapsed_ns = calloc(MAX(node_count, 1), sizeof(*elapsed_ns));
	char least[FORMAT_DURATION_BYTES] = "-";
	char middle[FORMAT_DURATION_BYTES] = "-";
	char most[FORMAT_DURATION_BYTES] = "-";
	char whole[FORMAT_DURATION_BYTES];
	uint32_t counts[EXIT_STATUS_LOST + 1] = { 0 };
	uint32_t cancelled = 0, count;

	if (!elapsed_ns)
		return;
	count = count_nodes(launch, elapsed_ns, counts, &cancelled);
	if (count > 0) {
		format_duration(least, quantile(elapsed_ns, count, 0));
		format_duration(middle, quantile(elapsed_ns, count, 500));
		format_duration(most, quantile(elapsed_ns, count, 1000));
	}
	free(elapsed_ns);
	format_duration(whole, launch->whole_ns);
	log_warnx("%u nodes: %u ok, %u failed, %u cancelled, %u lost; elapsed "
		  "%s min, %s median, %s max; whole %s",
		  node_count, counts[EXIT_STATUS_OK],
		  counts[EXIT_STATUS_APPLICATION] +
			  counts[EXIT_STATUS_TIMEOUT] +
			  counts[EXIT_STATUS_REFUSED],
		  cancelled, counts[EXIT_STATUS_LOST], least, middle, most,
		  whole);
	print_runs(samples);
}

/* --- queries -------------------------------------------------------------- */

static void print_answer(const struct query *query, uint32_t rank)
{
	const struct query_node *answer = &query->nodes[rank];
	const struct wire_node_status *status = &answer->status;
	const char *host = query->client->nodes[rank].host;
	char duration[FORMAT_DURATION_BYTES], size[FORMAT_SIZE_BYTES];

	switch (query->kind) {
	case QUERY_PING:
		printf("%s: %s\n", host,
		       format_duration(duration, answer->round_trip_ns));
		break;
	case QUERY_CANCEL:
		printf("%s: %s\n", host,
		       answer->job_state == WIRE_JOB_UNKNOWN
			       ? "unknown"
			       : exit_status_state_name(answer->job_state));
		break;
	case QUERY_STATUS:
		printf("%s: up %s, %llu running, %llu started, refused "
		       "%llu length %llu tag %llu fields %llu replay, %s\n",
		       host,
		       format_duration(duration, le64_load(status->uptime_ns)),
		       (unsigned long long)le64_load(status->running),
		       (unsigned long long)le64_load(status->started),
		       (unsigned long long)le64_load(status->refused_length),
		       (unsigned long long)le64_load(status->refused_tag),
		       (unsigned long long)le64_load(status->refused_fields),
		       (unsigned long long)le64_load(status->refused_replay),
		       format_size(size, le64_load(status->resident_bytes)));
	}
}

void report_query(const struct query *query, bool json)
{
	if (json)
		report_query_json(query);
	for (uint32_t i = 0; i < query->client->node_count; i++) {
		if (!query->nodes[i].answered)
			report_lost(&query->client->nodes[i],
				    query->client->lost_after_ns);
		else if (!json)
			print_answer(query, i);
	}
	stdout_flush();
}
