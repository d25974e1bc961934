/*
 * index_plan.h - the index of all runs (run_index.h), and what merges keep
 * beside it: how many blocks, and how much memory
 *
 * A part of external_plan.h, and so of what a stream is planned for, whose
 * length nobody knows: that follows from the index.  Pure arithmetic.
 */
#ifndef INDEX_PLAN_H
#define INDEX_PLAN_H

#include "external/plan/external_plan.h"

/* The index numbers blocks by 32 bits, and a merge of runs into a run makes
 * room for twice its blocks beside them. */
#define INDEX_PLAN_BLOCKS_MAX (UINT32_MAX / 4)

/* Records that are planned for, and runs, by the plan's block_records and the
 * capacity of its batches. */
uint64_t index_plan_records(const struct external_plan *plan,
			    const struct external_request *request);
uint64_t index_plan_runs(const struct external_plan *plan,
			 const struct external_request *request);

/* The blocks and a quarter more: the index of a stream grows by quarters. */
uint64_t index_plan_growing(uint64_t blocks);

/* What the index should have room for, by the plan's batches. */
uint64_t index_plan_blocks(const struct external_plan *plan,
			   const struct external_request *request);

/* Memory for the plan's index_blocks. */
uint64_t index_plan_bytes(const struct external_plan *plan,
			  const struct external_request *request);

#endif /* INDEX_PLAN_H */
