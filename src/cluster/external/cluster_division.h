/*
 * cluster_division.h - the ranks divide an input that all of them read
 *
 * While the reading teams of all ranks claim batches (reading_claims.h), the
 * ranks tell each other now and then how far they have come, and divide the
 * rest anew (input_division.h).  They go on until nothing is left to be
 * divided, which all find at the same time.
 *
 * All functions belong to the thread that has the exchange.
 */
#ifndef CLUSTER_DIVISION_H
#define CLUSTER_DIVISION_H

#include "cluster/external/cluster_runs.h"
#include "cluster/agreement/input_division.h"
#include "exchange/exchange.h"
#include "external/external_rank.h"

struct cluster_division {
	/* The caller fills in these; all else is 0 then. */
	struct exchange *exchange;
	const struct rank *rank;
	struct external_rank *external_rank;
	struct reading_claims *claims;

	struct input_division division;
	uint64_t begin_ns, next_ns; /* the ranks divide then */
	uint32_t step_count;	    /* divisions so far */
	/* When the rate was measured last. */
	uint64_t last_ns, last_read, last_waited_ns;
	uint64_t rate; /* records in a second; 0: not known yet */
};

/* The pass has begun: each rank reads its equal part first.  The others are as
 * in input_division.h; all pointers are borrowed. */
void cluster_division_begin(struct cluster_division *division,
			    uint64_t whole_count, const unsigned *given_max);

/* Divide anew, if it is time.  0 or -errno with *failure filled. */
int cluster_division_step(struct cluster_division *division,
			  struct failure *failure);

static inline bool
cluster_division_is_final(const struct cluster_division *division)
{
	return division->division.is_final;
}

#endif /* CLUSTER_DIVISION_H */
