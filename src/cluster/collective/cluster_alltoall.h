/*
 * cluster_alltoall.h - from each rank to each other one a message of its own
 */
#ifndef CLUSTER_ALLTOALL_H
#define CLUSTER_ALLTOALL_H

#include "exchange/exchange.h"

struct cluster_alltoall {
	/* The caller fills in these. */
	const struct rank *rank;
	/* [rank]: our messages; nothing goes to ourselves. */
	const uint8_t *own[RANK_NODES_MAX];
	uint64_t own_bytes[RANK_NODES_MAX];
	/* The same as in struct exchange_collective. */
	struct exchange_length (*length)(const void *context, unsigned source,
					 unsigned destination);
	const void *context;
	uint64_t bytes_max; /* of all that arrives; more is refused */

	/* What has arrived, one behind the other in rank order: that of rank i
	 * is all[offset[i]] up to all[offset[i + 1]]. */
	uint8_t *all;
	uint64_t offset[RANK_NODES_MAX + 1];
};

/* 0, or -errno with *failure filled.  In either case the caller frees all. */
int cluster_alltoall(struct cluster_alltoall *messages,
		     struct exchange *exchange, struct failure *failure);

#endif /* CLUSTER_ALLTOALL_H */
