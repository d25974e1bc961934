/*
 * cluster_keep.h - runs that go to other ranks' scratch files in the first pass
 *
 * A rank that reads and does not keep sends each batch, once it is sorted, to
 * its keeper, which has it as a run from then on.  Which rank that is follows
 * from the hellos.
 */
#ifndef CLUSTER_KEEP_H
#define CLUSTER_KEEP_H

#include "cluster/cluster_agree.h"
#include "external/external_sort.h"

/* [rank]: the rank that keeps its runs, which is itself if it keeps.  Ranks
 * that do not keep are given, one after the other, to the keeper that has the
 * fewest records by then. */
void cluster_keep_choose(const struct cluster_hello *hellos,
			 unsigned node_count, uint8_t *keeper);

/* What the roles and the inputs of all ranks mean for the sort of this one. */
void cluster_keep_configure(struct external_config *config,
			    const struct cluster_hello *hellos,
			    const struct cluster_agreement *agreement,
			    const struct rank *rank);

#endif /* CLUSTER_KEEP_H */
