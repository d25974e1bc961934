/*
 * external_report.c - prints the plan, the progress and the result of a sort
 * beyond memory
 */
#include "programs/blinksort/external_report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/progress.h"

#define NS_PER_S 1000000000u

/* --- the plan, as a text ---------------------------------------------------
 */

/* Texts for one printf(): each is used until it is printed. */
struct texts {
	char text[6][FORMAT_SIZE_BYTES];
};

/* What decided on the memory and the threads, as people call it. */
static const char *describe_source(const char *source)
{
	static const char *const texts[][2] = {
		{ "machine", "what the machine has" },
		{ "cgroup", "what its control group leaves" },
		{ "cpus", "the CPUs that it may use" },
		{ "quota", "the CPU quota of its control group" },
		{ "input", "the size of the input" },
		{ "memory", "the memory" },
		{ "scratch files", "its scratch files, which are memory" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (strcmp(source, texts[i][0]) == 0)
			return texts[i][1];
	return source;
}

static void print_limits(const char *memory, const char *threads)
{
	printf("limits    threads by %s", describe_source(threads));
	if (memory)
		printf(", memory by %s", describe_source(memory));
	putchar('\n');
}

/* Why the same input takes more memory at one time than at another. */
static const char *describe_input(enum input_mode io)
{
	return io == INPUT_MMAP ? "the input stays in the page cache"
				: "the input is read into memory";
}

#define REFUSAL_BYTES (FAILURE_WHY_BYTES + PATH_MAX)

static const char *describe_refusal(const struct failure *refusal,
				    char text[REFUSAL_BYTES])
{
	snprintf(text, REFUSAL_BYTES, "%s%s%s",
		 refusal->what ? refusal->what : "", refusal->what ? ": " : "",
		 refusal->why);
	return text;
}

static void print_plan(const struct external_explanation *explanation)
{
	const struct external_plan *plan = &explanation->plan;
	const struct external_request *request = &explanation->request;
	uint64_t size = request->shape.size;
	uint64_t kept = request->record_count - plan->spilled_records;
	struct texts t;

	if (request->ranks.rank_count > 1)
		printf("ranks     %u, for %s: %" PRIu64
		       " records; of each of them:\n",
		       request->ranks.rank_count,
		       format_size(t.text[0],
				   explanation->whole_records * size),
		       explanation->whole_records);
	printf("input     %s: %" PRIu64 " records of %" PRIu64 " bytes\n",
	       format_size(t.text[0], request->record_count * size),
	       request->record_count, size);
	printf("threads   %u read, and as many sort and write\n",
	       request->worker_count);
	print_limits(request->memory_source, request->threads_source);
	if (plan->way != EXTERNAL_BY_RUNS) {
		printf("memory    %s: %s\n",
		       format_size(t.text[0], request->memory_bytes),
		       plan->way == EXTERNAL_BY_KEYS
			       ? "all keys fit; they are sorted, and each "
				 "record is read once"
			       : "records of this size are counted, and "
				 "written "
				 "from the counts");
		return;
	}
	printf("memory    %s: %u batches of %s, staging %s, index %s\n",
	       format_size(t.text[0], request->memory_bytes), plan->batch_count,
	       format_size(t.text[1], plan->batch.capacity * size),
	       format_size(t.text[2], plan->slot_count * plan->slot_bytes +
					      (uint64_t)plan->reader_count *
						      plan->read_depth *
						      plan->read_slot_bytes),
	       format_size(t.text[3], plan->index_bytes));
	if (plan->lane_count > 1)
		printf("devices   %u are read side by side\n",
		       plan->lane_count);
	printf("runs      %" PRIu64 "; %s are spilled, %s stay in memory\n",
	       plan->run_count,
	       format_size(t.text[0], plan->spilled_records * size),
	       format_size(t.text[1], kept * size));
	if (plan->merge_count > 0)
		printf("merges    about %" PRIu64
		       ", of %s, before the last, since "
		       "there are so many runs\n",
		       plan->merge_count,
		       format_size(t.text[0], plan->merged_records * size));
	printf("pieces    %" PRIu64 ", each by reads of %s from each run\n",
	       plan->piece_count, format_size(t.text[0], plan->read_bytes));
	printf("passes    %s%.2f: so many times the input is read and "
	       "written\n",
	       plan->merge_count > 0 ? "about " : "",
	       1 + (double)(plan->spilled_records + plan->merged_records) /
			       (double)MAX(1, request->record_count));
}

static void print_scratch(const struct external_config *config,
			  const struct external_explanation *explanation)
{
	struct texts t;

	printf("scratch   %s\n",
	       format_size(t.text[0], explanation->plan.scratch_bytes));
	for (unsigned d = 0; d < explanation->directory_count; d++)
		printf("          %s has %s free\n", config->scratch_paths[d],
		       explanation->room_bytes[d] == UINT64_MAX
			       ? "an unknown amount"
			       : format_size(t.text[0],
					     explanation->room_bytes[d]));
}

static void print_unmeasured(const struct failure *reason)
{
	printf("disk      its rates could not be measured: %s%s%s; "
	       "--disk-rates "
	       "can tell them\n",
	       reason->what ? reason->what : "", reason->what ? ": " : "",
	       reason->why);
}

static void print_link(const struct external_rates *rates)
{
	struct texts t;

	if (rates->link == 0)
		puts("link      its rate is not known; --link-rate can tell "
		     "it");
	else
		printf("link      brings in %s/s, and takes out as much\n",
		       format_size(t.text[0], rates->link));
}

static void print_pass_time(const struct external_forecast *forecast,
			    enum external_pass pass)
{
	struct texts t;

	printf("          %-7s %s: reads %s, writes %s",
	       external_pass_name(pass),
	       format_duration(t.text[0], forecast->passes[pass].ns),
	       format_size(t.text[1], forecast->passes[pass].read_bytes),
	       format_size(t.text[2], forecast->passes[pass].written_bytes));
	if (forecast->passes[pass].sent_bytes > 0)
		printf(", sends %s",
		       format_size(t.text[3],
				   forecast->passes[pass].sent_bytes));
	printf("; limited by the %s\n",
	       external_limit_name(forecast->passes[pass].limit));
}

static void print_time(const struct external_explanation *explanation)
{
	const struct external_forecast *forecast = &explanation->forecast;
	const struct external_rates *rates = &explanation->rates;
	struct texts t;

	printf("disk      reads %s/s, writes %s/s, both at once %s/s\n",
	       format_size(t.text[0], rates->read),
	       format_size(t.text[1], rates->write),
	       format_size(t.text[2], rates->both));
	if (explanation->request.ranks.rank_count > 1)
		print_link(rates);
	printf("time      about %s\n",
	       format_duration(t.text[0], forecast->ns));
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		if (forecast->passes[p].ns > 0)
			print_pass_time(forecast, (enum external_pass)p);
}

static void print_in_memory(const struct sorter_result *result)
{
	struct texts t;

	if (result->memory_bytes > 0 && result->io != INPUT_AUTO)
		printf("in memory it would take %s, as %s\n",
		       format_size(t.text[0], result->memory_bytes),
		       describe_input(result->io));
}

/* Reading a hole asks no disk. */
static void print_holes(const struct sorter_config *sort)
{
	uint64_t bytes = 0, disk_bytes = 0;
	struct stat file;
	struct texts t;

	for (unsigned i = 0; i < sort->input_count; i++) {
		if (stat(sort->input_paths[i], &file) < 0 ||
		    !S_ISREG(file.st_mode))
			continue;
		bytes += (uint64_t)file.st_size;
		disk_bytes += 512 * (uint64_t)file.st_blocks;
	}
	if (disk_bytes < bytes / 2)
		printf("holes     only %s of %s are on the disk: the input is "
		       "read at another rate\n",
		       format_size(t.text[0], disk_bytes),
		       format_size(t.text[1], bytes));
}

void external_report_explain(const struct external_config *config,
			     const struct external_explanation *explanation,
			     const struct sorter_result *result)
{
	char refusal[REFUSAL_BYTES];

	print_plan(explanation);
	print_in_memory(result);
	if (explanation->plan.way == EXTERNAL_BY_RUNS)
		print_scratch(config, explanation);
	if (explanation->rates.both == 0)
		print_unmeasured(&explanation->unmeasured);
	else
		print_time(explanation);
	print_holes(config->sort);
	if (explanation->refused)
		printf("refused   blinksort does not do that: %s\n",
		       explanation->refused);
	if (explanation->refusal.status != EXIT_DONE)
		printf("refused   %s\n",
		       describe_refusal(&explanation->refusal, refusal));
}

static void print_sources(const char *memory, const char *threads)
{
	printf("\"memory_source\": ");
	if (memory)
		format_json_string(stdout, memory);
	else
		printf("null");
	printf(", \"threads_source\": ");
	format_json_string(stdout, threads);
}

void external_report_explain_memory(const struct sorter_result *result,
				    uint32_t record_size, bool json)
{
	char size[FORMAT_SIZE_BYTES], memory[FORMAT_SIZE_BYTES];

	if (json) {
		printf("{\"fits\": true, \"records\": %" PRIu64
		       ", \"bytes\": %" PRIu64 ", \"memory_bytes\": %" PRIu64
		       ", \"threads\": %u, ",
		       result->record_count, result->size_bytes,
		       result->memory_bytes, result->threads);
		print_sources(result->memory_source, result->threads_source);
		puts("}");
		return;
	}
	printf("input     %s: %" PRIu64 " records of %" PRIu32 " bytes\n"
	       "memory    %s suffice",
	       format_size(size, result->size_bytes), result->record_count,
	       record_size, format_size(memory, result->memory_bytes));
	if (result->io != INPUT_AUTO)
		printf(", as %s", describe_input(result->io));
	puts(":\n          it is sorted in memory, without scratch files");
	printf("threads   %u\n", result->threads);
	print_limits(result->memory_source, result->threads_source);
}

/* --- JSON ------------------------------------------------------------------
 */

static void print_rates(const struct external_rates *rates)
{
	if (rates->both == 0)
		printf("\"disk_rates\": null");
	else
		printf("\"disk_rates\": {\"read\": %" PRIu64
		       ", \"write\": %" PRIu64 ", \"both\": %" PRIu64 "}",
		       rates->read, rates->write, rates->both);
	if (rates->link == 0)
		printf(", \"link_rate\": null");
	else
		printf(", \"link_rate\": %" PRIu64, rates->link);
}

static void print_forecast(const struct external_forecast *forecast)
{
	if (forecast->ns == 0) {
		printf("\"predicted_ns\": null, \"predicted_passes\": null");
		return;
	}
	printf("\"predicted_ns\": %" PRIu64 ", \"predicted_passes\": [",
	       forecast->ns);
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		printf("%s{\"pass\": \"%s\", \"ns\": %" PRIu64
		       ", \"read_bytes\": %" PRIu64
		       ", \"written_bytes\": %" PRIu64
		       ", \"sent_bytes\": %" PRIu64 ", \"limit\": \"%s\"}",
		       p == 0 ? "" : ", ", external_pass_name(p),
		       forecast->passes[p].ns, forecast->passes[p].read_bytes,
		       forecast->passes[p].written_bytes,
		       forecast->passes[p].sent_bytes,
		       external_limit_name(forecast->passes[p].limit));
	putchar(']');
}

static void print_refused(const struct external_explanation *explanation)
{
	char text[REFUSAL_BYTES];

	if (explanation->refusal.status != EXIT_DONE)
		format_json_string(
			stdout, describe_refusal(&explanation->refusal, text));
	else if (explanation->refused)
		format_json_string(stdout, explanation->refused);
	else
		printf("null");
}

void external_report_explain_json(
	const struct external_config *config,
	const struct external_explanation *explanation)
{
	const struct external_plan *plan = &explanation->plan;
	const struct external_request *request = &explanation->request;

	printf("{\"fits\": false, \"records\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"memory_bytes\": %" PRIu64
	       ", \"way\": \"%s\", \"lanes\": %u, \"batches\": %u"
	       ", \"batch_bytes\": %" PRIu64 ", \"block_bytes\": %" PRIu64
	       ", \"runs\": %" PRIu64 ", \"pieces\": %" PRIu64
	       ", \"merges\": %" PRIu64 ", \"merged_bytes\": %" PRIu64
	       ", \"read_bytes\": %" PRIu64 ", \"spilled_bytes\": %" PRIu64
	       ", \"scratch_bytes\": %" PRIu64,
	       request->record_count,
	       request->record_count * request->shape.size,
	       request->memory_bytes, external_way_name(plan->way),
	       plan->lane_count, plan->batch_count,
	       plan->batch.capacity * request->shape.size,
	       (uint64_t)plan->block_records * request->shape.size,
	       plan->run_count, plan->piece_count, plan->merge_count,
	       plan->merged_records * request->shape.size, plan->read_bytes,
	       plan->spilled_records * request->shape.size,
	       plan->scratch_bytes);
	printf(", \"directories\": [");
	for (unsigned d = 0; d < explanation->directory_count; d++) {
		printf("%s{\"path\": ", d == 0 ? "" : ", ");
		format_json_string(stdout, config->scratch_paths[d]);
		if (explanation->room_bytes[d] == UINT64_MAX)
			printf(", \"free_bytes\": null}");
		else
			printf(", \"free_bytes\": %" PRIu64 "}",
			       explanation->room_bytes[d]);
	}
	printf("], \"threads\": %u, ", request->worker_count);
	print_sources(request->memory_source, request->threads_source);
	printf(", \"ranks\": %u, \"whole_records\": %" PRIu64 ", \"refused\": ",
	       MAX(1, request->ranks.rank_count), explanation->whole_records);
	print_refused(explanation);
	printf(", ");
	print_rates(&explanation->rates);
	printf(", ");
	print_forecast(&explanation->forecast);
	puts("}");
}

static void print_pass(const struct external_pass_result *pass,
		       enum external_pass number)
{
	printf("{\"pass\": \"%s\", \"ns\": %" PRIu64
	       ", \"read_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64
	       ", \"waits_ns\": {\"read\": %" PRIu64 ", \"batch_to_fill\": "
	       "%" PRIu64 ", \"write\": %" PRIu64 ", \"batch_to_empty\": "
	       "%" PRIu64 "}}",
	       external_pass_name(number), pass->ns, pass->read_bytes,
	       pass->written_bytes, pass->read_wait_ns, pass->fill_wait_ns,
	       pass->write_wait_ns, pass->empty_wait_ns);
}

static void print_outlook(const char *name, const struct codec_outlook *outlook)
{
	printf(", \"%s\": [", name);
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
		printf("%s{\"pass\": \"%s\", \"ns\": %" PRIu64
		       ", \"limit\": \"%s\"}",
		       p == 0 ? "" : ", ",
		       external_pass_name((enum external_pass)p),
		       outlook->passes[p].ns,
		       external_limit_name(outlook->passes[p].limit));
	putchar(']');
}

/* Why --compress=auto has chosen what it has. */
static void print_choice(const struct external_result *result)
{
	const struct codec_verdict *verdict = &result->verdict;

	if (!result->has_verdict) {
		printf("\"compress_choice\": null, ");
		return;
	}
	printf("\"compress_choice\": {\"sampled_bytes\": %" PRIu64
	       ", \"compressed_bytes\": %" PRIu64,
	       verdict->sample.plain_bytes, verdict->sample.stored_bytes);
	print_outlook("none_passes", &verdict->none);
	print_outlook("lz4_passes", &verdict->lz4);
	printf("}, ");
}

static void print_directories(const struct external_result *result)
{
	printf("\"directories\": [");
	for (unsigned d = 0; d < result->directory_count; d++) {
		printf("%s{\"path\": ", d == 0 ? "" : ", ");
		format_json_string(stdout, result->directory_paths[d]);
		printf(", \"written_bytes\": %" PRIu64 "}",
		       result->directory_bytes[d]);
	}
	printf("], ");
}

void external_report_json(const struct external_result *result)
{
	printf("{\"way\": \"%s\", \"lanes\": %u, \"batches\": %u, "
	       "\"batch_bytes\": %" PRIu64
	       ", \"block_bytes\": %u, \"runs\": %u, \"resident_runs\": %u"
	       ", \"merges\": %u, \"pieces\": %u, \"spilled_bytes\": %" PRIu64
	       ", \"scratch_peak_bytes\": %" PRIu64 ", ",
	       external_way_name(result->way), result->lane_count,
	       result->batch_count, result->batch_bytes, result->block_bytes,
	       result->run_count, result->resident_count, result->merge_count,
	       result->piece_count, result->spilled_bytes,
	       result->scratch_peak_bytes);
	printf("\"compress\": \"%s\", \"plain_bytes\": %" PRIu64
	       ", \"stored_bytes\": %" PRIu64 ", ",
	       codec_name(result->codec.kind), result->plain_bytes,
	       result->stored_bytes);
	print_choice(result);
	print_directories(result);
	print_rates(&result->rates);
	printf(", ");
	print_forecast(&result->forecast);
	printf(", \"predicted_after_ns\": ");
	if (result->forecast.ns == 0)
		printf("null");
	else
		printf("%" PRIu64, result->forecast_after_ns);
	printf(", \"passes\": [");
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		fputs(p == 0 ? "" : ", ", stdout);
		print_pass(&result->passes[p], p);
	}
	fputs("]}", stdout);
}

/* --- progress --------------------------------------------------------------
 */

static struct {
	uint64_t begin_ns, last_ns, last_bytes;
	bool is_drawn;
} line;

/* "45%", or "430.2 MiB" of an unknown total: with both, the line would be wider
 * than a terminal. */
static void format_moved(char *text, size_t text_bytes,
			 const struct external_progress *progress)
{
	char moved[FORMAT_SIZE_BYTES];

	if (progress->total_bytes == 0)
		snprintf(text, text_bytes, "%s",
			 format_size(moved, progress->moved_bytes));
	else
		snprintf(text, text_bytes, "%.0f%%",
			 100.0 * (double)progress->moved_bytes /
				 (double)progress->total_bytes);
}

void external_report_progress(void *context,
			      const struct external_progress *progress)
{
	char rate[FORMAT_SIZE_BYTES], moved[64], left[PROGRESS_LEFT_BYTES];
	char text[240];
	uint64_t now_ns = clock_now_ns();
	uint64_t bytes = progress->moved_bytes - line.last_bytes;
	bool is_stream =
		progress->pass == EXTERNAL_RUNS && progress->total_bytes == 0;

	(void)context;
	if (line.begin_ns == 0)
		line.begin_ns = line.last_ns = now_ns - NS_PER_S;
	format_moved(moved, sizeof(moved), progress);
	progress_format_rough_left(left, progress->moved_bytes,
				   progress->total_bytes,
				   now_ns - line.begin_ns);
	snprintf(text, sizeof(text),
		 "blinksort: %s: %s, %s/s%s; waits: %s %u%%, memory %u%%",
		 external_pass_name(progress->pass), moved,
		 format_size(rate,
			     (uint64_t)((double)bytes * 1e9 /
					(double)MAX(1, now_ns - line.last_ns))),
		 left, is_stream ? "input" : "disk",
		 progress->wait_disk_percent, progress->wait_memory_percent);
	progress_draw(STDERR_FILENO, text);
	line.last_ns = now_ns;
	line.last_bytes = progress->moved_bytes;
	line.is_drawn = true;
}

void external_report_end_progress(void)
{
	if (line.is_drawn)
		progress_draw(STDERR_FILENO, "");
	line.is_drawn = false;
}
