/*
 * external_report.c - prints the progress and the result of a sort beyond
 * memory
 */
#include "programs/blinksort/external_report.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/progress.h"

/* --- JSON ----------------------------------------------------------------- */

void external_report_rates(const struct external_rates *rates)
{
	if (json_open_known("disk_rates", rates->both > 0, '{')) {
		json_number("read", rates->read);
		json_number("write", rates->write);
		json_number("both", rates->both);
		json_known("requests", rates->requests > 0, rates->requests);
		json_close('}');
	}
	json_known("link_rate", rates->link > 0, rates->link);
}

void external_report_forecast(uint64_t ns, const struct pass_forecast *passes,
			      unsigned pass_count)
{
	json_known("predicted_ns", ns > 0, ns);
	if (!json_open_known("predicted_passes", ns > 0, '['))
		return;
	for (const struct pass_forecast *pass = passes;
	     pass < passes + pass_count; pass++) {
		json_open(NULL, '{');
		json_text("pass", pass->name);
		json_number("ns", pass->ns);
		json_number("read_bytes", pass->read_bytes);
		json_number("written_bytes", pass->written_bytes);
		json_number("sent_bytes", pass->sent_bytes);
		json_number("seeks", pass->seeks);
		json_number("seeks_ns", pass->seeks_ns);
		json_number("disk_ns", pass->limits_ns[EXTERNAL_DISK]);
		json_number("cpu_ns", pass->limits_ns[EXTERNAL_CPU]);
		json_number("link_ns", pass->limits_ns[EXTERNAL_LINK]);
		json_text("limit", external_limit_names[pass->limit]);
		json_close('}');
	}
	json_close(']');
}

/* What a stage would bring in a second if it never waited. */
static uint64_t rate_alone(const struct stage_result *stage)
{
	return (uint64_t)((double)stage->bytes * NS_PER_S * stage->workers /
			  (double)MAX(1, stage->busy_ns));
}

static void print_stage(const struct stage_result *stage, enum stage number)
{
	json_open(NULL, '{');
	json_text("stage", stage_names[number]);
	json_number("workers", stage->workers);
	json_number("units", stage->units);
	json_number("bytes", stage->bytes);
	json_number("unit_bytes", stage->bytes / stage->units);
	json_number("median_ns", stage->median_ns);
	json_number("busy_ns", stage->busy_ns);
	json_number("rate", rate_alone(stage));
	json_open("waits", '{');
	for (unsigned c = 0; c < STAGE_CAUSES; c++) {
		if (stage->waits[c].ns == 0)
			continue;
		json_open(stage_cause_names[c], '{');
		json_number("ns", stage->waits[c].ns);
		json_number("count", stage->waits[c].count);
		json_close('}');
	}
	json_close('}');
	json_close('}');
}

static void print_pass(const struct external_pass_result *pass,
		       enum external_pass number)
{
	json_open(NULL, '{');
	json_text("pass", external_pass_names[number]);
	json_number("ns", pass->ns);
	json_number("read_bytes", pass->read_bytes);
	json_number("written_bytes", pass->written_bytes);
	json_open("stages", '[');
	for (unsigned s = 0; s < STAGES; s++)
		if (pass->stages[s].units > 0)
			print_stage(&pass->stages[s], s);
	json_close(']');
	json_close('}');
}

static void print_outlook(const char *name,
			  const struct external_forecast *outlook)
{
	json_open(name, '[');
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		json_open(NULL, '{');
		json_text("pass", outlook->passes[p].name);
		json_number("ns", outlook->passes[p].ns);
		json_text("limit",
			  external_limit_names[outlook->passes[p].limit]);
		json_close('}');
	}
	json_close(']');
}

/* Why --compress=auto has chosen what it has. */
static void print_choice(const struct external_result *result)
{
	const struct codec_verdict *verdict = &result->verdict;

	if (!json_open_known("compress_choice", verdict->sample.plain_bytes > 0,
			     '{'))
		return;
	json_number("sampled_bytes", verdict->sample.plain_bytes);
	json_number("compressed_bytes", verdict->sample.stored_bytes);
	print_outlook("none_passes", &verdict->none);
	print_outlook("lz4_passes", &verdict->lz4);
	json_close('}');
}

static void print_directories(const struct external_result *result)
{
	json_open("directories", '[');
	for (unsigned d = 0; d < result->directory_count; d++) {
		json_open(NULL, '{');
		json_text("path", result->directory_paths[d]);
		json_number("written_bytes", result->directory_bytes[d]);
		json_close('}');
	}
	json_close(']');
}

void external_report_json(const struct sorter_result *sort,
			  const struct external_result *result)
{
	if (!json_open_known("external", sort->place == SORT_BEYOND_MEMORY,
			     '{'))
		return;
	json_text("way", external_way_names[result->way]);
	json_bool("merges_inputs", result->merges_inputs);
	json_number("lanes", result->lane_count);
	json_number("batches", result->batch_count);
	json_number("batch_bytes", result->batch_bytes);
	json_number("block_bytes", result->block_bytes);
	json_number("runs", result->run_count);
	json_number("resident_runs", result->resident_count);
	json_number("merges", result->merge_count);
	json_number("pieces", result->piece_count);
	json_number("spilled_bytes", result->spilled_bytes);
	json_number("reread_bytes", result->reread_bytes);
	json_number("scratch_peak_bytes", result->scratch_peak_bytes);
	json_text("compress", codec_names[result->codec.kind]);
	json_number("plain_bytes", result->plain_bytes);
	json_number("stored_bytes", result->stored_bytes);
	print_choice(result);
	print_directories(result);
	external_report_rates(&result->rates);
	external_report_forecast(result->forecast.ns, result->forecast.passes,
				 EXTERNAL_PASSES);
	json_known("predicted_after_ns", result->forecast.ns > 0,
		   result->forecast_after_ns);
	json_open("passes", '[');
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		print_pass(&result->passes[p], p);
	json_close(']');
	json_close('}');
}

/* --- progress ------------------------------------------------------------- */

void external_report_progress(void *context,
			      const struct external_progress *progress)
{
	struct format_line line = { .length = 0 };

	(void)context;
	format_add(&line, "blinksort: ");
	external_progress_tell(progress, &line);
	progress_draw(STDERR_FILENO, line.text);
}
