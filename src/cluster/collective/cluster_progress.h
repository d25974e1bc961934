/*
 * cluster_progress.h - how far the ranks of a sort beyond memory have come
 *
 * Each rank tells rank 0 once a second; what is lost on the way is not sent
 * again.  Rank 0 passes all of it on to its caller.
 */
#ifndef CLUSTER_PROGRESS_H
#define CLUSTER_PROGRESS_H

#include <stdatomic.h>

#include "exchange/exchange.h"
#include "external/external_sort.h"

/* Length of a message: the pass and both waits in one word, what was moved, and
 * what will be. */
#define CLUSTER_PROGRESS_WORDS 3

/* Called on rank 0, in its thread, with [rank_count].  A rank that has told
 * nothing yet has a total of 0. */
typedef void cluster_progress_fn(const struct external_progress *ranks,
				 unsigned rank_count);

struct cluster_progress {
	/* The caller fills in these; show is NULL: nothing is told. */
	struct exchange *exchange;
	const struct rank *rank;
	cluster_progress_fn *show;

	uint64_t next_ns; /* tell no earlier */
	/* What this rank tells.  Any worker writes it, by
	 * cluster_progress_note(). */
	_Atomic uint64_t words[CLUSTER_PROGRESS_WORDS];
};

/* An external_progress_fn, whose context is a cluster_progress. */
void cluster_progress_note(void *context,
			   const struct external_progress *progress);

/* Tell rank 0, at most once a second; the caller may call it more often.  On
 * rank 0, also show all ranks.  For the thread that has the exchange, before
 * the first barrier. */
void cluster_progress_tell(struct cluster_progress *progress, uint64_t now_ns);

#endif /* CLUSTER_PROGRESS_H */
