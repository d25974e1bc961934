/*
 * external_request.c - asks the machine for what the user left open, and
 * chooses the plan
 */
#include "external/external_request.h"

#include <float.h>
#include <stdio.h>

#include "base/base.h"
#include "base/format.h"
#include "sort/sort_setup.h"
#include "system/ramdisk.h"

/* The part of what the machine has that is taken if the user has not said how
 * much: the rest is for others, and for the page cache. */
#define MEMORY_SHARE(available) ((available) / 4 * 3)
/* No machine has more. */
#define MEMORY_MAX ((uint64_t)1 << 52)

/* A merge of input files takes so much, beside the records' entries of 8 bytes,
 * and so much for each file: more of it makes reads larger than a disk needs.
 */
#define MERGE_BYTES (256 * MIB)
#define MERGE_RUN_BYTES MIB
#define MERGE_RUN_RECORDS 8

static uint64_t merge_bytes(const struct external_request *request)
{
	return MERGE_BYTES + 8 * MERGE_BYTES / request->shape.size +
	       request->input_runs *
		       MAX(MERGE_RUN_BYTES,
			   MERGE_RUN_RECORDS * (uint64_t)request->shape.size);
}

/* True if all scratch files are memory: they must fit there beside the sort. */
static bool scratch_is_memory(const struct external_config *config)
{
	unsigned count =
		config->ranks.rank_count > 1 ? 0 : config->scratch_count;
	unsigned found = 0;

	while (found < count && ramdisk_has(config->scratch_paths[found]))
		found++;
	return count > 0 && found == count;
}

/* The user may not know of files that are memory themselves.  What ranks may
 * take is known by now. */
static bool must_ask(const struct external_request *request,
		     const struct external_config *config)
{
	if (request->memory_bytes == 0)
		return true;
	return config->ranks.rank_count <= 1 &&
	       (scratch_is_memory(config) ||
		sort_setup_output_memory(config->sort, 1) > 0);
}

/* The output of a stream that fits into the memory takes as much again. */
static void ask_memory(struct external_request *request,
		       const struct external_config *config)
{
	bool takes_output = sort_setup_output_memory(config->sort, 1) > 0;
	uint64_t given = request->memory_bytes;
	struct sort_memory memory;
	uint64_t most;

	sort_setup_ask_memory(
		&memory, config->sort,
		external_request_is_stream(request) ? 0 : request->record_count,
		1);
	most = MIN(memory.bytes, MEMORY_MAX);
	request->output_bytes = memory.output_bytes;
	if (scratch_is_memory(config) && !external_request_is_stream(request))
		request->available_bytes = MIN(memory.file_bytes, MEMORY_MAX);
	if (given == 0 || given > most)
		most = MEMORY_SHARE(most);
	if (takes_output && external_request_is_stream(request))
		most /= 2;
	if (given > 0 && given <= most)
		return;
	request->memory_bytes = MAX(1, most);
	request->memory_source = memory.source;
	if (request->input_runs > 0 && given == 0 &&
	    merge_bytes(request) < most) {
		request->memory_bytes = merge_bytes(request);
		request->memory_source = "input";
	}
}

void external_request_make(struct external_request *request,
			   const struct external_config *config,
			   uint64_t record_count, unsigned cpu_count)
{
	uint64_t records = MAX(record_count, config->ranks.planned_records);

	*request = (struct external_request){
		.shape = config->sort->shape,
		.record_count = records,
		.memory_bytes = config->sort->memory_bytes,
		.may_have_fewer = config->sort->threads == 0,
		.input_runs =
			config->merges_inputs ? config->sort->input_count : 0,
		.runs_max = config->runs_max,
		.codec = config->codec,
		.sums_up = config->sort->checksum,
		.head_records = config->sort->head_records < records
					? config->sort->head_records
					: 0,
		.written_size = config->sort->widening.bytes > 0
					? sorter_written(config->sort).bytes
					: 0,
		.ranks = config->ranks,
		.seek_bytes = external_rates_seek_bytes(&config->rates),
		.reads_apart = external_rates_apart(&config->rates),
	};
	request->worker_count = sort_setup_workers(
		config->sort, records, cpu_count, &request->threads_source);
	request->memory_source = config->sort->memory_option;
	if (must_ask(request, config))
		ask_memory(request, config);
}

/* Half the threads may take twice as long for each byte, where the CPU and not
 * the disk limits the sort: they pay if the bytes that are moved, with input
 * and output, fall below such a part. */
#define HALF_PART 0.7

static double moved(const struct external_plan *plan)
{
	return 2 + plan->cost;
}

/* Returns 0 or -ENOMEM. */
static int choose_workers(struct external_request *request,
			  struct external_plan *plan)
{
	struct external_request tried;
	double bar;
	int error;

	/* One thread is as fast as an arm, and asks for one place at a time. */
	if (request->may_have_fewer && request->worker_count > 1 &&
	    external_request_has_arm(request)) {
		request->worker_count = 1;
		request->threads_source = "disk";
	}
	tried = *request;
	error = external_plan_make(plan, request);
	bar = error ? DBL_MAX : moved(plan);
	while (request->may_have_fewer && tried.worker_count > 1) {
		struct external_plan half;

		tried.worker_count /= 2;
		bar *= HALF_PART;
		if (external_plan_make(&half, &tried) < 0 || moved(&half) > bar)
			continue;
		*plan = half;
		request->worker_count = tried.worker_count;
		request->threads_source = "memory";
		bar = moved(&half);
		error = 0;
	}
	return error;
}

static bool suffices(struct external_request *request, uint64_t memory_bytes)
{
	struct external_plan plan;

	request->memory_bytes = memory_bytes;
	return external_plan_make(&plan, request) == 0;
}

uint64_t external_request_memory_min(const struct external_request *request)
{
	struct external_request tried = *request;
	uint64_t low = MIB, high = 2 * MIB;

	if (request->may_have_fewer)
		tried.worker_count = 1;
	while (!suffices(&tried, high)) {
		high *= 2;
		if (high > MEMORY_MAX)
			return UINT64_MAX;
	}
	/* The search ends at the next MiB. */
	while (high - low > MIB) {
		uint64_t middle = low + (high - low) / 2;

		if (suffices(&tried, middle))
			high = middle;
		else
			low = middle;
	}
	high = ROUND_UP(high, MIB);
	/* The staging may grow by more than a little more memory brings. */
	while (!suffices(&tried, high))
		high += MIB;
	return high;
}

/* A user who gives --threads may not know that each of them takes memory. */
static uint64_t fewer_threads_min(const struct external_request *request)
{
	struct external_request tried = *request;

	tried.may_have_fewer = true;
	return external_request_memory_min(&tried);
}

static int refuse_memory(const struct external_request *request,
			 const struct external_config *config,
			 struct failure *failure)
{
	bool is_given = request->memory_bytes == config->sort->memory_bytes;
	const char *what = is_given ? config->sort->memory_option : "memory";
	uint64_t least = external_request_memory_min(request);
	char needed[FORMAT_SIZE_BYTES], allowed[FORMAT_SIZE_BYTES];
	char advice[FORMAT_SIZE_BYTES + 64] = "";
	char one[FORMAT_SIZE_BYTES];

	if (config->in_memory_bytes > 0)
		least = MIN(least, config->in_memory_bytes);
	if (least == UINT64_MAX)
		return failure_set(failure, EXIT_RESOURCES, what, 0,
				   "no memory suffices to sort this");
	if (request->output_bytes > 0)
		snprintf(advice, sizeof(advice),
			 " beside the output, which is memory");
	else if (request->worker_count > 1 && !request->may_have_fewer &&
		 fewer_threads_min(request) <= request->memory_bytes)
		snprintf(advice, sizeof(advice),
			 ": with --threads=1 it takes %s",
			 format_size_up(one, fewer_threads_min(request)));
	return failure_set(failure, EXIT_RESOURCES, what, 0,
			   "sorting this takes %s at least, and %s are %s%s",
			   format_size_up(needed, least),
			   format_size_down(allowed, request->memory_bytes),
			   is_given ? "allowed" : "available", advice);
}

/* True if the sort and its scratch files fit into the memory together, or the
 * scratch files are on disks. */
static bool fits(const struct external_request *request,
		 const struct external_plan *plan)
{
	return request->available_bytes == 0 || plan->scratch_bytes == 0 ||
	       request->memory_bytes + plan->scratch_bytes <=
		       request->available_bytes;
}

/* Halve the sort's memory, in which it may have so many workers, until its
 * scratch files fit beside it: they hardly grow by as much. */
static int leave_room(struct external_request *request, unsigned workers,
		      struct external_plan *plan, struct failure *failure)
{
	char needed[FORMAT_SIZE_BYTES], available[FORMAT_SIZE_BYTES];
	uint64_t least = UINT64_MAX;
	int error = 0;

	while (error == 0 && !fits(request, plan)) {
		least = MIN(least, request->memory_bytes + plan->scratch_bytes);
		request->memory_bytes /= 2;
		request->memory_source = "scratch files";
		request->worker_count = workers;
		error = choose_workers(request, plan);
	}
	if (error == 0)
		return 0;
	return failure_set(
		failure, EXIT_RESOURCES, "memory", 0,
		"sorting this takes %s with its scratch files, which "
		"are memory where -T or TMPDIR has them, and %s are "
		"available",
		format_size_up(needed, least),
		format_size_down(available, request->available_bytes));
}

/* Where each read costs a seek, two merges of few runs, by large reads, may
 * take less than one of all. */
static void merge_fewer(struct external_request *request,
			struct external_plan *plan)
{
	struct external_request tried = *request;
	struct external_plan fewer;

	/* A stream has no number of runs yet, and ranks agree on the runs of
	 * their merge. */
	if (plan->run_count == 0 || request->runs_max > 0 ||
	    request->ranks.rank_count > 1 ||
	    request->seek_bytes < EXTERNAL_ARM_BYTES)
		return;
	for (tried.runs_max = 2;
	     (uint64_t)tried.runs_max * tried.runs_max < plan->run_count;)
		tried.runs_max++;
	if (external_plan_make(&fewer, &tried) < 0 ||
	    fewer.cost >= plan->cost || !fits(&tried, &fewer))
		return;
	*plan = fewer;
	*request = tried;
}

int external_request_plan(struct external_request *request,
			  const struct external_config *config,
			  struct external_plan *plan, struct failure *failure)
{
	unsigned workers = request->worker_count;
	int error;

	if (choose_workers(request, plan) < 0)
		return refuse_memory(request, config, failure);
	error = leave_room(request, workers, plan, failure);
	if (error == 0)
		merge_fewer(request, plan);
	return error;
}
