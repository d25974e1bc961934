/*
 * chunk_shares.h - which chunks the workers of a NUMA node take first
 *
 * Each node has the next range of chunks, as large as its share of the workers.
 * A worker takes the chunks of its own node's range in order, and then what is
 * left of other ranges: so a node's workers write pages of their own node, and
 * no worker waits for another.  Where chunks must be taken in order, all nodes
 * have one range.
 */
#ifndef CHUNK_SHARES_H
#define CHUNK_SHARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "system/thread_pool.h"
#include "system/topology.h"

struct chunk_share {
	/* Any worker raises it: the next chunk that nobody has taken. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next;
	uint64_t end; /* written by chunk_shares_deal() */
};

struct chunk_shares {
	unsigned count;
	struct chunk_share shares[TOPOLOGY_NODES_MAX];
};

/* Before any worker takes a chunk: all of them are to be taken. */
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

#endif /* CHUNK_SHARES_H */
