/*
 * run_cut.h - which part of the merge of all ranks' runs each rank gets
 *
 * Runs are numbered over all ranks, in the order of the whole input, whichever
 * rank has made them.  All blocks of all runs have an order: by first key,
 * number of the run, and place in the run.  A cut is a place between two
 * blocks in that order.  In the run of the block that follows it, the cut is
 * exactly there; in the other runs it is a bound for keys: as between two
 * pieces of one merge (merge_plan.h).
 *
 * Each rank tells all others of some of its blocks, which it takes from their
 * order at equal distances, and how many records lie from one to the next.  So
 * all ranks find the same cuts; a part is wrong by as many records as each
 * rank has between two of these blocks, at most.  (Regular sampling: Shi and
 * Schaeffer 1992.)
 */
#ifndef RUN_CUT_H
#define RUN_CUT_H

#include <stdbool.h>

#include "base/cpu.h"
#include "external/runs/run_index.h"

struct run_cut {
	const uint8_t *key; /* as run_index_key(); borrowed */
	uint32_t run;	    /* over all ranks */
	uint32_t place;	    /* of the block in its run */
};

/* A rank's sample, as it has arrived; and what the rank has said before. */
struct run_sample {
	const uint8_t *bytes;
	uint64_t byte_count;
	uint32_t run_count;
	/* [run_count]: of its runs over all ranks, which are numbered from 0
	 * without a gap (run_numbers.h). */
	const uint32_t *numbers;
	uint64_t record_count; /* of all its runs */
};

/* Rank r gets what lies from cut r to cut r + 1, of 0 to rank_count.  The first
 * one lies before all blocks, and the last one behind them.  A rank that gets
 * no part has both at the same place, and nothing of what lies across. */
struct run_cuts {
	unsigned rank_count;
	const bool *has_part; /* [rank_count], borrowed */
	unsigned first_part;  /* the first rank that gets a part */
	unsigned last_part;   /* and the last one */
	struct run_cut *cuts; /* [rank_count + 1], owned */
	uint8_t *keys;	      /* owned: of the cuts between */
};

/* Bytes of one block in a sample. */
uint32_t run_cut_sample_bytes(const struct record_shape *key_shape);

/* Our sample, of at most block_count_max blocks.  The caller frees *bytes.  0
 * or -errno with *failure filled. */
int run_cut_sample(const struct run_index *index, uint32_t block_count_max,
		   enum cpu_level kernel, uint8_t **bytes, uint64_t *byte_count,
		   struct failure *failure);

/* The ranks of has_part get parts of the same size, and there is one.  0;
 * -ENOMEM with *failure filled; or -EBADMSG: what rank *bad says cannot be. */
int run_cuts_make(struct run_cuts *cuts, const struct record_shape *key_shape,
		  const struct run_sample *samples, const bool *has_part,
		  unsigned rank_count, unsigned *bad, struct failure *failure);

/* Safe on a zeroed one. */
void run_cuts_free(struct run_cuts *cuts);

/* The cut where a rank's part begins; NULL: it lies before all blocks. */
static inline const struct run_cut *run_cuts_begin(const struct run_cuts *cuts,
						   unsigned rank)
{
	return rank <= cuts->first_part ? NULL : &cuts->cuts[rank];
}

/* The cut where it ends; NULL: behind all blocks. */
static inline const struct run_cut *run_cuts_end(const struct run_cuts *cuts,
						 unsigned rank)
{
	return rank >= cuts->last_part ? NULL : &cuts->cuts[rank + 1];
}

/* Returns <0, 0 or >0: compares a block's first key and its run's number with
 * the cut's.  0: it is in the cut's run, and its place decides. */
int run_cut_compare(const struct run_cut *cut,
		    const struct record_shape *key_shape, const uint8_t *key,
		    uint32_t number);

/* The first block of the index's run that lies behind the cut, or the end of
 * the run.  `number` is that of the run over all ranks. */
uint32_t run_cut_block(const struct run_cut *cut, const struct run_index *index,
		       unsigned run, uint32_t number);

#endif /* RUN_CUT_H */
