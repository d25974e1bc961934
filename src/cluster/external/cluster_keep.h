/*
 * cluster_keep.h - runs that go to other ranks' scratch files in the first pass
 *
 * A giver is a rank that reads and does not keep.  It sends each batch, once it
 * is sorted, to its keeper (cluster_agree.h), which has it as a run from then
 * on (kept_runs.h).
 *
 * The batches are sent in waves; a wave is a collective of all ranks.  In each
 * wave a giver that has something to send, or may have it later, sends a slice
 * of a batch; or, so that one slow rank does not stop all, the head of a
 * message alone.  The pass ends with the first wave in which no rank sends
 * anything.
 */
#ifndef CLUSTER_KEEP_H
#define CLUSTER_KEEP_H

#include "cluster/collective/cluster_passes.h"
#include "cluster/external/cluster_runs.h"

/* Called before anything is read, when the limits have been told: do the
 * keepers take enough of their givers at once, and can they merge what they
 * will keep?  0 or -errno with *runs->failure filled. */
int cluster_keep_check(const struct cluster_runs *runs);

/* The first pass has begun: take part in all of its waves; none, if all ranks
 * that have records keep them.  What goes and comes is added to *pass.  0 or
 * -errno with *runs->failure filled. */
int cluster_keep_run(const struct cluster_runs *runs,
		     struct cluster_pass *pass);

#endif /* CLUSTER_KEEP_H */
