#include "external/external_request.h"

#include <float.h>
#include <stdio.h>

#include "base/base.h"
#include "base/format.h"
#include "sort/sort_setup.h"
#include "system/allowance.h"

/* Of what the machine has, if the user has not said how much to take: the rest
 * is for others, and for the page cache. */
#define MEMORY_SHARE(available) ((available) / 4 * 3)

void external_request_make(struct external_request *request,
			   const struct external_config *config,
			   uint64_t record_count, unsigned cpu_count)
{
	*request = (struct external_request){
		.shape = config->sort->shape,
		.record_count = MAX(record_count, config->planned_records),
		.memory_bytes = config->sort->memory_bytes,
		.worker_count = sort_setup_workers(
			config->sort,
			MAX(record_count, config->planned_records),
			config->threads_max > 0
				? MIN(config->threads_max, cpu_count)
				: cpu_count),
		.may_have_fewer = config->sort->threads == 0,
		.runs_max = config->runs_max,
		.codec = config->codec,
		.sums_up = config->sort->checksum,
		.rank_count = config->rank_count,
		.share_records = config->share_records,
		.source_count = config->source_count,
		.kept_records = config->kept_records,
		.kept_most = config->kept_most,
		.keeper_count = config->keeper_count,
		.index_records = config->records_max,
	};
	if (request->memory_bytes == 0)
		request->memory_bytes =
			MEMORY_SHARE(allowance_memory_bytes());
}

/* Half the threads may take twice as long for each byte, where the CPU and not
 * the disk limits the sort: they pay if the bytes that are moved, with input
 * and output, fall below such a part. */
#define HALF_PART 0.7

static double moved(const struct external_plan *plan)
{
	return 2 + plan->cost;
}

int external_request_choose(struct external_request *request,
			    struct external_plan *plan)
{
	struct external_request tried = *request;
	int error = external_plan_make(plan, request);
	double bar = error ? DBL_MAX : moved(plan);

	while (request->may_have_fewer && tried.worker_count > 1) {
		struct external_plan half;

		tried.worker_count /= 2;
		bar *= HALF_PART;
		if (external_plan_make(&half, &tried) < 0 || moved(&half) > bar)
			continue;
		*plan = half;
		request->worker_count = tried.worker_count;
		bar = moved(&half);
		error = 0;
	}
	return error;
}

/* No machine has more. */
#define MEMORY_MAX ((uint64_t)1 << 52)

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
	/* To the next MiB. */
	while (high - low > MIB) {
		uint64_t middle = low + (high - low) / 2;

		if (suffices(&tried, middle))
			high = middle;
		else
			low = middle;
	}
	high = ROUND_UP(high, MIB);
	/* With a little more memory the staging may grow by more than that. */
	while (!suffices(&tried, high))
		high += MIB;
	return high;
}

/* Whoever gave --threads may not know that each of them takes memory. */
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
	bool is_given = config->sort->memory_bytes > 0;
	const char *what = is_given ? "--memory" : "memory";
	uint64_t least = external_request_memory_min(request);
	char needed[FORMAT_SIZE_BYTES], allowed[FORMAT_SIZE_BYTES];
	char fewer[FORMAT_SIZE_BYTES + 64] = "";
	char one[FORMAT_SIZE_BYTES];

	if (config->in_memory_bytes > 0)
		least = MIN(least, config->in_memory_bytes);
	if (least == UINT64_MAX)
		return failure_set(failure, EXIT_RESOURCES, what, 0,
				   "no memory suffices to sort this");
	if (request->worker_count > 1 && !request->may_have_fewer &&
	    fewer_threads_min(request) <= request->memory_bytes)
		snprintf(fewer, sizeof(fewer), ": with --threads=1 it takes %s",
			 format_size_up(one, fewer_threads_min(request)));
	return failure_set(failure, EXIT_RESOURCES, what, 0,
			   "sorting this takes %s at least, and %s are %s%s",
			   format_size_up(needed, least),
			   format_size_down(allowed, request->memory_bytes),
			   is_given ? "allowed" : "available", fewer);
}

int external_request_plan(struct external_request *request,
			  const struct external_config *config,
			  struct external_plan *plan, struct failure *failure)
{
	if (external_request_choose(request, plan) == 0)
		return 0;
	return refuse_memory(request, config, failure);
}

struct codec_work external_request_work(const struct external_request *request,
					const struct external_plan *plan,
					uint64_t least_link)
{
	uint64_t size = request->shape.size;

	if (request->record_count == EXTERNAL_RECORDS_UNKNOWN)
		return (struct codec_work){ 0 };
	return (struct codec_work){
		.whole_bytes = request->record_count * size,
		.spilled_bytes = plan->spilled_records * size,
		.merged_bytes = plan->merged_records * size,
		.rank_count = plan->rank_count,
		.link = least_link,
	};
}
