/*
 * cluster_keep.h - runs that go to other ranks' scratch files in the first pass
 *
 * A rank that reads and does not keep sends each batch, once it is sorted, to
 * its keeper (cluster_keepers.h), which has it as a run from then on
 * (kept_runs.h).
 *
 * The batches are sent in waves; a wave is a collective of all ranks.  In each
 * wave a rank that has something to send, or may have it later, sends a slice
 * of a batch; or, so that one slow rank does not stop all, the head of a
 * message alone.  The pass ends with the first wave in which no rank sends
 * anything.
 */
#ifndef CLUSTER_KEEP_H
#define CLUSTER_KEEP_H

#include "cluster/agreement/cluster_keepers.h"
#include "cluster/collective/cluster_progress.h"
#include "cluster/external/cluster_runs.h"
#include "cluster/collective/cluster_stages.h"
#include "external/external_rank.h"

struct cluster_keep {
	/* The caller fills in these. */
	struct exchange *exchange;
	const struct rank *rank;
	const struct cluster_hello *hellos;
	const struct cluster_runs *runs; /* with the limits */
	struct external_rank *own;	 /* whose first pass has begun */
	struct cluster_progress *progress;

	struct cluster_wave_result result;

	/* Private. */
	uint16_t keeper[RANK_NODES_MAX];
	/* Which ranks the rank's sources are, in rank order. */
	uint16_t source[RANK_NODES_MAX];
	unsigned source_count;
	struct given_runs *given; /* NULL: we keep */
	struct kept_runs *kept;	  /* NULL: for no other rank */
	uint32_t wave;
	uint64_t sent_records; /* of the batch at hand, before this wave */
	uint64_t slice_records;
	uint64_t send_bytes[RANK_NODES_MAX];
	uint64_t received_bytes[RANK_NODES_MAX];
	uint64_t idle_since_ns; /* the end of the last wave with records */
	bool any_sent;		/* in the wave, by any rank */
};

/* Called before anything is read: do the keepers take enough of their sources
 * at once, and can they merge what they will keep?  0 or -errno with *failure
 * filled. */
int cluster_keep_check(struct cluster_keep *keep, struct failure *failure);

/* Then take part in all waves of the first pass; none, if all ranks that
 * have records keep them.  0 or -errno with *failure filled. */
int cluster_keep_run(struct cluster_keep *keep, struct failure *failure);

#endif /* CLUSTER_KEEP_H */
