/*
 * chunk_range.c - computes which chunks hold a range, and deals them to nodes
 */
#include "sort/chunk_range.h"

#include <assert.h>

/* What of a part is in the range, in bytes from the part's beginning. */
struct share {
	uint64_t begin_byte;
	uint64_t end_byte;
	uint64_t first_chunk; /* of the part's chunks, the first one touched */
	uint64_t chunk_count;
};

/* part_record: the number of the part's first record in the whole. */
static struct share share_of(const struct chunk_range *range, unsigned part,
			     uint64_t part_record)
{
	const struct sink *sink = range->sink;
	uint64_t part_end =
		part_record + sink->part_bytes[part] / range->record_size;
	uint64_t first = MAX(range->first_record, part_record);
	uint64_t end = MIN(range->end_record, part_end);
	struct share share = { 0 };

	if (first >= end)
		return share;
	share.begin_byte = (first - part_record) * range->record_size;
	share.end_byte = (end - part_record) * range->record_size;
	share.first_chunk =
		(share.begin_byte + sink->lead_bytes) / sink->chunk_bytes;
	share.chunk_count = DIV_ROUND_UP(share.end_byte + sink->lead_bytes,
					 sink->chunk_bytes) -
			    share.first_chunk;
	return share;
}

struct chunk_range chunk_range_of(const struct sink *sink, uint32_t record_size,
				  uint64_t first_record, uint64_t record_count)
{
	struct chunk_range range = {
		.sink = sink,
		.record_size = record_size,
		.first_record = first_record,
		.end_record = first_record +
			      MIN(record_count, UINT64_MAX - first_record),
	};
	uint64_t part_record = 0;

	for (unsigned i = 0; i < sink->part_count; i++) {
		range.chunk_count +=
			share_of(&range, i, part_record).chunk_count;
		part_record += sink->part_bytes[i] / record_size;
	}
	return range;
}

struct chunk chunk_range_at(const struct chunk_range *range, uint64_t number)
{
	const struct sink *sink = range->sink;
	uint32_t record_size = range->record_size;
	struct chunk chunk = { 0 };
	struct share share;
	uint64_t part_record = 0;

	for (;; chunk.part++) {
		share = share_of(range, chunk.part, part_record);
		if (number < share.chunk_count)
			break;
		number -= share.chunk_count;
		part_record += sink->part_bytes[chunk.part] / record_size;
	}
	number += share.first_chunk;
	chunk.begin_byte = MAX(number * sink->chunk_bytes,
			       share.begin_byte + sink->lead_bytes) -
			   sink->lead_bytes;
	chunk.end_byte =
		MIN((number + 1) * sink->chunk_bytes - sink->lead_bytes,
		    share.end_byte);
	/* If the range begins within this part, this wraps around, and the sums
	 * are right. */
	part_record -= range->first_record;
	chunk.first_record = part_record + chunk.begin_byte / record_size;
	chunk.end_record =
		part_record + DIV_ROUND_UP(chunk.end_byte, record_size);
	return chunk;
}

void chunk_shares_deal(struct chunk_shares *shares, uint64_t chunk_count,
		       const struct thread_pool *pool, bool by_node)
{
	uint64_t begin = 0;
	unsigned workers = 0;

	assert(pool->worker_count > 0);
	shares->count = by_node ? pool->node_count : 1;
	for (unsigned i = 0; i < shares->count; i++) {
		struct chunk_share *share = &shares->shares[i];

		for (unsigned w = 0; w < pool->worker_count; w++)
			workers += !by_node || pool->workers[w].node == i;
		share->end = chunk_count * workers / pool->worker_count;
		atomic_init(&share->next, begin);
		begin = share->end;
	}
}
