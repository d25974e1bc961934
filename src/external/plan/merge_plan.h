/*
 * merge_plan.h - cut the merge of sorted runs into pieces that fit into memory
 *
 * All blocks of the runs are put in the order of (first key, run, place in the
 * run).  A piece has the blocks between two places of that order, as many as
 * fit into memory; its end, the cut, is the first record of the block that
 * follows.  In the run of that block the cut is a place; in the other runs it
 * is a bound for keys, which lies in the last block that the piece has of the
 * run.  What that block holds from the cut on is the rest, and belongs to the
 * next piece.
 *
 * So each record of a piece precedes each one of the next piece, by its key
 * and, where keys are equal, by its place in the input; no key is too frequent
 * to be cut, and no sample can be wrong.  (DuckDB 1.4 cuts its merge by
 * position, too.)
 *
 * If equal keys are to meet, so that all but the first record can be dropped,
 * those of the cut's key belong to the next piece in all runs.  A run has the
 * key once, so that only the last block may have to be kept as the rest, here
 * too.
 *
 * A rank's part of all ranks' runs (run_part.h) begins and ends with a cut,
 * too. Its first piece is the lead: the blocks that lie across the cut where
 * the part begins.  Of the lead only the rests belong to the part.  And of what
 * a piece gets from one rank there may be a most, since that rank reads for all
 * others at the same time.
 */
#ifndef MERGE_PLAN_H
#define MERGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "external/runs/run_cut.h"
#include "external/runs/run_index.h"

/* All pointers are borrowed as long as the plan is used. */
struct merge_request {
	const struct run_index *index; /* which does not change meanwhile */
	unsigned first_run;	       /* of those that are merged */
	unsigned run_count;
	/* No key occurs twice in a run, and none may occur in two pieces. */
	bool unique;
	/* No piece, with the rest of the one before, has more. */
	uint64_t piece_records;
	enum cpu_level kernel;
	/* Where a rank's part begins and ends, whose runs are all of the index;
	 * NULL: it is open. */
	const struct run_cut *begin, *end;
	/* [run.rank]: stored bytes that a piece may have of its runs; NULL:
	 * any. */
	const uint64_t *rank_bytes_max;
	unsigned rank_count;
	uint32_t piece_count_max; /* 0: any number */
};

struct merge_plan {
	const struct run_index *index; /* of the request, like what follows */
	unsigned first_run;
	unsigned run_count;
	bool unique;
	const struct run_cut *begin, *end;
	uint32_t piece_count;
	/* Piece p has the blocks order[piece_start[p]] up to
	 * order[piece_start[p + 1]]; the latter is where the cut is. */
	uint32_t *order;
	uint32_t *piece_start; /* [piece_count + 1] */
	/* [(piece_count + 1) * run_count]: of run r, piece p has the blocks
	 * from first_block[p * run_count + r] up to that of piece p + 1. */
	uint32_t *first_block;
};

/* 0 or -errno with *failure filled, also if there are too many pieces; or
 * -E2BIG, without a failure: the runs are too many for pieces of this size. */
int merge_plan_make(struct merge_plan *plan,
		    const struct merge_request *request,
		    struct failure *failure);

/* Safe on a zeroed plan. */
void merge_plan_free(struct merge_plan *plan);

/* How many runs can be merged at once in pieces of so many records. */
unsigned merge_plan_runs_max(uint64_t piece_records, uint32_t block_records);

/* How many of the run's records[0 .. count), which are sorted, lie before the
 * end of the piece. */
uint64_t merge_plan_count_before(const struct merge_plan *plan, uint32_t piece,
				 unsigned run, const uint8_t *records,
				 uint64_t count);

/* The part begins with a cut: others follow the lead. */
static inline bool merge_plan_is_lead(const struct merge_plan *plan,
				      uint32_t piece)
{
	return plan->begin && piece == 0;
}

/* The first block that piece p has of run r; r counts from first_run. */
static inline uint32_t merge_plan_block(const struct merge_plan *plan,
					uint32_t piece, unsigned run)
{
	return plan->first_block[(uint64_t)piece * plan->run_count + run];
}

#endif /* MERGE_PLAN_H */
