#include "external/run_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

/* Runs that the index has room for at first, and blocks. */
#define RUNS_MIN 64
#define BLOCKS_MIN 1024

struct record_shape run_index_key_shape(const struct record_shape *shape)
{
	struct record_shape keys = *shape;
	uint32_t begin = shape->keys.begin;

	keys.size = shape->keys.end - begin;
	for (unsigned i = 0; i < keys.keys.field_count; i++)
		keys.keys.fields[i].offset -= begin;
	key_list_complete(&keys.keys, keys.size);
	return keys;
}

void run_index_init(struct run_index *index, const struct record_shape *shape,
		    uint32_t block_records)
{
	*index = (struct run_index){
		.shape = *shape,
		.key_shape = run_index_key_shape(shape),
		.block_records = block_records,
	};
}

void run_index_free(struct run_index *index)
{
	free(index->runs);
	free(index->blocks);
	free(index->keys);
	memset(index, 0, sizeof(*index));
}

uint64_t run_index_block_bytes(const struct record_shape *shape)
{
	/* merge_plan.h sorts one word for each block. */
	return sizeof(struct run_block) + sizeof(uint64_t) +
	       (shape->keys.end - shape->keys.begin);
}

/* --- growing ---------------------------------------------------------------
 */

/* Grow by a quarter at least, so that all copies together take a few times as
 * long as one. */
static uint64_t grown(uint64_t capacity, uint64_t wanted, uint64_t least)
{
	return MAX(MAX(wanted, least), capacity + capacity / 4);
}

static int grow_runs(struct run_index *index, struct failure *failure)
{
	uint64_t capacity =
		grown(index->run_capacity, index->run_count + 1, RUNS_MIN);
	struct run *runs;

	if (index->run_count < index->run_capacity)
		return 0;
	runs = realloc(index->runs, capacity * sizeof(*runs));
	if (!runs)
		return failure_no_memory(failure);
	index->runs = runs;
	index->run_capacity = (unsigned)capacity;
	return 0;
}

int run_index_reserve(struct run_index *index, uint64_t capacity,
		      struct failure *failure)
{
	struct run_block *blocks;
	uint8_t *keys;

	if (capacity <= index->block_capacity)
		return 0;
	if (capacity > UINT32_MAX)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "the runs have more blocks than %u",
				   UINT32_MAX);
	blocks = realloc(index->blocks, capacity * sizeof(*blocks));
	if (!blocks)
		return failure_no_memory(failure);
	index->blocks = blocks;
	keys = realloc(index->keys, capacity * index->key_shape.size);
	if (!keys)
		return failure_no_memory(failure);
	index->keys = keys;
	index->block_capacity = (uint32_t)capacity;
	return 0;
}

static int grow_blocks(struct run_index *index, uint64_t wanted,
		       struct failure *failure)
{
	if (wanted <= index->block_capacity)
		return 0;
	return run_index_reserve(
		index, grown(index->block_capacity, wanted, BLOCKS_MIN),
		failure);
}

int run_index_begin(struct run_index *index, uint32_t block_count,
		    struct failure *failure)
{
	int error = grow_runs(index, failure);

	if (error == 0)
		error = grow_blocks(index,
				    (uint64_t)index->block_count + block_count,
				    failure);
	if (error)
		return error;
	index->runs[index->run_count++] = (struct run){
		.first_block = index->block_count,
	};
	return 0;
}

uint32_t run_index_extend(struct run_index *index, uint64_t record_count)
{
	struct run *run = &index->runs[index->run_count - 1];
	uint32_t first_block = index->block_count;

	while (record_count > 0) {
		uint32_t count =
			(uint32_t)MIN(record_count, index->block_records);

		index->blocks[index->block_count++] = (struct run_block){
			.first_record = (uint32_t)run->record_count,
			.record_count = count,
		};
		run->block_count++;
		run->record_count += count;
		record_count -= count;
	}
	return first_block;
}

void run_index_set_key(struct run_index *index, uint32_t block,
		       const uint8_t *record)
{
	memcpy(index->keys + (uint64_t)block * index->key_shape.size,
	       record + index->shape.keys.begin, index->key_shape.size);
}

/* --- merging ---------------------------------------------------------------
 */

/*
 * Of an array, the elements [from, end) take the place of [begin, until): what
 * lies between until and from moves up behind them.  spare has room for the
 * elements [from, end).
 */
static void splice(void *array, size_t each_bytes, uint32_t begin,
		   uint32_t until, uint32_t from, uint32_t end, void *spare)
{
	uint8_t *bytes = array;
	size_t new_bytes = (end - from) * each_bytes;

	memcpy(spare, bytes + from * each_bytes, new_bytes);
	memmove(bytes + begin * each_bytes + new_bytes,
		bytes + until * each_bytes, (from - until) * each_bytes);
	memcpy(bytes + begin * each_bytes, spare, new_bytes);
}

int run_index_replace(struct run_index *index, unsigned first, unsigned count,
		      struct failure *failure)
{
	struct run *runs = index->runs;
	unsigned latest = index->run_count - 1;
	struct run merged = runs[latest];
	uint32_t begin = runs[first].first_block;
	uint32_t until = runs[first + count - 1].first_block +
			 runs[first + count - 1].block_count;
	uint32_t from = merged.first_block;
	uint32_t dropped = until - begin;
	void *spare =
		malloc((size_t)merged.block_count *
		       MAX(sizeof(struct run_block), index->key_shape.size));

	if (!spare)
		return failure_no_memory(failure);
	splice(index->blocks, sizeof(*index->blocks), begin, until, from,
	       index->block_count, spare);
	splice(index->keys, index->key_shape.size, begin, until, from,
	       index->block_count, spare);
	free(spare);
	merged.first_block = begin;
	runs[first] = merged;
	memmove(&runs[first + 1], &runs[first + count],
		(latest - first - count) * sizeof(*runs));
	index->run_count -= count;
	index->block_count -= dropped;
	for (unsigned r = first + 1; r < index->run_count; r++)
		runs[r].first_block =
			runs[r - 1].first_block + runs[r - 1].block_count;
	return 0;
}
