/*
 * cluster_division.h - the ranks divide an input that all of them read
 *
 * While the reading teams of all ranks claim batches (reading_claims.h), the
 * ranks tell each other now and then how far they have come, and divide the
 * rest anew (input_division.h).  They go on until nothing is left to be
 * divided, which all find in the same collective.
 *
 * All functions belong to the thread that has the exchange.
 */
#ifndef CLUSTER_DIVISION_H
#define CLUSTER_DIVISION_H

#include "cluster/external/cluster_runs.h"

/* The first pass has begun, and the limits of all ranks are known: each rank
 * reads its equal part first.  Divide the records anew while the reading teams
 * go on, until all of them have been given out: runs->spans then has the parts
 * of each rank.  0 or -errno with *runs->failure filled. */
int cluster_divide(struct cluster_runs *runs);

#endif /* CLUSTER_DIVISION_H */
