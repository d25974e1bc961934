#include "programs/blinksort/suppose_options.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"
#include "cluster/agreement/cluster_agree.h"
#include "io/input/input.h"
#include "io/output/output.h"
#include "net/rank.h"
#include "sort/plan.h"
#include "sort/record_counts.h"

/* More than any published sort had; blinksort sorts by RANK_NODES_MAX. */
#define RANKS_MAX UINT16_MAX
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

int suppose_options_take(struct options_reader *reader,
			 struct suppose_options *suppose,
			 struct failure *failure)
{
	const char *colon = strchr(reader->value, ':');
	uint64_t ranks = 0;
	char text[32];

	snprintf(text, sizeof(text), "%.*s",
		 colon ? (int)MIN(colon - reader->value, 31) : 0,
		 reader->value);
	if (!colon || parse_u64(text, 1, RANKS_MAX, &ranks) < 0 ||
	    parse_u64(colon + 1, 1, INT64_MAX, &suppose->record_count) < 0)
		return options_refuse(reader, failure,
				      "not RANKS:RECORDS, up to %d ranks and "
				      "all their records, such as "
				      "100:1000000000000",
				      RANKS_MAX);
	suppose->rank_count = (unsigned)ranks;
	return 0;
}

/* What this process would take in memory, the input past the page cache. */
static uint64_t alone_bytes(const struct external_request *request)
{
	const struct plan_request wanted = {
		.shape = request->shape,
		.record_count = request->record_count,
		.slot_count = request->record_count,
		.input_memory_bytes = input_layout_bytes(request->record_count *
							 request->shape.size),
		.worker_count = request->worker_count,
		.is_counted = record_counts_suit(&request->shape),
		.chunk_bytes_max = OUTPUT_CHUNK_BYTES_MAX,
	};
	struct plan plan;

	return plan_make(&plan, &wanted) < 0 ? UINT64_MAX : plan.memory_bytes;
}

static uint64_t together_bytes(const struct suppose_options *suppose,
			       const struct external_request *request)
{
	const struct cluster_hello hello = {
		.shape = request->shape,
		.record_count = request->record_count,
		.memory_bytes = request->memory_bytes,
		.input_bytes = input_layout_bytes(request->record_count *
						  request->shape.size),
	};

	return cluster_needed_bytes(&hello, suppose->record_count,
				    suppose->rank_count);
}

static const char *find_refusal(const struct external_request *request)
{
	if (request->ranks.rank_count > RANK_NODES_MAX)
		return "it has at most " TEXT(RANK_NODES_MAX) " ranks";
	return NULL;
}

int suppose_options_explain(const struct suppose_options *suppose,
			    const struct external_config *config,
			    struct sorter_result *result, bool *fits,
			    struct external_explanation *explanation,
			    struct failure *failure)
{
	uint64_t count =
		DIV_ROUND_UP(suppose->record_count, suppose->rank_count);
	uint32_t size = config->sort->shape.size;
	struct external_config supposed = *config;
	int error;

	if (count > CLUSTER_INPUT_BYTES_MAX / size)
		return failure_set(failure, EXIT_USAGE, "--suppose", 0,
				   "more than 32 TiB for each rank");
	if (suppose->rank_count > 1) {
		supposed.ranks.rank_count = suppose->rank_count;
		supposed.ranks.part_records = supposed.ranks.planned_records =
			count;
	}
	error = external_sort_suppose(&supposed, count, explanation, failure);
	*result = (struct sorter_result){
		.record_count = count,
		.size_bytes = count * size,
		.threads = explanation->request.worker_count,
		.threads_source = explanation->request.threads_source,
		.memory_source = explanation->request.memory_source,
		.memory_bytes =
			suppose->rank_count > 1
				? together_bytes(suppose, &explanation->request)
				: alone_bytes(&explanation->request),
	};
	/* A sort in memory may suffice where one in runs does not. */
	*fits = result->memory_bytes <= explanation->request.memory_bytes;
	if (*fits)
		return 0;
	explanation->whole_records = suppose->record_count;
	explanation->refused = find_refusal(&explanation->request);
	return error;
}
