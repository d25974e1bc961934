#include "external/plan/index_plan.h"

#include "base/base.h"
#include "external/runs/run_index.h"

/* The parts of ranks are equal but for this part. */
#define RANK_INDEX_PART 8
/* An input of unknown length is planned as if it had so many times the memory;
 * or less, if the index of so many blocks would take more than its part of the
 * memory.  What does not fit into the index then can't be sorted. */
#define UNKNOWN_FACTOR 256
#define UNKNOWN_INDEX_PART 3

/* The index of a stream grows by quarters, so it is planned with one more. */
uint64_t index_plan_growing(uint64_t blocks)
{
	return blocks * 5 / 4;
}

/* Blocks of a stream that the index has room for.  Where the keys of a block
 * are nearly as long as the block, as much memory is for the one as for the
 * other. */
static uint64_t unknown_blocks(const struct external_plan *plan,
			       const struct external_request *request)
{
	uint64_t index = run_index_block_bytes(&request->shape);
	uint64_t block = (uint64_t)plan->block_records * request->shape.size;
	uint64_t blocks =
		MAX(request->memory_bytes / UNKNOWN_INDEX_PART / index,
		    request->memory_bytes / (index + block));

	return MIN(blocks, INDEX_PLAN_BLOCKS_MAX) / 5 * 4;
}

uint64_t index_plan_records(const struct external_plan *plan,
			    const struct external_request *request)
{
	uint64_t records;

	if (!external_request_is_stream(request))
		return request->record_count;
	records = request->memory_bytes / request->shape.size * UNKNOWN_FACTOR;
	return MIN(records,
		   unknown_blocks(plan, request) * plan->block_records);
}

uint64_t index_plan_runs(const struct external_plan *plan,
			 const struct external_request *request)
{
	uint64_t capacity = MAX(1, plan->batch.capacity);

	if (request->lanes)
		return lane_plan_batches(request->lanes, capacity);
	return DIV_ROUND_UP(index_plan_records(plan, request), capacity);
}

/* Each run may end with a block that is not full.  The index of runs of which
 * some are merged before the last merge has both versions of these for a while.
 */
uint64_t index_plan_blocks(const struct external_plan *plan,
			   const struct external_request *request)
{
	uint64_t runs = index_plan_runs(plan, request);
	unsigned runs_max =
		external_plan_runs_max(plan, request, plan->batch_count);
	uint64_t records =
		MAX(index_plan_records(plan, request), request->index_records);
	uint64_t blocks = DIV_ROUND_UP(records, plan->block_records);
	uint64_t more = runs > runs_max ? blocks / runs * (runs - runs_max) : 0;

	if (external_request_is_stream(request))
		return index_plan_growing(blocks);
	return blocks + runs + MIN(2 * more, blocks / 4);
}

/* What merge_plan.h keeps for each run of each piece, of which half is rests at
 * most. */
static uint64_t cuts_bytes(const struct external_plan *plan,
			   const struct external_request *request)
{
	uint64_t piece =
		MAX(2, external_plan_piece_records(plan, plan->batch_count));
	uint64_t pieces =
		DIV_ROUND_UP(index_plan_records(plan, request), piece / 2);
	uint64_t runs =
		MIN(index_plan_runs(plan, request),
		    external_plan_runs_max(plan, request, plan->batch_count));

	return pieces * runs * sizeof(uint32_t);
}

/* Before, runs of other ranks have an index for each of these, which grows by
 * quarters (run_index.c).  One after the other is then appended to that of all
 * runs, so there are two of the largest for a while. */
static uint64_t kept_blocks(const struct external_plan *plan,
			    const struct external_request *request)
{
	return DIV_ROUND_UP(request->kept_records / 4 + request->kept_most,
			    plan->block_records);
}

/* A rank has the index of its own runs and one of its part of all ranks' runs,
 * the cuts of both, and for a while the messages that tell of them. */
uint64_t index_plan_bytes(const struct external_plan *plan,
			  const struct external_request *request)
{
	uint64_t blocks = plan->index_blocks;
	uint64_t block_bytes = run_index_block_bytes(&request->shape);
	uint64_t share =
		DIV_ROUND_UP(request->share_records, plan->block_records);
	uint64_t merge;

	if (plan->rank_count == 1)
		return blocks * block_bytes + cuts_bytes(plan, request);
	share += share / RANK_INDEX_PART;
	merge = (blocks + share) * block_bytes * 3 / 2 +
		2 * plan->rank_count * cuts_bytes(plan, request);
	return MAX(merge, (blocks + kept_blocks(plan, request)) * block_bytes);
}
