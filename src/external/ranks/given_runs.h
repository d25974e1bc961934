/*
 * given_runs.h - sorted batches that go to another rank's scratch files
 *
 * A rank that does not keep runs sorts each batch in place.  The leader of the
 * ordering team offers it, and waits until the thread that has the exchange has
 * sent all of it (kept_runs.h says how).  Meanwhile the reading team fills
 * other batches.
 */
#ifndef GIVEN_RUNS_H
#define GIVEN_RUNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch;
struct first_failure;
struct thread_pool;

struct given_runs {
	uint32_t record_size;
	const struct thread_pool *pool; /* whose functions make threads wait */
	const struct first_failure *failure; /* the run's */
	/* The leader of the ordering team, before it raises offered. */
	const struct batch *batch;
	uint64_t input_record, input_count;
	_Atomic uint32_t offered;
	/* The thread with the exchange raises it behind offered. */
	_Atomic uint32_t sent;
};

/* *given is zeroed.  All is borrowed. */
void given_runs_init(struct given_runs *given, uint32_t record_size,
		     const struct thread_pool *pool,
		     const struct first_failure *failure);

/* The batch is sorted in place, and has records; it had that range of the input
 * of all ranks.  Offer it, and wait.  False: the run has failed. */
bool given_runs_offer(struct given_runs *given, const struct batch *batch,
		      uint64_t input_record, uint64_t input_count);

/* --- the thread that has the exchange ------------------------------------- */

/* Is there a batch to be sent? */
bool given_runs_have(const struct given_runs *given);
uint64_t given_runs_record_count(const struct given_runs *given);

/* What each slice says of the batch: KEPT_RUNS_HEAD_BYTES. */
void given_runs_write_head(const struct given_runs *given, uint8_t *head);

/* Bytes of the batch's records, in their order, from offset_bytes on. */
void given_runs_copy(const struct given_runs *given, uint64_t offset_bytes,
		     uint8_t *target, size_t byte_count);

/* All of the batch has arrived; or the run has failed, which has been noted:
 * the leader of the ordering team does not wait any more. */
void given_runs_sent(struct given_runs *given);

#endif /* GIVEN_RUNS_H */
