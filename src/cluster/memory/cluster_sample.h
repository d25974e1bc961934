/*
 * cluster_sample.h - output ranges of about equal size, whatever the keys are
 *
 * Each rank draws keys of its records, in proportion to its part of all
 * records, and all ranks get all of these keys: so all have the same splitters.
 * When the records are in buckets all ranks tell each other their counts, and
 * so all make the same cuts.
 */
#ifndef CLUSTER_SAMPLE_H
#define CLUSTER_SAMPLE_H

#include "cluster/agreement/cluster_agree.h"
#include "cluster/memory/shares.h"
#include "exchange/exchange.h"
#include "io/input/source.h"

struct cluster_sample {
	/* The driver fills in these. */
	struct exchange *exchange;
	const struct rank *rank;
	const struct cluster_agreement *agreement;
	const struct cluster_hello *hellos;
	const struct record_shape *shape;
	const struct source *source; /* all records have been brought in */
	bool keeps_equal_together;   /* one rank gets all records of one key */

	/* cluster_sample_splitters() makes these: the shape of encoded keys, as
	 * if they were records, and one of them, owned, which has the bytes
	 * that all sampled keys share. */
	struct record_shape key_shape;
	uint8_t *common_key;
	/* Owned.  cluster_sample_cuts() makes them: the records that a source
	 * has in a bucket are counts[source * bucket_count + bucket]. */
	uint32_t *counts;
};

/* All ranks: the same splitters for all.  They refer to *sample.  0 or -errno
 * with *failure filled. */
int cluster_sample_splitters(struct cluster_sample *sample,
			     struct splitters *splitters,
			     struct failure *failure);

/* All ranks: the same cuts for all.  Bucket b of ours holds the records
 * own_start[b] up to own_start[b + 1].  0 or -errno with *failure filled. */
int cluster_sample_cuts(struct cluster_sample *sample,
			const struct splitters *splitters,
			const uint32_t *own_start, struct share_cut *cuts,
			struct failure *failure);

/* Safe on a zeroed struct. */
void cluster_sample_free(struct cluster_sample *sample);

#endif /* CLUSTER_SAMPLE_H */
