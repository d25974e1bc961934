/*
 * run_index.c - grows, orders and searches the index of runs
 */
#include "external/runs/run_index.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "sort/plan.h"
#include "sort/tie_break.h"

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

/* --- growing -------------------------------------------------------------- */

/* Grow by a quarter at least, so that all copies together take a few times as
 * long as one. */
static uint64_t grown(uint64_t capacity, uint64_t wanted, uint64_t least)
{
	return MAX(MAX(wanted, least), capacity + capacity / 4);
}

static int grow_runs(struct run_index *index, uint64_t wanted,
		     struct failure *failure)
{
	uint64_t capacity = grown(index->run_capacity, wanted, RUNS_MIN);
	struct run *runs;

	if (wanted <= index->run_capacity)
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

int run_index_begin(struct run_index *index, uint64_t input_record,
		    uint64_t input_count, uint32_t block_count,
		    struct failure *failure)
{
	int error = grow_runs(index, index->run_count + 1, failure);

	if (error == 0)
		error = grow_blocks(index,
				    (uint64_t)index->block_count + block_count,
				    failure);
	if (error)
		return error;
	index->runs[index->run_count++] = (struct run){
		.first_block = index->block_count,
		.input_record = input_record,
		.input_count = input_count,
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

void run_index_join(struct run_index *index)
{
	const struct run *latest = &index->runs[--index->run_count];
	struct run *run = &index->runs[index->run_count - 1];

	for (uint32_t i = 0; i < latest->block_count; i++)
		index->blocks[latest->first_block + i].first_record +=
			(uint32_t)run->record_count;
	run->block_count += latest->block_count;
	run->record_count += latest->record_count;
	run->input_count += latest->input_count;
}

static uint8_t *key_at(const struct run_index *index, uint32_t block)
{
	return index->keys + (uint64_t)block * index->key_shape.size;
}

void run_index_set_key(struct run_index *index, uint32_t block,
		       const uint8_t *record)
{
	memcpy(key_at(index, block), record + index->shape.keys.begin,
	       index->key_shape.size);
}

int run_index_append(struct run_index *index, struct run_index *from,
		     struct failure *failure)
{
	uint32_t before = index->block_count;
	int error = grow_blocks(index, (uint64_t)before + from->block_count,
				failure);

	if (error == 0)
		error = grow_runs(index, index->run_count + from->run_count,
				  failure);
	if (error)
		return error;
	for (unsigned r = 0; r < from->run_count; r++) {
		index->runs[index->run_count] = from->runs[r];
		index->runs[index->run_count++].first_block += before;
	}
	if (from->block_count > 0) {
		memcpy(index->blocks + before, from->blocks,
		       from->block_count * sizeof(*from->blocks));
		memcpy(key_at(index, before), from->keys,
		       (size_t)from->block_count * from->key_shape.size);
	}
	index->block_count += from->block_count;
	run_index_free(from);
	return 0;
}

unsigned run_index_find(const struct run *runs, unsigned run_count,
			uint32_t block)
{
	unsigned low = 0, high = run_count;

	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (runs[middle].first_block <= block)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* --- the order of keys ---------------------------------------------------- */

uint32_t *run_index_order_keys(const struct record_shape *shape,
			       const uint8_t *keys, uint32_t count,
			       enum cpu_level kernel, struct failure *failure)
{
	uint64_t *entries = malloc(((size_t)count + 1) * sizeof(*entries));
	uint32_t *order = (uint32_t *)entries;
	const struct tie_break tie_break = {
		.shape = shape,
		.records = keys,
		.index_bits = plan_index_bits(count),
		.sort = local_sort_kernel(kernel),
		.any = equal_keys_kernel(kernel),
	};
	uint64_t mask = UINT64_MAX << tie_break.index_bits;

	if (!entries) {
		failure_no_memory(failure);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		entries[i] =
			(record_key_word(shape, keys + (size_t)i * shape->size,
					 0) &
			 mask) |
			i;
	tie_break.sort(entries, count);
	tie_break_settle(&tie_break, entries, count);
	/* The words become numbers of half the size, from the front on. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = (uint32_t)(entries[i] & ~mask);

		memcpy(&order[i], &number, sizeof(number));
	}
	return order;
}

/* --- the order of the input ----------------------------------------------- */

static int compare_runs(const void *a, const void *b)
{
	uint64_t first = ((const struct run *)a)->input_record;
	uint64_t second = ((const struct run *)b)->input_record;

	return (first > second) - (first < second);
}

static bool is_in_order(const struct run_index *index)
{
	for (unsigned r = 1; r < index->run_count; r++)
		if (compare_runs(&index->runs[r - 1], &index->runs[r]) > 0)
			return false;
	return true;
}

/*
 * from[place] is the block that is to go there.  Each place of a cycle takes
 * its block from the next, and the last one the first one's; then from[] says
 * that they are where they belong.  spare_key has room for one.
 */
static void move_cycle(struct run_index *index, uint32_t *from, uint32_t first,
		       uint8_t *spare_key)
{
	uint32_t key_bytes = index->key_shape.size;
	struct run_block block = index->blocks[first];
	uint32_t to = first, next;

	memcpy(spare_key, key_at(index, first), key_bytes);
	for (; (next = from[to]) != first; to = next) {
		index->blocks[to] = index->blocks[next];
		memcpy(key_at(index, to), key_at(index, next), key_bytes);
		from[to] = to;
	}
	index->blocks[to] = block;
	memcpy(key_at(index, to), spare_key, key_bytes);
	from[to] = to;
}

/* The blocks move to the places that they get by the order of the runs, each
 * once: an index may be too large for a second one beside it. */
static void reorder(struct run_index *index, uint32_t *from, uint8_t *spare_key)
{
	uint32_t place = 0;

	qsort(index->runs, index->run_count, sizeof(*index->runs),
	      compare_runs);
	for (unsigned r = 0; r < index->run_count; r++) {
		struct run *run = &index->runs[r];
		uint32_t block = run->first_block;

		run->first_block = place;
		for (uint32_t i = 0; i < run->block_count; i++)
			from[place++] = block++;
	}
	for (uint32_t i = 0; i < index->block_count; i++)
		move_cycle(index, from, i, spare_key);
}

int run_index_order(struct run_index *index, struct failure *failure)
{
	uint32_t *from;
	uint8_t *spare_key;
	int error = 0;

	if (is_in_order(index))
		return 0;
	from = calloc(index->block_count, sizeof(*from));
	spare_key = malloc(index->key_shape.size);
	if (from && spare_key)
		reorder(index, from, spare_key);
	else
		error = failure_no_memory(failure);
	free(from);
	free(spare_key);
	return error;
}

/* --- merging -------------------------------------------------------------- */

/*
 * The elements [from, end) of an array take the place of [begin, until): what
 * lies between until and from moves up behind them.  spare has room for the
 * elements [from, end).
 */
static void replace_part(void *array, size_t each_bytes, uint32_t begin,
			 uint32_t until, uint32_t from, uint32_t end,
			 void *spare)
{
	uint8_t *bytes = array;
	size_t new_bytes = (end - from) * each_bytes;

	memcpy(spare, bytes + from * each_bytes, new_bytes);
	memmove(bytes + begin * each_bytes + new_bytes,
		bytes + until * each_bytes, (from - until) * each_bytes);
	memcpy(bytes + begin * each_bytes, spare, new_bytes);
}

static bool are_neighbours(const struct run *run, const struct run *next)
{
	return run->input_record + run->input_count == next->input_record;
}

unsigned run_index_cheapest(const struct run_index *index, unsigned count_max,
			    unsigned *first)
{
	const struct run *runs = index->runs;
	double least = 0;
	unsigned found = 0;

	for (unsigned r = 0; r < index->run_count; r++) {
		double records = (double)runs[r].record_count;

		for (unsigned n = 1;
		     n < count_max && r + n < index->run_count &&
		     are_neighbours(&runs[r + n - 1], &runs[r + n]);
		     n++) {
			records += (double)runs[r + n].record_count;
			if (found > 0 && records / n >= least)
				continue;
			least = records / n;
			found = n + 1;
			*first = r;
		}
	}
	return found;
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
	replace_part(index->blocks, sizeof(*index->blocks), begin, until, from,
		     index->block_count, spare);
	replace_part(index->keys, index->key_shape.size, begin, until, from,
		     index->block_count, spare);
	free(spare);
	merged.first_block = begin;
	merged.input_record = runs[first].input_record;
	merged.input_count = 0;
	for (unsigned r = first; r < first + count; r++)
		merged.input_count += runs[r].input_count;
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
