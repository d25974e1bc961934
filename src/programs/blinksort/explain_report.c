/*
 * explain_report.c - prints what a sort would do, and how long it would take
 */
#include "programs/blinksort/explain_report.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format.h"
#include "base/json.h"
#include "programs/blinksort/external_options.h"
#include "programs/blinksort/external_report.h"
#include "programs/blinksort/sort_report.h"

/* --- as a text ------------------------------------------------------------ */

#define FORMAT_NS(ns) FORMAT_DURATION((uint64_t)sort_report_ns(ns))

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
		{ "disk", "the disk, which has an arm" },
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

#define FAILURE_TEXT_BYTES (FAILURE_WHY_BYTES + PATH_MAX)

static const char *describe_failure(const struct failure *failure,
				    char text[FAILURE_TEXT_BYTES])
{
	snprintf(text, FAILURE_TEXT_BYTES, "%s%s%s",
		 failure->what ? failure->what : "", failure->what ? ": " : "",
		 failure->why);
	return text;
}

static void print_size(unsigned rank_count, uint64_t whole_records,
		       uint64_t records, uint64_t size, uint64_t header_bytes)
{
	if (rank_count > 1)
		printf("ranks     %u, for %s: %" PRIu64
		       " records; of each of them:\n",
		       rank_count, FORMAT_SIZE(whole_records * size),
		       whole_records);
	printf("input     %s: %" PRIu64 " records of %" PRIu64 " bytes",
	       FORMAT_SIZE(records * size), records, size);
	if (header_bytes > 0)
		printf(", in each file behind a header of %" PRIu64,
		       header_bytes);
	putchar('\n');
}

/* So many times the input is read and written. */
static double input_passes(const struct external_explanation *explanation)
{
	const struct external_plan *plan = &explanation->plan;

	return 1 + (double)(plan->spilled_records + plan->merged_records) /
			   (double)MAX(1, explanation->request.record_count);
}

/* What memory is for, where the records are not sorted in runs. */
static const char *describe_way(enum external_way way)
{
	switch (way) {
	case EXTERNAL_BY_KEYS:
		return "all keys fit; they are sorted, and each record is read "
		       "once";
	case EXTERNAL_BY_HEAD:
		return "the first records fit, and stay there; nothing is "
		       "spilled";
	default:
		return "records of this size are counted, and written from the "
		       "counts";
	}
}

static void print_plan(const struct external_config *config,
		       const struct external_explanation *explanation)
{
	const struct external_plan *plan = &explanation->plan;
	const struct external_request *request = &explanation->request;
	uint64_t size = request->shape.size;
	uint64_t kept = request->record_count - plan->spilled_records;

	print_size(request->ranks.rank_count, explanation->whole_records,
		   request->record_count, sorter_input_size(config->sort),
		   config->sort->header_bytes);
	if (config->sort->widening.bytes > 0)
		printf("          to each of them %u bytes are appended\n",
		       config->sort->widening.bytes);
	printf("threads   %u read, and as many sort and write\n",
	       request->worker_count);
	print_limits(request->memory_source, request->threads_source);
	if (request->head_records > 0)
		printf("head      only the first %" PRIu64 " are written, %s\n",
		       request->head_records,
		       FORMAT_SIZE(request->head_records * size));
	if (plan->way != EXTERNAL_BY_RUNS) {
		printf("memory    %s: %s\n", FORMAT_SIZE(request->memory_bytes),
		       describe_way(plan->way));
		return;
	}
	printf("memory    %s: %u batch%s of %s, staging %s, index %s\n",
	       FORMAT_SIZE(request->memory_bytes), plan->batch_count,
	       plan->batch_count == 1 ? ", in turns," : "es",
	       FORMAT_SIZE(plan->batch.capacity * size),
	       FORMAT_SIZE(plan->slot_count * plan->slot_bytes +
			   (uint64_t)plan->reader_count * plan->read_depth *
				   plan->read_slot_bytes),
	       FORMAT_SIZE(plan->index_bytes));
	if (plan->lane_count > 1)
		printf("devices   %u are read side by side\n",
		       plan->lane_count);
	if (request->input_runs > 0)
		printf("inputs    %u, each in order: they are merged\n",
		       request->input_runs);
	else
		printf("runs      %" PRIu64 "; %s are spilled, %s %s\n",
		       plan->run_count,
		       FORMAT_SIZE(plan->spilled_records * size),
		       FORMAT_SIZE(kept * size),
		       request->head_records > 0
			       ? "stay in memory or are not wanted"
			       : "stay in memory");
	if (explanation->may_reread)
		puts("          a batch in order is not spilled, but read "
		     "again");
	if (plan->merge_count > 0)
		printf("merges    about %" PRIu64
		       ", of %s, before the last, since there are so many "
		       "runs\n",
		       plan->merge_count,
		       FORMAT_SIZE(plan->merged_records * size));
	printf("pieces    %" PRIu64 ", each by reads of %s from each %s%s\n",
	       plan->piece_count, FORMAT_SIZE(plan->read_bytes),
	       request->input_runs > 0 ? "input" : "run",
	       plan->merge_areas == 1 ? ", read and written in turns" : "");
	printf("passes    %s%.2f: so many times the input is read and "
	       "written\n",
	       plan->merge_count > 0 ? "about " : "",
	       input_passes(explanation));
}

static void print_scratch(const struct external_config *config,
			  const struct external_explanation *explanation)
{
	printf("scratch   %s\n", FORMAT_SIZE(explanation->plan.scratch_bytes));
	for (unsigned d = 0; d < explanation->directory_count; d++) {
		const char *neighbour = external_options_neighbour(config, d);

		printf("          %s has %s free\n", config->scratch_paths[d],
		       explanation->room_bytes[d] == UINT64_MAX
			       ? "an unknown amount"
			       : FORMAT_SIZE(explanation->room_bytes[d]));
		if (neighbour)
			printf("          and is on the rotating disk of %s: "
			       "-T on another disk is faster\n",
			       neighbour);
	}
}

static void print_link(const struct external_rates *rates)
{
	if (rates->link == 0)
		puts("link      its rate is not known; --link-rate can tell "
		     "it");
	else
		printf("link      brings in %s/s, and takes out as much\n",
		       FORMAT_SIZE(rates->link));
}

static void print_pass(const struct pass_forecast *pass)
{
	printf("          %-7s %s: reads %s, writes %s", pass->name,
	       FORMAT_DURATION(pass->ns), FORMAT_SIZE(pass->read_bytes),
	       FORMAT_SIZE(pass->written_bytes));
	if (pass->sent_bytes > 0)
		printf(", sends %s", FORMAT_SIZE(pass->sent_bytes));
	printf("; limited by the %s\n", external_limit_names[pass->limit]);
	if (pass->seeks > 0)
		printf("                  %" PRIu64 " other places of the disk "
		       "cost %s of it\n",
		       pass->seeks, FORMAT_DURATION(pass->seeks_ns));
}

static void print_time(uint64_t ns, const struct pass_forecast *passes,
		       unsigned pass_count)
{
	printf("time      about %s\n", FORMAT_DURATION(ns));
	for (unsigned p = 0; p < pass_count; p++)
		if (passes[p].ns > 0)
			print_pass(&passes[p]);
}

/* What ranks with the same roles do in each pass, and what limits them. */
static void print_roles(const struct roles_choice *choice)
{
	if (choice->list[0])
		printf("roles     chosen: --roles=%s\n", choice->list);
	for (unsigned roles = 1; roles <= CLUSTER_ROLES_ALL; roles++) {
		const struct roles_group *group = &choice->groups[roles];

		if (group->rank_count == 0)
			continue;
		printf("roles     %u %s", group->rank_count,
		       group->rank_count == 1 ? "rank" : "ranks");
		for (enum cluster_role r = 0; r < CLUSTER_ROLES; r++)
			if (cluster_roles_have(roles, r))
				printf(" %s", cluster_role_names[r]);
		puts(":");
		for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
			if (group->forecast.passes[p].ns > 0)
				print_pass(&group->forecast.passes[p]);
	}
}

static void print_disk(const struct external_rates *rates)
{
	printf("disk      reads %s/s, writes %s/s, both at once %s/s\n",
	       FORMAT_SIZE(rates->read), FORMAT_SIZE(rates->write),
	       FORMAT_SIZE(rates->both));
	if (rates->requests > 0)
		printf("          serves %" PRIu64 " small reads a second from "
		       "anywhere\n",
		       rates->requests);
}

static void print_in_memory(const struct sorter_result *result)
{
	if (result->memory_bytes > 0 && result->io != INPUT_AUTO)
		printf("in memory it would take %s, as %s\n",
		       FORMAT_SIZE(result->memory_bytes),
		       describe_input(result->io));
}

/* Reading a hole asks no disk. */
static void print_holes(const struct sorter_config *sort)
{
	uint64_t bytes = 0, disk_bytes = 0;
	struct stat file;

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
		       FORMAT_SIZE(disk_bytes), FORMAT_SIZE(bytes));
}

static void print_external(const struct external_config *config,
			   const struct external_explanation *explanation,
			   const struct roles_choice *choice,
			   const struct sorter_result *result)
{
	char why[FAILURE_TEXT_BYTES];

	print_plan(config, explanation);
	print_in_memory(result);
	if (explanation->plan.way == EXTERNAL_BY_RUNS)
		print_scratch(config, explanation);
	if (explanation->rates.both == 0) {
		printf("disk      its rates could not be measured: %s; "
		       "--disk-rates can tell them\n",
		       describe_failure(&explanation->unmeasured, why));
	} else {
		print_disk(&explanation->rates);
		if (explanation->request.ranks.rank_count > 1)
			print_link(&explanation->rates);
		print_time(explanation->forecast.ns,
			   explanation->forecast.passes, EXTERNAL_PASSES);
		print_roles(choice);
	}
	print_holes(config->sort);
	if (explanation->refused)
		printf("refused   blinksort does not do that: %s\n",
		       explanation->refused);
	if (explanation->refusal.status != EXIT_DONE)
		printf("refused   %s\n",
		       describe_failure(&explanation->refusal, why));
}

/* What the exchange would take, by each schedule. */
static void print_exchange(const struct memory_forecast *forecast)
{
	const double *ns = forecast->schedules_ns;

	printf("exchange  rounds %s, all-at-once %s, grid of %ux%u %s; "
	       "--schedule=auto takes %s\n",
	       FORMAT_NS(ns[EXCHANGE_ROUNDS]),
	       FORMAT_NS(ns[EXCHANGE_ALL_AT_ONCE]), forecast->rows,
	       forecast->columns, FORMAT_NS(ns[EXCHANGE_GRID]),
	       exchange_schedule_names[forecast->chosen]);
	printf("          the link alone %s\n", FORMAT_NS(forecast->link_ns));
	if (forecast->compressed_ns > 0)
		printf("          compressed by lz4 first %s: records are sent "
		       "%s\n",
		       FORMAT_NS(forecast->compressed_ns),
		       forecast->compresses ? "so" : "as they are");
}

static void print_memory(const struct external_config *config,
			 const struct memory_explanation *explanation,
			 const struct sorter_result *result)
{
	print_size(explanation->rank_count, explanation->whole_records,
		   result->record_count, config->sort->shape.size,
		   explanation->header_bytes);
	printf("memory    %s suffice", FORMAT_SIZE(result->memory_bytes));
	if (result->io != INPUT_AUTO)
		printf(", as %s", describe_input(result->io));
	puts(":\n          it is sorted in memory, without scratch files");
	printf("threads   %u\n", result->threads);
	print_limits(result->memory_source, result->threads_source);
	if (config->rates.both > 0)
		print_disk(&config->rates);
	if (explanation->rank_count > 1)
		print_link(&config->rates);
	if (explanation->rank_count > 1 && explanation->forecast.has_exchange)
		print_exchange(&explanation->forecast);
	if (explanation->forecast.ns > 0)
		print_time(explanation->forecast.ns,
			   explanation->forecast.passes, MEMORY_PASSES);
}

/* --- JSON ----------------------------------------------------------------- */

#define PLAN_SCHEMA "blinksort-plan-1"

static void print_exchange_json(const struct memory_forecast *forecast)
{
	const double *ns = forecast->schedules_ns;

	if (!json_open_known("exchange", forecast->has_exchange, '{'))
		return;
	json_text("schedule", exchange_schedule_names[forecast->chosen]);
	json_decimal("message_bytes", forecast->message_bytes, 0);
	json_decimal("link_ns", forecast->link_ns, 0);
	json_decimal("rounds_ns", ns[EXCHANGE_ROUNDS], 0);
	json_decimal("all_at_once_ns", ns[EXCHANGE_ALL_AT_ONCE], 0);
	json_decimal("auto_ns", ns[EXCHANGE_AUTO], 0);
	json_decimal("grid_ns", ns[EXCHANGE_GRID], 0);
	json_number("rows", forecast->rows);
	json_number("columns", forecast->columns);
	json_bool("compresses", forecast->compresses);
	json_known("compressed_ns", forecast->compressed_ns > 0,
		   sort_report_ns(forecast->compressed_ns));
	json_close('}');
}

static void print_memory_json(const struct external_config *config,
			      const struct memory_explanation *explanation,
			      const struct sorter_result *result)
{
	json_begin(PLAN_SCHEMA);
	json_bool("fits", true);
	json_number("records", result->record_count);
	json_number("bytes", result->size_bytes);
	json_number("memory_bytes", result->memory_bytes);
	json_number("threads", result->threads);
	json_text("memory_source", result->memory_source);
	json_text("threads_source", result->threads_source);
	json_number("ranks", explanation->rank_count);
	json_number("whole_records", explanation->whole_records);
	external_report_rates(&config->rates);
	external_report_forecast(explanation->forecast.ns,
				 explanation->forecast.passes, MEMORY_PASSES);
	print_exchange_json(&explanation->forecast);
	json_end();
}

static void print_roles_json(const struct roles_choice *choice)
{
	json_text("roles", choice->list[0] ? choice->list : NULL);
	json_open("role_groups", '[');
	for (unsigned roles = 0; roles <= CLUSTER_ROLES_ALL; roles++) {
		const struct roles_group *group = &choice->groups[roles];

		if (group->rank_count == 0)
			continue;
		json_open(NULL, '{');
		json_number("ranks", group->rank_count);
		sort_report_roles(roles);
		external_report_forecast(group->forecast.ns,
					 group->forecast.passes,
					 EXTERNAL_PASSES);
		json_close('}');
	}
	json_close(']');
}

static void print_plan_json(const struct external_explanation *explanation)
{
	const struct external_plan *plan = &explanation->plan;
	const struct external_request *request = &explanation->request;
	uint64_t size = request->shape.size;

	json_text("way", external_way_names[plan->way]);
	json_bool("merges_inputs", request->input_runs > 0);
	json_number("lanes", plan->lane_count);
	json_number("batches", plan->batch_count);
	json_number("batch_bytes", plan->batch.capacity * size);
	json_number("block_bytes", plan->block_records * size);
	json_number("runs", plan->run_count);
	json_number("pieces", plan->piece_count);
	json_number("merges", plan->merge_count);
	json_number("merged_bytes", plan->merged_records * size);
	json_number("read_bytes", plan->read_bytes);
	json_number("spilled_bytes", plan->spilled_records * size);
	json_bool("may_reread", explanation->may_reread);
	json_number("scratch_bytes", plan->scratch_bytes);
	json_decimal("input_passes", input_passes(explanation), 4);
}

static void
print_directories_json(const struct external_config *config,
		       const struct external_explanation *explanation)
{
	json_open("directories", '[');
	for (unsigned d = 0; d < explanation->directory_count; d++) {
		json_open(NULL, '{');
		json_text("path", config->scratch_paths[d]);
		json_known("free_bytes",
			   explanation->room_bytes[d] != UINT64_MAX,
			   explanation->room_bytes[d]);
		json_text("rotating_disk_of",
			  external_options_neighbour(config, d));
		json_close('}');
	}
	json_close(']');
}

static void print_external_json(const struct external_config *config,
				const struct external_explanation *explanation,
				const struct roles_choice *choice)
{
	const struct external_request *request = &explanation->request;
	char text[FAILURE_TEXT_BYTES];

	json_begin(PLAN_SCHEMA);
	json_bool("fits", false);
	json_number("records", request->record_count);
	json_number("bytes",
		    request->record_count * sorter_input_size(config->sort));
	json_number("memory_bytes", request->memory_bytes);
	print_plan_json(explanation);
	print_directories_json(config, explanation);
	json_number("threads", request->worker_count);
	json_text("memory_source", request->memory_source);
	json_text("threads_source", request->threads_source);
	json_number("ranks", MAX(1, request->ranks.rank_count));
	json_number("whole_records", explanation->whole_records);
	json_text("refused",
		  explanation->refusal.status != EXIT_DONE
			  ? describe_failure(&explanation->refusal, text)
			  : explanation->refused);
	external_report_rates(&explanation->rates);
	external_report_forecast(explanation->forecast.ns,
				 explanation->forecast.passes, EXTERNAL_PASSES);
	print_roles_json(choice);
	json_end();
}

/* --- either --------------------------------------------------------------- */

void explain_report_memory(const struct external_config *config,
			   const struct memory_explanation *explanation,
			   const struct sorter_result *result, bool json)
{
	if (json)
		print_memory_json(config, explanation, result);
	else
		print_memory(config, explanation, result);
}

void explain_report_external(const struct external_config *config,
			     const struct external_explanation *explanation,
			     const struct roles_choice *choice,
			     const struct sorter_result *result, bool json)
{
	if (json)
		print_external_json(config, explanation, choice);
	else
		print_external(config, explanation, choice, result);
}
