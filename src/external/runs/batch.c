/*
 * batch.c - lays out the memory of a batch, and keeps its order
 */
#include "external/runs/batch.h"

#include <assert.h>
#include <string.h>

/* Pieces that batch_lay_out() takes besides those of the bucketing. */
#define OWN_PIECES 2

struct plan batch_plan(const struct batch_request *request)
{
	const struct plan_request tables = {
		.shape = request->shape,
		.record_count = request->capacity,
		.slot_count = request->capacity,
		.worker_count = request->worker_count,
		.chunk_bytes_max = PAGE_BYTES,
	};
	struct plan plan;
	int error = plan_make(&plan, &tables);

	/* batch_capacity() finds no capacity that is too large. */
	assert(error == 0);
	(void)error;
	return plan;
}

static uint64_t key_span(const struct record_shape *shape)
{
	return shape->keys.end - shape->keys.begin;
}

/* The plan's memory is that of the tables.  What the orderer has once, for all
 * batches, is not the batch's: chunks of entries, and the entries of oversized
 * buckets. */
uint64_t batch_bytes(const struct batch_request *request)
{
	struct plan plan = batch_plan(request);
	uint64_t pieces = BUCKETING_PIECES(request->worker_count) + OWN_PIECES;
	uint64_t once = ((uint64_t)request->worker_count * plan.chunk_entries +
			 request->capacity) *
			8;

	return plan.memory_bytes - once +
	       request->capacity * request->shape.size +
	       key_span(&request->shape) + pieces * CACHE_PAIR_BYTES +
	       PAGE_BYTES;
}

/* Bytes are nearly in proportion to records, so each try leads to a better one;
 * every third halves what is left, where tables grow by leaps.  And with each
 * record they grow by its size at least, so a try bounds the answer from both
 * sides. */
uint64_t batch_capacity(const struct batch_request *request, uint64_t bytes)
{
	struct batch_request tried = *request;
	uint64_t size = request->shape.size;
	uint64_t low = 0, high = MIN(bytes / size, PLAN_RECORDS_MAX);
	uint64_t guess = high;

	for (unsigned i = 1; low < high; i++) {
		uint64_t middle = low + (high - low + 1) / 2;
		uint64_t taken, fewer;

		tried.capacity =
			i % 3 == 0 ? middle : MIN(MAX(guess, low + 1), high);
		taken = batch_bytes(&tried);
		guess = (uint64_t)((unsigned __int128)tried.capacity * bytes /
				   taken);
		if (taken <= bytes) {
			low = tried.capacity;
			high = MIN(high, low + (bytes - taken) / size);
			continue;
		}
		high = tried.capacity - 1;
		fewer = DIV_ROUND_UP(taken - bytes, size);
		low = MAX(low, tried.capacity - MIN(tried.capacity, fewer));
	}
	return low;
}

void batch_lay_out(struct batch *batch, const struct batch_request *request)
{
	struct arena *arena = &batch->memory;

	arena->used_bytes = 0;
	batch->plan = batch_plan(request);
	batch->capacity = request->capacity;
	batch->record_count = 0;
	batch->next = NULL;
	bucketing_take_lists(&batch->bucketing, &batch->plan,
			     request->worker_count, arena);
	bucketing_take_blocks(&batch->bucketing, &batch->plan, arena);
	batch->sorted = NULL;
	batch->common_key = arena_take(arena, key_span(&request->shape), 1);
	batch->records = arena_take(
		arena, request->capacity * request->shape.size, PAGE_BYTES);
}

void batch_lay_out_bare(struct batch *batch, uint64_t capacity)
{
	batch->capacity = capacity;
	batch->records = batch->memory.base;
}

void batch_begin(struct batch *batch, const struct sort_wiring *wiring,
		 const struct bucketing_config *config)
{
	struct sort_wiring own = *wiring;

	own.plan = &batch->plan;
	own.splitters = &batch->splitters;
	bucketing_begin(&batch->bucketing, &own, config);
	if (!config->counts)
		bucket_pool_reset(&batch->bucketing.pool);
}

uint64_t batch_count_crowded(struct batch *batch)
{
	struct bucket_set set = bucketing_set(&batch->bucketing);
	uint64_t crowded = 0;

	batch->record_count = 0;
	for (uint32_t b = 0; b < set.bucket_count; b++) {
		uint32_t count = bucket_set_count(&set, b);

		batch->record_count += count;
		if (count > PLAN_OVERSIZED_ENTRIES &&
		    !splitters_bucket_is_equal(&batch->splitters, b))
			crowded += count;
	}
	return crowded;
}

void batch_keep_order(struct batch *batch, const uint64_t *entries)
{
	struct arena buckets = bucketing_left_memory(&batch->bucketing);
	size_t bytes = batch->record_count * sizeof(*entries);
	uint64_t *sorted = arena_take(&buckets, bytes, CACHE_LINE_BYTES);

	memcpy(sorted, entries, bytes);
	batch->sorted = sorted;
}

void batch_compact(struct batch *batch, uint32_t record_size,
		   local_sort_fn *sort)
{
	uint64_t *slots = batch->sorted;
	uint8_t *target = batch->records;

	for (uint64_t i = 0; i < batch->record_count; i++)
		slots[i] &= batch_slot_mask(batch);
	sort(slots, batch->record_count);
	for (uint64_t i = 0; i < batch->record_count; i++) {
		memmove(target, batch->records + slots[i] * record_size,
			record_size);
		target += record_size;
	}
	batch->sorted = NULL;
}

void batch_adopt_key(struct splitters *splitters, uint8_t *common_key,
		     const struct record_shape *key_shape)
{
	memcpy(common_key,
	       splitters->common_record + splitters->common_shape->keys.begin,
	       key_shape->size);
	splitters->common_record = common_key;
	splitters->common_shape = key_shape;
}

void batch_copy_splitters(struct splitters *splitters, uint8_t *common_key,
			  const struct splitters *from)
{
	*splitters = *from;
	if (from->kind == SPLITTERS_SAMPLED)
		batch_adopt_key(splitters, common_key, from->common_shape);
}
