/*
 * cluster_keepers.h - which rank keeps whose runs
 *
 * All ranks conclude it from the hellos.
 */
#ifndef CLUSTER_KEEPERS_H
#define CLUSTER_KEEPERS_H

#include "cluster/agreement/cluster_agree.h"
#include "net/rank.h"

/* keeper[rank]: the rank that keeps its runs, which is itself if it keeps.
 * Ranks that do not keep are dealt out to the keepers in rank order, neighbours
 * to the same keeper, so that each keeps about as many records: only runs that
 * are neighbours in the input can be merged before the last merge. */
void cluster_keepers_choose(const struct cluster_hello *hellos,
			    unsigned node_count, uint16_t *keeper);

/* Does the rank have records that another one keeps? */
bool cluster_keepers_is_source(const struct cluster_hello *hellos,
			       const uint16_t *keeper, unsigned rank);

/* How many parts of the input are there whose runs the rank keeps?  Neighbours
 * in the input are one part. */
unsigned cluster_keepers_parts(const struct cluster_hello *hellos,
			       unsigned node_count, const uint16_t *keeper,
			       unsigned rank);

#endif /* CLUSTER_KEEPERS_H */
