/*
 * merge_plan.c - puts blocks in order, and cuts the order into pieces
 */
#include "external/plan/merge_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

/* --- the order of the blocks ---------------------------------------------- */

static uint32_t count_blocks(const struct merge_plan *plan)
{
	uint32_t count = 0;

	for (unsigned r = 0; r < plan->run_count; r++)
		count += plan->index->runs[plan->first_run + r].block_count;
	return count;
}

/*
 * Sort the blocks by their first keys.  Blocks ascend with runs, and within a
 * run, so the sorter's own stable sort of keys gives the order that is wanted.
 */
static int order_blocks(struct merge_plan *plan, enum cpu_level kernel,
			struct failure *failure)
{
	/* There may be no run, where all ranks together have no records. */
	uint32_t first =
		plan->run_count > 0
			? plan->index->runs[plan->first_run].first_block
			: 0;
	uint32_t count = count_blocks(plan);

	plan->order = run_index_order_keys(&plan->index->key_shape,
					   run_index_key(plan->index, first),
					   count, kernel, failure);
	if (!plan->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		plan->order[i] += first;
	return 0;
}

/* --- cutting -------------------------------------------------------------- */

/* The walk over the blocks in order. */
struct cutter {
	const struct merge_request *request;
	struct merge_plan *plan;
	/* Records of the piece at hand, with the rest of the one before. */
	uint64_t taken;
	uint64_t *rank_bytes; /* [rank_count] */
	uint32_t *next_block; /* [run_count] */
	/* What the latest blocks of all runs have: no more can be their rests.
	 */
	uint64_t rest_records;
	uint32_t piece_capacity;
};

static unsigned find_run(const struct merge_plan *plan, uint32_t block)
{
	return run_index_find(plan->index->runs + plan->first_run,
			      plan->run_count, block);
}

/* The walk has come to order[end], where piece number `piece` begins, if there
 * is one. */
static int note_end(struct cutter *cutter, uint64_t piece, uint32_t end,
		    struct failure *failure)
{
	struct merge_plan *plan = cutter->plan;

	if (piece >= cutter->piece_capacity) {
		uint64_t capacity = 2 * (piece + 1);
		uint32_t *start =
			realloc(plan->piece_start, capacity * sizeof(*start));
		uint32_t *first;

		if (!start)
			return failure_no_memory(failure);
		plan->piece_start = start;
		first = realloc(plan->first_block, (capacity * plan->run_count +
						    1) * sizeof(*first));
		if (!first)
			return failure_no_memory(failure);
		plan->first_block = first;
		cutter->piece_capacity = (uint32_t)capacity;
	}
	plan->piece_start[piece] = end;
	memcpy(plan->first_block + piece * plan->run_count, cutter->next_block,
	       plan->run_count * sizeof(*cutter->next_block));
	return 0;
}

static int add_piece(struct cutter *cutter, uint32_t end,
		     struct failure *failure)
{
	uint32_t most = cutter->request->piece_count_max;

	if (most > 0 && cutter->plan->piece_count == most)
		return failure_set(failure, EXIT_RESOURCES, "memory", 0,
				   "too little: the merge takes more than %u "
				   "pieces",
				   most);
	return note_end(cutter, ++cutter->plan->piece_count, end, failure);
}

/* Where piece 0 begins, noted as where a piece before it would end. */
static int begin_pieces(struct cutter *cutter, struct failure *failure)
{
	struct merge_plan *plan = cutter->plan;

	for (unsigned r = 0; r < plan->run_count; r++)
		cutter->next_block[r] =
			plan->index->runs[plan->first_run + r].first_block;
	return note_end(cutter, 0, 0, failure);
}

/* The block does not fit into the piece any more. */
static bool is_full(const struct cutter *cutter, uint32_t block, unsigned rank)
{
	const struct merge_request *request = cutter->request;
	const struct run_block *next = &request->index->blocks[block];

	if (cutter->taken + next->record_count > request->piece_records)
		return true;
	return request->rank_bytes_max &&
	       cutter->rank_bytes[rank] + next->stored_bytes >
		       request->rank_bytes_max[rank];
}

static void begin_piece(struct cutter *cutter)
{
	cutter->taken = cutter->rest_records;
	memset(cutter->rank_bytes, 0,
	       cutter->request->rank_count * sizeof(*cutter->rank_bytes));
}

static void take_block(struct cutter *cutter, uint32_t block, unsigned run,
		       unsigned rank)
{
	const struct merge_plan *plan = cutter->plan;
	const struct run_block *own = &plan->index->blocks[block];

	cutter->taken += own->record_count;
	if (block > plan->index->runs[plan->first_run + run].first_block)
		cutter->rest_records -= own[-1].record_count;
	cutter->rest_records += own->record_count;
	cutter->next_block[run]++;
	if (cutter->request->rank_bytes_max)
		cutter->rank_bytes[rank] += own->stored_bytes;
}

/* Those come first in the order. */
static bool is_before_part(const struct merge_plan *plan, uint32_t block,
			   unsigned run)
{
	return plan->begin &&
	       run_cut_compare(plan->begin, &plan->index->key_shape,
			       run_index_key(plan->index, block), run) < 0;
}

static int cut(struct cutter *cutter, struct failure *failure)
{
	struct merge_plan *plan = cutter->plan;
	uint32_t block_count = count_blocks(plan);
	bool is_lead = plan->begin != NULL;
	int error = 0;

	for (uint32_t i = 0; i < block_count && error == 0; i++) {
		uint32_t block = plan->order[i];
		unsigned run = find_run(plan, block);
		unsigned rank = plan->index->runs[plan->first_run + run].rank;
		bool ends_lead = is_lead && !is_before_part(plan, block, run);

		if (ends_lead ||
		    (!is_lead && i > 0 && is_full(cutter, block, rank))) {
			error = add_piece(cutter, i, failure);
			begin_piece(cutter);
			is_lead = false;
		}
		if (is_full(cutter, block, rank))
			return error ? error : -E2BIG;
		take_block(cutter, block, run, rank);
	}
	if (is_lead && error == 0)
		error = add_piece(cutter, block_count, failure);
	return error ? error : add_piece(cutter, block_count, failure);
}

unsigned merge_plan_runs_max(uint64_t piece_records, uint32_t block_records)
{
	/* Half of a piece for what is read, half for rests. */
	uint64_t blocks = piece_records / block_records / 2;

	/* The most that --batch-size may say. */
	return (unsigned)MIN(blocks, UINT16_MAX);
}

static int cut_all(struct merge_plan *plan, const struct merge_request *request,
		   struct failure *failure)
{
	struct cutter cutter = { .plan = plan, .request = request };
	int error;

	/* One more: calloc(0) may return NULL. */
	cutter.next_block =
		calloc((size_t)plan->run_count + 1, sizeof(uint32_t));
	cutter.rank_bytes = calloc(request->rank_count + 1, sizeof(uint64_t));
	if (!cutter.next_block || !cutter.rank_bytes)
		error = failure_no_memory(failure);
	else
		error = begin_pieces(&cutter, failure);
	if (error == 0)
		error = cut(&cutter, failure);
	free(cutter.next_block);
	free(cutter.rank_bytes);
	return error;
}

int merge_plan_make(struct merge_plan *plan,
		    const struct merge_request *request,
		    struct failure *failure)
{
	int error;

	*plan = (struct merge_plan){
		.index = request->index,
		.first_run = request->first_run,
		.run_count = request->run_count,
		.unique = request->unique,
		.begin = request->begin,
		.end = request->end,
	};
	error = order_blocks(plan, request->kernel, failure);
	if (error == 0)
		error = cut_all(plan, request, failure);
	if (error)
		merge_plan_free(plan);
	return error;
}

void merge_plan_free(struct merge_plan *plan)
{
	free(plan->order);
	free(plan->piece_start);
	free(plan->first_block);
	memset(plan, 0, sizeof(*plan));
}

/* --- within a block ------------------------------------------------------- */

/* Where the piece ends.  Its key is NULL: behind all records. */
static struct run_cut find_end(const struct merge_plan *plan, uint32_t piece)
{
	uint32_t block;

	if (merge_plan_is_lead(plan, piece))
		return *plan->begin;
	if (piece + 1 == plan->piece_count)
		return plan->end ? *plan->end : (struct run_cut){ .key = NULL };
	block = plan->order[plan->piece_start[piece + 1]];
	return (struct run_cut){
		.key = run_index_key(plan->index, block),
		.run = find_run(plan, block),
	};
}

uint64_t merge_plan_count_before(const struct merge_plan *plan, uint32_t piece,
				 unsigned run, const uint8_t *records,
				 uint64_t count)
{
	const struct run_index *index = plan->index;
	const struct run_cut end = find_end(plan, piece);
	/* Equal keys of earlier runs come before; or, if they are to meet, all
	 * of them behind. */
	uint32_t number = plan->unique ? UINT32_MAX : run;
	uint64_t low = 0, high = count;

	if (!end.key || run == end.run)
		return count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		const uint8_t *record = records + middle * index->shape.size;

		if (run_cut_compare(&end, &index->key_shape,
				    record + index->shape.keys.begin,
				    number) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
