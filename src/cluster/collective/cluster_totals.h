/*
 * cluster_totals.h - how many records each rank gets in all, where ranks know
 * only what comes to themselves
 *
 * Two collectives of 8 bytes for each pair of ranks: each rank tells each other
 * what it has for it, and adds up what it hears; then each tells all its sum.
 * So a rank never gets the n * n numbers of which these are the sums
 * (exchange_knows_all()).
 */
#ifndef CLUSTER_TOTALS_H
#define CLUSTER_TOTALS_H

#include "exchange/exchange.h"

struct cluster_totals {
	/* The caller fills in these.  [rank]: records that this rank has for
	 * it, its own ones included. */
	const uint64_t *sent;
	uint64_t whole_count; /* of all ranks' records */
	/* [rank], by cluster_totals_learn(): records that it gets. */
	uint64_t *shares;
};

/* A collective.  0 or -errno with *failure filled: EXIT_PEER if the sums are
 * not those of whole_count records. */
int cluster_totals_learn(struct cluster_totals *totals, const struct rank *rank,
			 struct exchange *exchange, struct failure *failure);

#endif /* CLUSTER_TOTALS_H */
