/*
 * batch_deal.h - which records the batches of a lane get: the interface
 *
 * A lane of pass 1 fills batch after batch.  Which records a batch gets is
 * known before the pass, from the files (reading_lanes.c); or only when the
 * batch is to be filled, of an input that several ranks share
 * (reading_claims.h).
 */
#ifndef BATCH_DEAL_H
#define BATCH_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "external/runs/input_range.h"

struct batch_deal {
	void *context;
	/* The records of the batch with this number, from 0 on: true, with
	 * *batch filled.  False: there is no such batch, or, unless the caller
	 * waits for that to be decided, it is not known yet.  The leader of the
	 * lane waits, for one batch after the other.  Its workers do not; they
	 * ask for the leader's last batch and those behind it. */
	bool (*batch)(void *context, uint64_t number, bool waits,
		      struct input_range *batch);
	/* How many batches there are from this number on; UINT64_MAX: that is
	 * not known yet. */
	uint64_t (*left)(void *context, uint64_t number);
};

#endif /* BATCH_DEAL_H */
