/*
 * reading_claims.h - the ranges of a shared input that this rank reads
 *
 * Several ranks read one input.  Each has been given ranges of it, and claims
 * them batch by batch.  From time to time the ranks divide anew what none of
 * them has claimed (src/cluster/agreement/input_division.h): until that is
 * decided, a rank has one batch to go on with.  When nothing is left to be
 * divided, the ranges that a rank has are final.
 *
 * The reading team claims; the caller's thread, which talks to the other ranks,
 * holds and gives.  All functions but open and close may be called by several
 * threads at once.
 */
#ifndef READING_CLAIMS_H
#define READING_CLAIMS_H

#include <pthread.h>

#include "external/runs/input_range.h"

/* Ranges of one rank that are not claimed yet. */
#define READING_RANGES_MAX 32
/* Claimed batches that are still known: that which is being filled and the one
 * behind it, of which workers read ahead. */
#define READING_CLAIMED_MAX 2

struct reading_claims {
	uint64_t capacity; /* of a batch, in records */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Written with the lock held. */
	struct input_range ranges[2 * READING_RANGES_MAX];
	unsigned range_count;
	uint64_t allowed; /* that may be claimed until more is given */
	bool is_final;	  /* no range will be given any more */
	bool has_stopped; /* the run has failed */
	uint64_t claimed; /* records, in all */
	uint64_t count;	  /* of claimed batches, the latest of them here: */
	struct input_range batches[READING_CLAIMED_MAX];
	uint64_t begun; /* batches that are filled, or being filled */
	/* How long the team has waited for ranges, in all; and since when it
	 * waits now, 0: it does not. */
	uint64_t waited_ns, waits_since_ns;
};

/* Nothing may be claimed before ranges are given.  capacity: above 0. */
void reading_claims_open(struct reading_claims *claims, uint64_t capacity);
void reading_claims_close(struct reading_claims *claims);

/* What a lane fills its batches with: context is the claims. */
batch_deal_fn reading_claims_batch;

/* How many batches there are from this number on; UINT64_MAX: that is not known
 * yet. */
uint64_t reading_claims_left(struct reading_claims *claims, uint64_t number);

/* The ranks are about to divide the rest.  Returns how many records are ours by
 * then, in all: those claimed already, and one batch if none of these is still
 * to be begun. */
uint64_t reading_claims_hold(struct reading_claims *claims);

/* What is ours behind the records that were held, at first behind none; at most
 * READING_RANGES_MAX ranges, in the order in which they are to be read. */
void reading_claims_give(struct reading_claims *claims,
			 const struct input_range *ranges, unsigned count,
			 bool is_final);

/* The run has failed: the reading team wakes, and gets no further batch. */
void reading_claims_stop(struct reading_claims *claims);

/* How long the reading team has waited so far. */
uint64_t reading_claims_waited_ns(struct reading_claims *claims);

#endif /* READING_CLAIMS_H */
