/*
 * cluster_runs.h - what ranks tell each other of the runs that they have made,
 * before the blocks of these are exchanged: limits, samples, parts and wants
 * (cluster_external.c)
 *
 * A rank may lie: what it tells is bounded by what all ranks know of it, and
 * what cannot be ends the run on all ranks with its name.
 *
 * All functions belong to the thread that has the exchange.  Those that return
 * int return 0 or -errno with *runs->failure filled.
 */
#ifndef CLUSTER_RUNS_H
#define CLUSTER_RUNS_H

#include "cluster/agreement/cluster_agree.h"
#include "cluster/collective/cluster_progress.h"
#include "exchange/exchange.h"
#include "external/external_rank.h"
#include "cluster/external/run_numbers.h"

/* Collectives of a sort beyond memory: of the first pass, in which ranks divide
 * a shared input (cluster_division.h) or send runs to keepers (cluster_keep.h);
 * of the last pass, a wave for each piece; and those that measure the links,
 * and a few more. */
#define CLUSTER_FIRST_PASS_COLLECTIVES_MAX 20000
#define CLUSTER_OTHER_COLLECTIVES_MAX (RANK_NODES_MAX + 100)
_Static_assert(CLUSTER_FIRST_PASS_COLLECTIVES_MAX + EXTERNAL_RANK_PIECES_MAX +
			       CLUSTER_OTHER_COLLECTIVES_MAX <=
		       EXCHANGE_COLLECTIVES_MAX,
	       "a run may have them all");

/* A keeper has the inputs of all ranks at most, and of a shared input a rank
 * has what input_division_parts() says. */
_Static_assert(RUN_NUMBERS_PARTS_MAX >= CLUSTER_ROLES_RANKS_MAX &&
		       RUN_NUMBERS_PARTS_MAX >= 2 * READING_RANGES_MAX,
	       "spans have room for all parts");

struct cluster_runs {
	/* The caller (cluster_external.c) fills in these. */
	struct exchange *exchange;
	struct failure *failure; /* the run's */
	const struct rank *rank;
	const struct cluster_hello *hellos; /* [rank] */
	struct external_rank *self;	    /* what this rank does by itself */
	struct cluster_progress *progress;
	const struct record_shape *shape;
	struct record_shape key_shape; /* run_index_key_shape() */
	bool drops; /* runs may lack records of their part of the input */
	enum cpu_level kernel;
	/* [rank]: does it get a part of the merge, and may it have runs? */
	bool sorts[RANK_NODES_MAX], keeps[RANK_NODES_MAX];
	unsigned keeper_count;		 /* ranks that may have runs */
	uint16_t keeper[RANK_NODES_MAX]; /* cluster_keepers_choose() */
	/* [rank], owned: the parts of the whole input that the rank's runs must
	 * have, which cluster_divide() changes to what the rank has read of a
	 * shared input; while cluster_runs_cut() runs also what the rank has
	 * told, and then the numbers of that. */
	struct run_spans *spans;
	/* Memory for what others tell, at most. */
	uint64_t bytes_max;

	/* [rank], cluster_runs_tell_limits() */
	struct external_rank_limits limits[RANK_NODES_MAX];

	/* cluster_runs_cut() */
	uint32_t first_run[RANK_NODES_MAX + 1]; /* of those of ranks before */
	/* cluster_runs_numbers() of all ranks, one behind the other.  Owned. */
	uint32_t *numbers;
	struct run_cuts cuts;

	/* cluster_runs_tell_parts() */
	struct run_index part; /* ours, of all runs */

	/* cluster_runs_tell_wants(): what each rank wants of our runs; and the
	 * most pieces that a rank has, ours included. */
	struct outgoing_wants wants[RANK_NODES_MAX];
	uint32_t wave_count;
};

int cluster_runs_tell_limits(struct cluster_runs *runs,
			     const struct external_rank_limits *own);

/* How many runs the rank may have in the merge of all, by these limits. */
unsigned cluster_runs_max(const struct cluster_runs *runs, unsigned node);

/* Our runs have been made, and are in the index. */
int cluster_runs_cut(struct cluster_runs *runs);
int cluster_runs_tell_parts(struct cluster_runs *runs);

/* The merge of our part has been planned. */
int cluster_runs_tell_wants(struct cluster_runs *runs);

/* Of each of the rank's runs its number over all ranks, which is its place in
 * the order of the whole input, and in runs->part. */
static inline const uint32_t *
cluster_runs_numbers(const struct cluster_runs *runs, unsigned node)
{
	return runs->numbers + runs->first_run[node];
}

/* Our threads are at work, which may take minutes: the caller asks again and
 * again whether they are done.  Return a failure of theirs at once; answer the
 * other ranks, which give up a rank that does not answer; tell rank 0 how far
 * we are; and sleep for half a millisecond. */
int cluster_runs_pause(const struct cluster_runs *runs);

/* Does the rank have records that another one keeps? */
bool cluster_runs_gives(const struct cluster_runs *runs, unsigned node);

/* Safe on a zeroed one. */
void cluster_runs_free(struct cluster_runs *runs);

#endif /* CLUSTER_RUNS_H */
