/*
 * external_report.c - prints the progress and the result of a sort beyond
 * memory
 */
#include "programs/blinksort/external_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/progress.h"

/* --- JSON ----------------------------------------------------------------- */

void external_report_rates(const struct external_rates *rates)
{
	if (rates->both == 0) {
		printf(", \"disk_rates\": null");
	} else {
		printf(", \"disk_rates\": {\"read\": %" PRIu64
		       ", \"write\": %" PRIu64 ", \"both\": %" PRIu64,
		       rates->read, rates->write, rates->both);
		format_json_number(stdout, "requests", rates->requests > 0,
				   rates->requests);
		putchar('}');
	}
	format_json_number(stdout, "link_rate", rates->link > 0, rates->link);
}

void external_report_forecast(uint64_t ns, const struct pass_forecast *passes,
			      unsigned pass_count)
{
	if (ns == 0) {
		printf(", \"predicted_ns\": null, \"predicted_passes\": null");
		return;
	}
	printf(", \"predicted_ns\": %" PRIu64 ", \"predicted_passes\": [", ns);
	for (unsigned p = 0; p < pass_count; p++)
		printf("%s{\"pass\": \"%s\", \"ns\": %" PRIu64
		       ", \"read_bytes\": %" PRIu64
		       ", \"written_bytes\": %" PRIu64
		       ", \"sent_bytes\": %" PRIu64 ", \"seeks\": %" PRIu64
		       ", \"seeks_ns\": %" PRIu64 ", \"disk_ns\": %" PRIu64
		       ", \"cpu_ns\": %" PRIu64 ", \"link_ns\": %" PRIu64
		       ", \"limit\": \"%s\"}",
		       p == 0 ? "" : ", ", passes[p].name, passes[p].ns,
		       passes[p].read_bytes, passes[p].written_bytes,
		       passes[p].sent_bytes, passes[p].seeks,
		       passes[p].seeks_ns, passes[p].limits_ns[EXTERNAL_DISK],
		       passes[p].limits_ns[EXTERNAL_CPU],
		       passes[p].limits_ns[EXTERNAL_LINK],
		       external_limit_name(passes[p].limit));
	putchar(']');
}

/* What a stage would bring in a second if it never waited. */
static uint64_t rate_alone(const struct stage_result *stage)
{
	return (uint64_t)((double)stage->bytes * NS_PER_S * stage->workers /
			  (double)MAX(1, stage->busy_ns));
}

static void print_stage(const struct stage_result *stage, enum stage number)
{
	const char *comma = "";

	printf("{\"stage\": \"%s\", \"workers\": %u, \"units\": %" PRIu64
	       ", \"bytes\": %" PRIu64 ", \"unit_bytes\": %" PRIu64
	       ", \"median_ns\": %" PRIu64 ", \"busy_ns\": %" PRIu64
	       ", \"rate\": %" PRIu64 ", \"waits\": {",
	       stage_name(number), stage->workers, stage->units, stage->bytes,
	       stage->bytes / stage->units, stage->median_ns, stage->busy_ns,
	       rate_alone(stage));
	for (unsigned c = 0; c < STAGE_CAUSES; c++) {
		if (stage->waits[c].ns == 0)
			continue;
		printf("%s\"%s\": {\"ns\": %" PRIu64 ", \"count\": %" PRIu64
		       "}",
		       comma, stage_cause_name(c), stage->waits[c].ns,
		       stage->waits[c].count);
		comma = ", ";
	}
	fputs("}}", stdout);
}

static void print_pass(const struct external_pass_result *pass,
		       enum external_pass number)
{
	const char *comma = "";

	printf("{\"pass\": \"%s\", \"ns\": %" PRIu64
	       ", \"read_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64
	       ", \"stages\": [",
	       external_pass_name(number), pass->ns, pass->read_bytes,
	       pass->written_bytes);
	for (unsigned s = 0; s < STAGES; s++) {
		if (pass->stages[s].units == 0)
			continue;
		fputs(comma, stdout);
		print_stage(&pass->stages[s], s);
		comma = ", ";
	}
	fputs("]}", stdout);
}

static void print_outlook(const char *name,
			  const struct external_forecast *outlook)
{
	printf(", \"%s\": [", name);
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		printf("%s{\"pass\": \"%s\", \"ns\": %" PRIu64
		       ", \"limit\": \"%s\"}",
		       p == 0 ? "" : ", ", outlook->passes[p].name,
		       outlook->passes[p].ns,
		       external_limit_name(outlook->passes[p].limit));
	putchar(']');
}

/* Why --compress=auto has chosen what it has. */
static void print_choice(const struct external_result *result)
{
	const struct codec_verdict *verdict = &result->verdict;

	if (verdict->sample.plain_bytes == 0) {
		printf(", \"compress_choice\": null");
		return;
	}
	printf(", \"compress_choice\": {\"sampled_bytes\": %" PRIu64
	       ", \"compressed_bytes\": %" PRIu64,
	       verdict->sample.plain_bytes, verdict->sample.stored_bytes);
	print_outlook("none_passes", &verdict->none);
	print_outlook("lz4_passes", &verdict->lz4);
	putchar('}');
}

static void print_directories(const struct external_result *result)
{
	printf(", \"directories\": [");
	for (unsigned d = 0; d < result->directory_count; d++) {
		printf("%s{\"path\": ", d == 0 ? "" : ", ");
		format_json_string(stdout, result->directory_paths[d]);
		printf(", \"written_bytes\": %" PRIu64 "}",
		       result->directory_bytes[d]);
	}
	putchar(']');
}

void external_report_json(const struct external_result *result)
{
	printf("{\"way\": \"%s\", \"merges_inputs\": %s, \"lanes\": %u, "
	       "\"batches\": %u, "
	       "\"batch_bytes\": %" PRIu64
	       ", \"block_bytes\": %u, \"runs\": %u, \"resident_runs\": %u"
	       ", \"merges\": %u, \"pieces\": %u, \"spilled_bytes\": %" PRIu64
	       ", \"reread_bytes\": %" PRIu64
	       ", \"scratch_peak_bytes\": %" PRIu64,
	       external_way_name(result->way),
	       result->merges_inputs ? "true" : "false", result->lane_count,
	       result->batch_count, result->batch_bytes, result->block_bytes,
	       result->run_count, result->resident_count, result->merge_count,
	       result->piece_count, result->spilled_bytes, result->reread_bytes,
	       result->scratch_peak_bytes);
	printf(", \"compress\": \"%s\", \"plain_bytes\": %" PRIu64
	       ", \"stored_bytes\": %" PRIu64,
	       codec_name(result->codec.kind), result->plain_bytes,
	       result->stored_bytes);
	print_choice(result);
	print_directories(result);
	external_report_rates(&result->rates);
	external_report_forecast(result->forecast.ns, result->forecast.passes,
				 EXTERNAL_PASSES);
	format_json_number(stdout, "predicted_after_ns",
			   result->forecast.ns > 0, result->forecast_after_ns);
	printf(", \"passes\": [");
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		fputs(p == 0 ? "" : ", ", stdout);
		print_pass(&result->passes[p], p);
	}
	fputs("]}", stdout);
}

/* --- progress ------------------------------------------------------------- */

/* "45%", or "430.2 MiB" of an unknown total: with both, the line would be wider
 * than a terminal. */
static void add_moved(struct format_line *line,
		      const struct external_progress *progress)
{
	if (progress->total_bytes == 0)
		progress_add_done(line, progress->moved_bytes, 0);
	else
		format_add_percent(line, (double)progress->moved_bytes /
						 (double)progress->total_bytes);
}

void external_report_answer(const struct external_progress *progress,
			    struct format_line *line)
{
	static struct progress_rate state;
	bool is_stream =
		progress->pass == EXTERNAL_RUNS && progress->total_bytes == 0;

	format_add(line, external_pass_name(progress->pass));
	format_add(line, ": ");
	add_moved(line, progress);
	format_add(line, ", ");
	progress_add_rate(line, &state, progress->moved_bytes,
			  progress->total_bytes, clock_now_ns());
	format_add(line, is_stream ? "; waits: input " : "; waits: disk ");
	format_add_number(line, progress->wait_disk_percent);
	format_add(line, "%, memory ");
	format_add_number(line, progress->wait_memory_percent);
	format_add(line, "%");
}

void external_report_progress(void *context,
			      const struct external_progress *progress)
{
	struct format_line line = { .length = 0 };

	(void)context;
	format_add(&line, "blinksort: ");
	external_report_answer(progress, &line);
	progress_draw(STDERR_FILENO, line.text);
}
