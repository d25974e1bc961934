#include "external/external_request.h"

#include "base/base.h"
#include "base/format.h"
#include "sort/sort_setup.h"
#include "system/topology.h"

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
		.worker_count = sort_setup_workers(config->sort, record_count,
						   cpu_count),
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
			MEMORY_SHARE(topology_available_bytes());
}

int external_request_plan(const struct external_request *request,
			  const struct external_config *config,
			  struct external_plan *plan, struct failure *failure)
{
	char needed[FORMAT_SIZE_BYTES], allowed[FORMAT_SIZE_BYTES];
	uint64_t in_memory = config->in_memory_bytes, least;
	bool is_given = config->sort->memory_bytes > 0;

	if (external_plan_make(plan, request) == 0)
		return 0;
	least = external_plan_memory_min(request);
	format_size(needed, in_memory > 0 ? MIN(in_memory, least) : least);
	format_size(allowed, request->memory_bytes);
	return failure_set(failure, EXIT_RESOURCES,
			   is_given ? "--memory" : "memory", 0,
			   "sorting this takes %s at least, and %s are %s",
			   needed, allowed, is_given ? "allowed" : "available");
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
