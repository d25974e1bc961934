/* report.c - what blinksh prints when all nodes have ended */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/format.h"
#include "base/log.h"
#include "base/stdout.h"
#include "shell/hostfold.h"
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
	const char *host = client_node(launch, rank)->label;
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

/* Prints the output of the first node below all nodes that have the same
 * output, and marks these as done.  names: room for all nodes */
static void print_group(const struct launch *launch, uint32_t first, bool *done,
			char **names)
{
	const struct launch_node *nodes = launch->nodes;
	const struct launch_stream *output = &nodes[first].streams[0];
	uint32_t count = 0;
	char *hosts;

	for (uint32_t i = first; i < launch->client->node_count; i++) {
		if (done[i] || !same_output(&nodes[i], &nodes[first]))
			continue;
		done[i] = true;
		names[count++] = client_node(launch, i)->label;
	}
	hosts = hostfold_text(names, count);
	printf("---------------\n%s", hosts ? hosts : names[0]);
	if (count > 1)
		printf(" (%u)", count);
	puts("\n---------------");
	free(hosts);
	print_node(launch, first, REPORT_PLAIN);
	if (output->kept_bytes > 0 &&
	    output->bytes[output->kept_bytes - 1] != '\n')
		putchar('\n');
	stdout_flush();
}

static void print_gathered(const struct launch *launch)
{
	uint32_t count = launch->client->node_count;
	bool *done = calloc(MAX(count, 1), sizeof(*done));
	char **names = calloc(MAX(count, 1), sizeof(*names));

	for (uint32_t i = 0; done && names && i < count; i++) {
		const struct launch_node *node = &launch->nodes[i];

		if (!done[i] && (node->streams[0].kept_bytes ||
				 node->streams[1].kept_bytes))
			print_group(launch, i, done, names);
	}
	free(done);
	free(names);
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

/* A line is cut far above this: a longer list of hosts gets several. */
#define HOSTS_BYTES_MAX 3000

/* Texts about nodes, of which equal ones make one line. */
struct remarks {
	const struct client *client;
	char **texts; /* [rank]; NULL: none; print_folded() frees them */
	char **names; /* room for all nodes */
};

static bool init_remarks(struct remarks *remarks, const struct client *client)
{
	uint32_t count = MAX(client->node_count, 1);

	remarks->client = client;
	remarks->texts = calloc(count, sizeof(*remarks->texts));
	remarks->names = calloc(count, sizeof(*remarks->names));
	return remarks->texts && remarks->names;
}

static void free_remarks(struct remarks *remarks)
{
	free(remarks->texts);
	free(remarks->names);
}

__attribute__((format(printf, 3, 4))) static void
remark(struct remarks *remarks, uint32_t rank, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&remarks->texts[rank], format, arguments) < 0)
		remarks->texts[rank] = NULL;
	va_end(arguments);
}

static void print_remark(char *const *names, size_t count, const char *text)
{
	char *hosts = hostfold_text(names, count);

	if (hosts && count > 1 && strlen(hosts) > HOSTS_BYTES_MAX) {
		print_remark(names, count / 2, text);
		print_remark(names + count / 2, count - count / 2, text);
	} else {
		log_warnx("%s: %s", hosts ? hosts : names[0], text);
	}
	free(hosts);
}

/* Prints a line for all nodes of which the same is to be said. */
static void print_folded(struct remarks *remarks)
{
	char **texts = remarks->texts;

	for (uint32_t i = 0; i < remarks->client->node_count; i++) {
		char *text = texts[i];
		size_t count = 0;

		if (!text)
			continue;
		for (uint32_t n = i; n < remarks->client->node_count; n++) {
			if (!texts[n] || strcmp(texts[n], text) != 0)
				continue;
			remarks->names[count++] =
				remarks->client->nodes[n].label;
			if (n != i)
				free(texts[n]);
			texts[n] = NULL;
		}
		print_remark(remarks->names, count, text);
		free(text);
	}
}

static void remark_lost(struct remarks *remarks, uint32_t rank)
{
	const struct client_node *node = &remarks->client->nodes[rank];
	char silence[FORMAT_DURATION_BYTES];

	if (node->lookup_error)
		remark(remarks, rank, "lost: %s",
		       address_why(node->lookup_error));
	else if (node->send_error)
		remark(remarks, rank, "lost: %s", strerror(node->send_error));
	else
		/* An ICMP message could say which, but anybody can send one. */
		remark(remarks, rank, "lost: no reply for %s%s",
		       format_duration(silence, remarks->client->lost_after_ns),
		       node->has_epoch ? ""
				       : " (no daemon, another key, or a "
					 "firewall)");
}

/* blinksh does not know how the job ended. */
static void remark_unknown(struct remarks *remarks, const struct launch *launch,
			   uint32_t rank)
{
	const struct client_node *node = client_node(launch, rank);
	char lease[FORMAT_DURATION_BYTES];

	if (node->lost)
		remark_lost(remarks, rank);
	else if (launch_met_restart(&launch->nodes[rank], node))
		remark(remarks, rank,
		       "lost: its daemon was restarted, which ends all jobs");
	else if (launch->client->signal != 0)
		remark(remarks, rank,
		       "left to the daemon, which ends it within %s",
		       format_duration(lease,
				       1000000ull * launch->options.lease_ms));
	else
		remark(remarks, rank, "lost: its daemon does not know the job");
}

static void remark_refused(struct remarks *remarks, const struct launch *launch,
			   uint32_t rank)
{
	const char *program = launch->options.arguments[0];
	int error = launch->nodes[rank].code;

	switch (error) {
	case EPERM:
		remark(remarks, rank,
		       "refused: %s: not below a folder that the daemon "
		       "allows: see --allow in blinkd(1)",
		       program);
		break;
	case EACCES:
		remark(remarks, rank,
		       "refused: %s: is not executable for the daemon's user",
		       program);
		break;
	case EAGAIN:
		remark(remarks, rank, "refused: too many jobs run there");
		break;
	default:
		remark(remarks, rank, "refused: %s: %s%s", program,
		       strerror(error),
		       error == ENOENT && strchr(program, ' ')
			       ? ": there is no shell: write the program and "
				 "its arguments as words of their own"
			       : "");
	}
}

static void remark_end(struct remarks *remarks, const struct launch *launch,
		       uint32_t rank)
{
	const struct launch_node *node = &launch->nodes[rank];

	switch (node->state) {
	case WIRE_JOB_UNKNOWN:
		remark_unknown(remarks, launch, rank);
		break;
	case WIRE_JOB_EXITED:
		if (node->code != 0)
			remark(remarks, rank, "exit status %d", node->code);
		break;
	case WIRE_JOB_KILLED:
		remark(remarks, rank, "killed by signal %d (%s)", node->code,
		       strsignal(node->code));
		break;
	case WIRE_JOB_REFUSED:
		remark_refused(remarks, launch, rank);
		break;
	case WIRE_JOB_FORGOTTEN:
		remark(remarks, rank,
		       "forgotten: the job has ended, and the daemon no longer "
		       "knows how");
		break;
	default:
		remark(remarks, rank, "%s",
		       exit_status_state_name(node->state));
	}
}

static void report_cuts(struct remarks *remarks, const struct launch *launch,
			unsigned stream_index, const char *name)
{
	for (uint32_t i = 0; i < launch->client->node_count; i++) {
		const struct launch_stream *stream =
			&launch->nodes[i].streams[stream_index];

		if (stream->kept_bytes < stream->total_bytes)
			remark(remarks, i, "%s: only the last %u of %llu bytes",
			       name, stream->kept_bytes,
			       (unsigned long long)stream->total_bytes);
	}
	print_folded(remarks);
}

/* The failure that has cancelled the others comes last, where it is seen. */
void report_failures(const struct launch *launch)
{
	struct remarks remarks;

	if (init_remarks(&remarks, launch->client)) {
		report_cuts(&remarks, launch, 0, "stdout");
		report_cuts(&remarks, launch, 1, "stderr");
		for (uint32_t i = 0; i < launch->client->node_count; i++)
			if (was_cancelled(launch, i))
				remark_end(&remarks, launch, i);
		print_folded(&remarks);
		for (uint32_t i = 0; i < launch->client->node_count; i++)
			if (!was_cancelled(launch, i))
				remark_end(&remarks, launch, i);
		print_folded(&remarks);
	}
	free_remarks(&remarks);
}

/* --- times ---------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the quantile at mille thousandths of count sorted values: the least
 * value that so many of them do not exceed.  The median of an even number is
 * the mean of the two in the middle. */
static uint64_t quantile(const uint64_t *sorted, uint32_t count, unsigned mille)
{
	uint64_t rank = DIV_ROUND_UP((uint64_t)count * mille, 1000);

	if (mille == 500 && count % 2 == 0)
		return sorted[rank - 1] + (sorted[rank] - sorted[rank - 1]) / 2;
	return sorted[MAX(rank, 1) - 1];
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
	log_warnx(
		"%u node%s: %u ok, %u failed, %u cancelled, %u lost; elapsed "
		"%s min, %s median, %s max; whole %s",
		node_count, node_count == 1 ? "" : "s", counts[EXIT_STATUS_OK],
		counts[EXIT_STATUS_APPLICATION] + counts[EXIT_STATUS_TIMEOUT] +
			counts[EXIT_STATUS_REFUSED],
		cancelled, counts[EXIT_STATUS_LOST], least, middle, most,
		whole);
	print_runs(samples);
}

/* --- queries -------------------------------------------------------------- */

/* The numbers of "status", from the time that the daemon is up to its memory.
 */
#define STATUS_COLUMNS 8

static void fill_row(char row[STATUS_COLUMNS][FORMAT_DURATION_BYTES],
		     const struct wire_node_status *status)
{
	const struct le64 counts[] = {
		status->running,	status->started,
		status->refused_length, status->refused_tag,
		status->refused_fields, status->refused_replay,
	};

	format_duration(row[0], le64_load(status->uptime_ns));
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
		snprintf(row[i + 1], sizeof(row[0]), "%llu",
			 (unsigned long long)le64_load(counts[i]));
	format_size(row[STATUS_COLUMNS - 1], le64_load(status->resident_bytes));
}

/* Each column is as wide as its longest number. */
static void print_status(const struct query *query)
{
	static const char *const words[STATUS_COLUMNS] = {
		" running, ", " started, refused ", " for length, ",
		" for tag, ", " for fields, ",	    " for replay, ",
		"",
	};
	char row[STATUS_COLUMNS][FORMAT_DURATION_BYTES];
	int widths[STATUS_COLUMNS] = { 0 }, label_width = 0;
	const struct client *client = query->client;

	for (uint32_t i = 0; i < client->node_count; i++) {
		if (!query->nodes[i].answered)
			continue;
		label_width =
			MAX(label_width, (int)strlen(client->nodes[i].label));
		fill_row(row, &query->nodes[i].status);
		for (unsigned c = 0; c < STATUS_COLUMNS; c++)
			widths[c] = MAX(widths[c], (int)strlen(row[c]));
	}
	for (uint32_t i = 0; i < client->node_count; i++) {
		const char *label = client->nodes[i].label;

		if (!query->nodes[i].answered)
			continue;
		fill_row(row, &query->nodes[i].status);
		printf("%s:%*s up %*s, ", label,
		       label_width - (int)strlen(label), "", widths[0], row[0]);
		for (unsigned c = 1; c < STATUS_COLUMNS; c++)
			printf("%*s%s", widths[c], row[c], words[c - 1]);
		putchar('\n');
	}
}

static void print_answer(const struct query *query, uint32_t rank)
{
	const struct query_node *answer = &query->nodes[rank];
	const char *label = query->client->nodes[rank].label;
	char duration[FORMAT_DURATION_BYTES];

	if (query->kind == QUERY_PING)
		printf("%s: %s\n", label,
		       format_duration(duration, answer->round_trip_ns));
	else
		printf("%s: %s\n", label,
		       answer->job_state == WIRE_JOB_UNKNOWN
			       ? "unknown"
			       : exit_status_state_name(answer->job_state));
}

static void print_answers(const struct query *query)
{
	if (query->kind == QUERY_STATUS) {
		print_status(query);
		return;
	}
	for (uint32_t i = 0; i < query->client->node_count; i++)
		if (query->nodes[i].answered)
			print_answer(query, i);
}

void report_query(const struct query *query, bool json)
{
	struct remarks remarks;

	if (json)
		report_query_json(query);
	else
		print_answers(query);
	stdout_flush();
	if (init_remarks(&remarks, query->client)) {
		for (uint32_t i = 0; i < query->client->node_count; i++)
			if (!query->nodes[i].answered)
				remark_lost(&remarks, i);
		print_folded(&remarks);
	}
	free_remarks(&remarks);
}
