/*
 * cluster_passes.h - what each pass of a sort beyond memory has taken, on every
 * rank
 */
#ifndef CLUSTER_PASSES_H
#define CLUSTER_PASSES_H

#include "exchange/exchange.h"
#include "external/external_sort.h"

/* A pass of one rank, in words, as ranks tell it. */
struct cluster_pass {
	uint64_t ns;
	uint64_t predicted_ns; /* 0: not known */
	/* What went from and to this rank's disks, also blocks read for other
	 * ranks. */
	uint64_t read_bytes, written_bytes;
	/* In waves: of blocks only, or batches. */
	uint64_t sent_bytes, received_bytes;
	uint64_t limit; /* enum external_limit, as measured */
};

struct cluster_passes {
	struct cluster_pass of[RANK_NODES_MAX][EXTERNAL_PASSES];
};

/* Complete the row of this rank, which has sent_bytes and received_bytes. */
void cluster_passes_fill(struct cluster_pass passes[EXTERNAL_PASSES],
			 const struct external_result *result,
			 unsigned threads);

/* All ranks tell theirs: a collective.  0 or -errno with *failure filled. */
int cluster_passes_tell(struct cluster_passes *all, const struct rank *rank,
			struct exchange *exchange, struct failure *failure);

#endif /* CLUSTER_PASSES_H */
