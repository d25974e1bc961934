/*
 * chunk_range.h - the sink's chunks that hold a range of the sorted whole, and
 * which worker takes which
 *
 * A sink divides each of its parts into chunks (sink.h).  The range's first and
 * last records may lie anywhere: then it fills the first and the last chunk
 * that it touches in part, as it does with the chunks of a part where it begins
 * or ends.  The functions are pure arithmetic.
 */
#ifndef CHUNK_RANGE_H
#define CHUNK_RANGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "io/output/sink.h"
#include "system/thread_pool.h"
#include "system/topology.h"

struct chunk_range {
	const struct sink *sink;
	uint32_t record_size; /* each part is a multiple of it */
	/* Records of the whole that are in the range. */
	uint64_t first_record, end_record;
	uint64_t chunk_count; /* chunks that it touches */
};

/* What of a chunk is in the range. */
struct chunk {
	unsigned part;	     /* of the sink */
	uint64_t begin_byte; /* in the part */
	uint64_t end_byte;
	/* Records that lie there, if only with some bytes; they are numbered in
	 * the range. */
	uint64_t first_record;
	uint64_t end_record;
};

/* record_count records from first_record on, or as many as the sink holds from
 * there on, if these are fewer.  The sink's geometry must be set. */
struct chunk_range chunk_range_of(const struct sink *sink, uint32_t record_size,
				  uint64_t first_record, uint64_t record_count);

/* number: below chunk_count. */
struct chunk chunk_range_at(const struct chunk_range *range, uint64_t number);

/*
 * Which chunks the workers of a NUMA node take first.  Each node has the next
 * range of chunks, as large as its share of the workers.  A worker takes the
 * chunks of its own node's range in order, and then what is left of other
 * ranges: so a node's workers write pages of their own node, and no worker
 * waits for another.  Where chunks must be taken in order, all nodes have one
 * range.
 */
struct chunk_share {
	/* Any worker raises it: the next chunk that nobody has taken. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next;
	uint64_t end; /* written by chunk_shares_deal() */
};

struct chunk_shares {
	unsigned count;
	struct chunk_share shares[TOPOLOGY_NODES_MAX];
};

/* Deal chunks, all of which are to be taken, before any worker takes one. */
void chunk_shares_deal(struct chunk_shares *shares, uint64_t chunk_count,
		       const struct thread_pool *pool, bool by_node);

/* The share that the worker tries after this number of other shares, which is
 * below count: its own node's first. */
static inline struct chunk_share *
chunk_shares_of(struct chunk_shares *shares, const struct thread_pool *pool,
		unsigned worker, unsigned others)
{
	unsigned own = shares->count > 1 ? pool->workers[worker].node : 0;

	return &shares->shares[(own + others) % shares->count];
}

#endif /* CHUNK_RANGE_H */
