/*
 * cluster_gaps.h - close the gaps that dropped duplicates leave in the one file
 * of all ranks
 *
 * In a sort beyond memory a rank learns how many records it keeps only when it
 * has written them.  So each rank writes from where its share begins, and a gap
 * stays at the end of each share.  Then the ranks move their records down, one
 * rank after the other, in the order of their shares: what a rank overwrites is
 * a gap, or has been moved before.
 */
#ifndef CLUSTER_GAPS_H
#define CLUSTER_GAPS_H

#include "cluster/output/cluster_output.h"

/* All ranks call it when their workers have ended.  The output was opened for
 * share_count records of ours, of which the first kept_count have been handed
 * over.  A rank that does not sort has no output, and gives 0 for both.  0 or
 * -errno with *failure filled. */
int cluster_gaps_close(struct cluster_output *output, uint64_t share_count,
		       uint64_t kept_count, struct failure *failure);

#endif /* CLUSTER_GAPS_H */
