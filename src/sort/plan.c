/*
 * plan.c - computes every size of a run
 */
#include "sort/plan.h"

#include <errno.h>

#include "kernels/splitters.h"
#include "sort/buckets.h"
#include "sort/record_counts.h"

/* Records a bucket holds on average, within what the vector networks sort
 * without a quicksort before; and so that the lists of two workers rarely have
 * more than two blocks. */
#define BUCKET_RECORDS 104
/* A worker's list on average, or its last block would be empty for the most
 * part: dozens of workers would take more memory than the input.  But a bucket
 * must stay far from being oversized. */
#define LIST_RECORDS_MIN BUCKETS_BLOCK_ENTRIES
#define BUCKET_RECORDS_MAX (PLAN_OVERSIZED_ENTRIES / 2)
/* Sampled splitters are searched for each record, so that there are fewer. */
#define SAMPLED_BUCKET_RECORDS 1000
/* Static buckets at most: while fewer suffice for what the networks sort, up to
 * 10 million records, ordering is twice as fast as with a third as many, and
 * bucketing a tenth slower. */
#define BUCKETS_MAX 49152
/* Sampled keys a splitter: a bucket's size then varies by the root of an
 * eighth, about a third. */
#define SAMPLE_FACTOR 8
/* Chunks of output: as large as the output likes them, but so that every worker
 * has several and no worker waits long at the end. */
#define CHUNK_BYTES_MIN (128 * KIB)
#define CHUNKS_PER_WORKER 6
/* Below this for each a second thread costs more than it saves: it has to
 * start, and on a tmpfs all of them want pages of one file (results/NOTES.md).
 */
#define WORKER_BYTES_MIN (896 * KIB)
#define WORKER_BYTES_MIN_TMPFS (3 * MIB)

unsigned plan_index_bits(uint64_t slot_count)
{
	return slot_count <= 2 ? 1
			       : 64 - (unsigned)__builtin_clzll(slot_count - 1);
}

unsigned plan_workers(uint64_t size_bytes, bool is_to_tmpfs, unsigned allowed)
{
	uint64_t useful = size_bytes / (is_to_tmpfs ? WORKER_BYTES_MIN_TMPFS
						    : WORKER_BYTES_MIN);

	return (unsigned)MAX(1, MIN(useful, allowed));
}

/* Pieces of input that a worker takes at once: as long as a huge page if each
 * gets a good number of them. */
#define PIECE_BYTES_MAX HUGE_PAGE_BYTES
#define PIECE_BYTES_MIN (64 * KIB)
#define PIECES_PER_WORKER 16

static uint64_t piece_records_for(const struct plan_request *request)
{
	uint64_t size_bytes = request->record_count * request->shape.size;
	uint64_t piece = size_bytes /
			 ((uint64_t)request->worker_count * PIECES_PER_WORKER);

	piece = MIN(MAX(piece, PIECE_BYTES_MIN), PIECE_BYTES_MAX);
	return MAX(1, piece / request->shape.size);
}

static size_t chunk_bytes_for(const struct plan_request *request)
{
	uint64_t size_bytes = request->record_count * request->shape.size;
	uint64_t share = size_bytes /
			 ((uint64_t)request->worker_count * CHUNKS_PER_WORKER);
	size_t chunk = request->chunk_bytes_max;

	/* A lone worker waits for no other one at the end. */
	if (request->worker_count == 1)
		share = size_bytes;
	while (chunk > CHUNK_BYTES_MIN && chunk > share)
		chunk /= 2;
	return chunk;
}

uint32_t plan_buckets(uint64_t record_count)
{
	return (uint32_t)MAX(1,
			     MIN(record_count / BUCKET_RECORDS, BUCKETS_MAX));
}

static uint32_t buckets_for_workers(uint64_t record_count, unsigned workers)
{
	uint64_t bucket_records =
		MIN((uint64_t)workers * LIST_RECORDS_MIN, BUCKET_RECORDS_MAX);

	return (uint32_t)MAX(1, MIN(plan_buckets(record_count),
				    record_count / bucket_records));
}

uint32_t plan_splitters(uint64_t record_count)
{
	return (uint32_t)MAX(
		1, MIN(record_count / SAMPLED_BUCKET_RECORDS, SPLITTERS_MAX));
}

uint32_t plan_samples(uint64_t record_count, uint32_t splitters)
{
	return (uint32_t)MIN(record_count, (uint64_t)splitters * SAMPLE_FACTOR);
}

size_t plan_chunk_entries(size_t chunk_bytes, uint32_t record_size)
{
	return chunk_bytes / record_size + 2 + 2 * PLAN_OVERSIZED_ENTRIES +
	       LINE_ENTRIES;
}

/* Plan for records that are counted, none of which has an entry. */
static int plan_counts(struct plan *plan, const struct plan_request *request)
{
	*plan = (struct plan){
		.piece_records = piece_records_for(request),
		.staging_slots = request->staging_slots,
		.chunk_bytes = chunk_bytes_for(request),
	};
	plan->arena_bytes = record_counts_bytes(request->shape.size,
						request->worker_count) +
			    request->staging_slots * plan->chunk_bytes;
	plan->memory_bytes = request->input_memory_bytes + plan->arena_bytes;
	return 0;
}

int plan_make(struct plan *plan, const struct plan_request *request)
{
	uint64_t records = request->record_count;
	uint64_t workers = request->worker_count;
	uint64_t lists_bytes, pool_bytes, chunk_bytes, sample_bytes;

	if (records > PLAN_RECORDS_MAX || request->slot_count > UINT32_MAX)
		return -EOVERFLOW;
	if (request->is_counted)
		return plan_counts(plan, request);
	plan->index_bits = plan_index_bits(request->slot_count);
	plan->bucket_count =
		buckets_for_workers(records, request->worker_count);
	plan->splitters_wanted = plan_splitters(records);
	plan->list_count =
		MAX(plan->bucket_count, 2 * plan->splitters_wanted + 1);
	plan->sample_count = plan_samples(records, plan->splitters_wanted);
	if (request->bucket_count > 0)
		plan->bucket_count = plan->list_count = request->bucket_count;
	plan->block_count = (uint32_t)buckets_blocks_needed(
		records, plan->list_count, request->worker_count);
	plan->piece_records = piece_records_for(request);
	plan->staging_slots = request->staging_slots;
	plan->chunk_bytes = chunk_bytes_for(request);
	plan->chunk_entries =
		plan_chunk_entries(plan->chunk_bytes, request->shape.size);

	lists_bytes = plan->list_count * (workers * 12 + 8);
	pool_bytes =
		(uint64_t)plan->block_count * (BUCKETS_BLOCK_ENTRIES * 8 + 8) +
		plan->block_count / BUCKETS_GRANT_BLOCKS * 4;
	sample_bytes = (uint64_t)plan->sample_count * 16;
	chunk_bytes = workers * plan->chunk_entries * 8 +
		      request->staging_slots * plan->chunk_bytes;
	plan->arena_bytes = lists_bytes + pool_bytes + records * 8 +
			    sample_bytes + chunk_bytes;
	plan->memory_bytes = request->input_memory_bytes + plan->arena_bytes;
	return 0;
}
