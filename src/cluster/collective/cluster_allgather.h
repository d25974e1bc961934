/*
 * cluster_allgather.h - one message from each rank to all ranks, or to rank 0
 */
#ifndef CLUSTER_ALLGATHER_H
#define CLUSTER_ALLGATHER_H

#include <stdbool.h>

#include "exchange/exchange.h"

struct cluster_allgather {
	/* The caller fills in these. */
	const struct rank *rank;
	const uint8_t *own; /* our message */
	uint64_t own_bytes;
	/* The length of each rank's message, if all ranks know it beforehand:
	 * a rank that announces another length ends the run. */
	uint64_t bytes[RANK_NODES_MAX];
	/* Or, if it is not 0, the most that a message may be long. */
	uint64_t bytes_max;
	bool to_first_only; /* other ranks than 0 get nothing */

	/* The messages, one behind the other in rank order; ours is among them.
	 * Message i is all[offset[i]] up to all[offset[i + 1]].  The caller may
	 * say where they are to lie, with room for all that bytes[] or
	 * bytes_max allow; NULL: they are allocated. */
	uint8_t *all;
	uint64_t offset[RANK_NODES_MAX + 1];
};

/* 0, or -errno with *failure filled.  In either case the caller frees what was
 * allocated. */
int cluster_allgather(struct cluster_allgather *gather,
		      struct exchange *exchange, struct failure *failure);

/* The same where each rank tells `count` words of 64 bits, and no rank may tell
 * others than so many: all[] gets those of rank i from word i * count on. */
int cluster_allgather_words(const struct rank *rank, struct exchange *exchange,
			    const uint64_t *own, unsigned count, uint64_t *all,
			    struct failure *failure);

#endif /* CLUSTER_ALLGATHER_H */
