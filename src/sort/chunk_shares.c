#include "sort/chunk_shares.h"

#include <assert.h>

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
