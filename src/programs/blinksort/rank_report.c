/* rank_report.c - prints the ranks' progress and their passes, and a failure */
#include "programs/blinksort/rank_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/progress.h"

/* Of more ranks than these, only the slowest has a line in the table. */
#define TABLE_RANKS_MAX 8
#define ROW_FORMAT "%-7s %-8s %9s %9s %10s %10s %10s %10s  %s\n"

/* A job tells its progress each second at first, and then less often. */
#define OFTEN_NS 60000000000
#define SELDOM_NS 10000000000

/* --- progress --------------------------------------------------------------
 */

struct whole {
	uint64_t moved_bytes, total_bytes;
	enum external_pass pass; /* the first one that a rank is in */
	unsigned told;		 /* ranks */
	unsigned last;		 /* the rank that has come least far */
};

static double part_of(const struct external_progress *progress)
{
	return (double)progress->moved_bytes /
	       (double)MAX(1, progress->total_bytes);
}

static struct whole add_up(const struct external_progress *ranks,
			   unsigned rank_count)
{
	struct whole whole = { .pass = EXTERNAL_OUTPUT };

	for (unsigned i = 0; i < rank_count; i++) {
		if (ranks[i].total_bytes == 0)
			continue;
		if (whole.told++ == 0 ||
		    part_of(&ranks[i]) < part_of(&ranks[whole.last]))
			whole.last = i;
		whole.moved_bytes += ranks[i].moved_bytes;
		whole.total_bytes += ranks[i].total_bytes;
		whole.pass = MIN(whole.pass, ranks[i].pass);
	}
	return whole;
}

/* blinkd sets BLINK_JOB for the commands that it starts.  It keeps only the end
 * of their output, so lines of progress come less often after a minute. */
static void draw(const char *text, uint64_t begin_ns, uint64_t now_ns)
{
	static uint64_t next_ns; /* no line for a job sooner */

	if (isatty(STDERR_FILENO)) {
		progress_draw(STDERR_FILENO, text);
	} else if (getenv("BLINK_JOB") && now_ns >= next_ns) {
		fprintf(stderr, "%s\r", text);
		if (now_ns - begin_ns > OFTEN_NS)
			next_ns = now_ns + SELDOM_NS;
	}
}

void rank_report_progress(const struct external_progress *ranks,
			  unsigned rank_count)
{
	static struct progress_rate state;
	const struct whole whole = add_up(ranks, rank_count);
	const struct external_progress *last = &ranks[whole.last];
	bool waits_for_disk =
		last->wait_disk_percent >= last->wait_memory_percent;
	struct format_line line = { .length = 0 };
	uint64_t now_ns = clock_now_ns();

	if (whole.told == 0)
		return;
	format_add(&line, "blinksort: ");
	format_add(&line, external_pass_names[whole.pass]);
	format_add(&line, " ");
	format_add_percent(&line, (double)whole.moved_bytes /
					  (double)whole.total_bytes);
	format_add(&line, ", ");
	progress_add_rate(&line, &state, whole.moved_bytes, whole.total_bytes,
			  now_ns);
	format_add(&line, "; last: rank ");
	format_add_number(&line, whole.last);
	format_add(&line, ", ");
	format_add_percent(&line, part_of(last));
	format_add(&line, waits_for_disk ? ", disk " : ", memory ");
	format_add_percent(
		&line, MAX(last->wait_disk_percent, last->wait_memory_percent) /
			       100.0);
	draw(line.text, state.begin_ns, now_ns);
}

/* --- the table -------------------------------------------------------------
 */

static void print_row(const char *pass, const char *who,
		      const struct cluster_pass *row)
{
	fprintf(stderr, ROW_FORMAT, pass, who, FORMAT_DURATION(row->ns),
		row->predicted_ns == 0 ? "-"
				       : FORMAT_DURATION(row->predicted_ns),
		FORMAT_SIZE(row->read_bytes), FORMAT_SIZE(row->written_bytes),
		FORMAT_SIZE(row->sent_bytes), FORMAT_SIZE(row->received_bytes),
		external_limit_names[row->limit]);
}

/* Times are those of the slowest rank, and so is what limits them; bytes are
 * sums. */
static struct cluster_pass add_up_ranks(const struct cluster_result *result,
					enum external_pass pass,
					unsigned *slowest)
{
	struct cluster_pass whole = { 0 };

	*slowest = 0;
	for (unsigned i = 0; i < result->node_count; i++) {
		const struct cluster_pass *row = &result->passes.of[i][pass];

		if (row->ns > whole.ns) {
			whole.ns = row->ns;
			whole.limit = row->limit;
			*slowest = i;
		}
		whole.predicted_ns = MAX(whole.predicted_ns, row->predicted_ns);
		whole.read_bytes += row->read_bytes;
		whole.written_bytes += row->written_bytes;
		whole.sent_bytes += row->sent_bytes;
		whole.received_bytes += row->received_bytes;
	}
	return whole;
}

static void print_pass(const struct cluster_result *result,
		       enum external_pass pass,
		       const struct cluster_pass *whole, unsigned slowest)
{
	char who[16];

	if (whole->ns == 0)
		return;
	print_row(external_pass_names[pass], "all", whole);
	for (unsigned i = 0; i < result->node_count; i++) {
		if (result->node_count > TABLE_RANKS_MAX && i != slowest)
			continue;
		snprintf(who, sizeof(who), "rank %u", i);
		print_row("", who, &result->passes.of[i][pass]);
	}
}

void rank_report_table(const struct cluster_result *result,
		       uint32_t record_size)
{
	uint64_t input_bytes = 0, read_bytes = 0, written_bytes = 0;

	if (result->sort.place == SORT_IN_MEMORY || result->rank != 0)
		return;
	fprintf(stderr, ROW_FORMAT, "pass", "of", "time", "predicted", "read",
		"written", "sent", "received", "limit");
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		unsigned slowest;
		const struct cluster_pass whole =
			add_up_ranks(result, (enum external_pass)p, &slowest);

		print_pass(result, (enum external_pass)p, &whole, slowest);
		read_bytes += whole.read_bytes;
		written_bytes += whole.written_bytes;
	}
	/* What stays in memory is read and written once. */
	for (unsigned i = 0; i < result->node_count; i++)
		input_bytes += result->reports[i].figures[CLUSTER_RECORDS_IN] *
			       record_size;
	fprintf(stderr,
		"the input was read %.2f times, and written %.2f times\n",
		(double)read_bytes / (double)MAX(1, input_bytes),
		(double)written_bytes / (double)MAX(1, input_bytes));
}

/* --- a failure -------------------------------------------------------------
 */

int rank_report_failure(const struct failure *failure)
{
	struct rank_launch launch;

	if (failure->status == EXIT_USAGE && rank_find_launch(&launch) &&
	    launch.rank > 0 && !launch.is_blinkd)
		sleep(2);
	return log_failure(failure);
}
