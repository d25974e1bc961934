/*
 * staging_plan.h - the slots that bytes pass through on their way to and from
 * the disks: how large, and how many
 *
 * A part of external_plan.h.  Pure arithmetic.
 */
#ifndef STAGING_PLAN_H
#define STAGING_PLAN_H

#include <stdint.h>

/* Reads of each worker that are under way, and writes of all: with half as many
 * a sort takes 6 % longer, with twice as many no less (results/NOTES.md). */
#define STAGING_READ_DEPTH 8

/* What a rank that keeps runs of others gets from each of them is bounded by
 * these (external/ranks/kept_runs.h): bytes before the records of a message;
 * how many slices a source sends its input in, but for the last one of each
 * batch, since each slice is a collective of all ranks; and staging slots of
 * each source, of which the writing thread fills one while others are written.
 */
#define KEPT_RUNS_HEAD_BYTES 32
#define KEPT_RUNS_SLICES_MAX 8192
#define KEPT_RUNS_SLOTS 3

struct external_plan;
struct external_request;

/* Set the plan's lanes, readers, slots and chunks, by its block_records. */
void staging_plan_make(struct external_plan *plan,
		       const struct external_request *request);

/* Memory for all slots, and what codecs need beside them. */
uint64_t staging_plan_bytes(const struct external_plan *plan,
			    const struct external_request *request);

#endif /* STAGING_PLAN_H */
