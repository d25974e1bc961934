/*
 * given_runs.c - hands sorted batches to the thread that sends them
 */
#include "external/ranks/given_runs.h"

#include <string.h>

#include "base/first_failure.h"
#include "external/runs/batch.h"
#include "external/ranks/kept_runs.h"

void given_runs_init(struct given_runs *given, uint32_t record_size,
		     const struct thread_pool *pool,
		     const struct first_failure *failure)
{
	given->record_size = record_size;
	given->pool = pool;
	given->failure = failure;
}

/* --- the leader of the ordering team -------------------------------------- */

bool given_runs_offer(struct given_runs *given, const struct batch *batch,
		      uint64_t input_record, uint64_t input_count)
{
	uint32_t sent =
		atomic_load_explicit(&given->sent, memory_order_acquire);

	given->batch = batch;
	given->input_record = input_record;
	given->input_count = input_count;
	atomic_fetch_add_explicit(&given->offered, 1, memory_order_release);
	while (!first_failure_stops(given->failure) &&
	       atomic_load_explicit(&given->sent, memory_order_acquire) == sent)
		thread_pool_wait_while(given->pool, &given->sent, sent);
	return !first_failure_stops(given->failure);
}

/* --- the thread that has the exchange ------------------------------------- */

bool given_runs_have(const struct given_runs *given)
{
	return atomic_load_explicit(&given->offered, memory_order_acquire) !=
	       atomic_load_explicit(&given->sent, memory_order_relaxed);
}

uint64_t given_runs_record_count(const struct given_runs *given)
{
	return given->batch->record_count;
}

void given_runs_write_head(const struct given_runs *given, uint8_t *head)
{
	memset(head, 0, KEPT_RUNS_HEAD_BYTES);
	store_le64(head, given->input_record);
	store_le64(head + 8, given->input_count);
	store_le64(head + 16, given->batch->record_count);
}

void given_runs_copy(const struct given_runs *given, uint64_t offset_bytes,
		     uint8_t *target, size_t byte_count)
{
	const struct batch *batch = given->batch;
	uint32_t size = given->record_size;
	uint64_t record = offset_bytes / size;
	size_t skip = offset_bytes % size;

	while (byte_count > 0) {
		size_t length = MIN(byte_count, size - skip);

		memcpy(target,
		       batch->records + batch_slot(batch, record) * size + skip,
		       length);
		target += length;
		byte_count -= length;
		skip = 0;
		record++;
	}
}

void given_runs_sent(struct given_runs *given)
{
	thread_pool_set(
		given->pool, &given->sent,
		atomic_load_explicit(&given->sent, memory_order_relaxed) + 1);
}
