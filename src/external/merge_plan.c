#include "external/merge_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "sort/plan.h"
#include "sort/tie_break.h"

/* --- the order of the blocks -----------------------------------------------
 */

/* Numbers of blocks count from the first run that is merged. */
static uint32_t first_block_of_all(const struct merge_plan *plan)
{
	return plan->index->runs[plan->first_run].first_block;
}

static uint32_t count_blocks(const struct merge_plan *plan)
{
	const struct run *last =
		&plan->index->runs[plan->first_run + plan->run_count - 1];

	return last->first_block + last->block_count - first_block_of_all(plan);
}

/*
 * Sort the blocks by their first keys.  Blocks ascend with runs, and within a
 * run, so the sorter's own stable sort of keys gives the order that is wanted.
 */
static int order_blocks(struct merge_plan *plan, enum cpu_level kernel,
			struct failure *failure)
{
	const struct run_index *index = plan->index;
	uint32_t first = first_block_of_all(plan);
	uint32_t count = count_blocks(plan);
	uint64_t *entries = malloc((count + 1) * sizeof(*entries));
	const struct tie_break tie_break = {
		.shape = &index->key_shape,
		.records = run_index_key(index, first),
		.index_bits = plan_index_bits(count),
		.sort = local_sort_kernel(kernel),
		.any = equal_keys_kernel(kernel),
	};
	uint64_t mask = UINT64_MAX << tie_break.index_bits;

	if (!entries)
		return failure_no_memory(failure);
	for (uint32_t i = 0; i < count; i++)
		entries[i] =
			(record_key_word(&index->key_shape,
					 run_index_key(index, first + i), 0) &
			 mask) |
			i;
	tie_break.sort(entries, count);
	tie_break_settle(&tie_break, entries, count);
	/* The words become numbers of half the size, from the front on. */
	plan->order = (uint32_t *)entries;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = first + (uint32_t)(entries[i] & ~mask);

		memcpy(&plan->order[i], &block, sizeof(block));
	}
	return 0;
}

/* --- cutting ---------------------------------------------------------------
 */

/* The walk over the blocks in order. */
struct cutter {
	struct merge_plan *plan;
	/* [run_count]: the next block of each run, and how many records the
	 * latest one has: no more can be its rest. */
	uint32_t *next_block;
	uint32_t *latest_records;
	uint64_t rest_records; /* the sum of these */
	uint32_t piece_capacity;
};

static unsigned find_run(const struct merge_plan *plan, uint32_t block)
{
	const struct run *runs = plan->index->runs + plan->first_run;
	unsigned low = 0, high = plan->run_count;

	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (runs[middle].first_block <= block)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Before piece number `piece`, if there is one, the walk has come to
 * order[end].
 */
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
		first = realloc(plan->first_block,
				capacity * plan->run_count * sizeof(*first));
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

static int cut(struct cutter *cutter, uint64_t piece_records,
	       struct failure *failure)
{
	struct merge_plan *plan = cutter->plan;
	uint32_t block_count = count_blocks(plan);
	uint64_t taken = 0;
	int error = 0;

	for (uint32_t i = 0; i < block_count && error == 0; i++) {
		uint32_t block = plan->order[i];
		unsigned run = find_run(plan, block);
		uint32_t records = plan->index->blocks[block].record_count;

		if (taken + records > piece_records && i > 0) {
			error = add_piece(cutter, i, failure);
			taken = cutter->rest_records;
		}
		if (taken + records > piece_records)
			return error ? error : -E2BIG;
		taken += records;
		cutter->next_block[run]++;
		cutter->rest_records -= cutter->latest_records[run];
		cutter->rest_records += records;
		cutter->latest_records[run] = records;
	}
	return error ? error : add_piece(cutter, block_count, failure);
}

unsigned merge_plan_runs_max(uint64_t piece_records, uint32_t block_records)
{
	/* Half of a piece for what is read, half for rests. */
	uint64_t blocks = piece_records / block_records / 2;

	/* The most that --batch-size may say. */
	return (unsigned)MIN(blocks, UINT16_MAX);
}

static int cut_all(struct merge_plan *plan, uint64_t piece_records,
		   struct failure *failure)
{
	struct cutter cutter = { .plan = plan };
	int error;

	cutter.next_block = calloc(plan->run_count, sizeof(uint32_t));
	cutter.latest_records = calloc(plan->run_count, sizeof(uint32_t));
	if (!cutter.next_block || !cutter.latest_records)
		error = failure_no_memory(failure);
	else
		error = begin_pieces(&cutter, failure);
	if (error == 0)
		error = cut(&cutter, piece_records, failure);
	free(cutter.next_block);
	free(cutter.latest_records);
	return error;
}

int merge_plan_make(struct merge_plan *plan, const struct run_index *index,
		    unsigned first_run, unsigned run_count, bool unique,
		    uint64_t piece_records, enum cpu_level kernel,
		    struct failure *failure)
{
	int error;

	*plan = (struct merge_plan){
		.index = index,
		.first_run = first_run,
		.run_count = run_count,
		.unique = unique,
	};
	error = order_blocks(plan, kernel, failure);
	if (error == 0)
		error = cut_all(plan, piece_records, failure);
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

/* --- within a block --------------------------------------------------------
 */

uint64_t merge_plan_count_before(const struct merge_plan *plan, uint32_t piece,
				 unsigned run, const uint8_t *records,
				 uint64_t count)
{
	const struct run_index *index = plan->index;
	uint64_t low = 0, high = count;
	uint32_t cut_block;
	unsigned cut_run;

	if (piece + 1 == plan->piece_count)
		return count;
	cut_block = plan->order[plan->piece_start[piece + 1]];
	cut_run = find_run(plan, cut_block);
	if (run == cut_run)
		return count;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = run_index_compare(
			index, records + middle * index->shape.size, cut_block);

		/* Of equal keys, those of earlier runs come before; or, if they
		 * are to meet, all of them behind. */
		if (order < 0 || (order == 0 && run < cut_run && !plan->unique))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
