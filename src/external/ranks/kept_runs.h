/*
 * kept_runs.h - sorted batches that go to another rank's scratch files, and
 * become runs there
 *
 * A giver is a rank that does not keep runs itself.  It sends each batch, once
 * that is sorted, in slices, a slice a wave.  A message has four words of 64
 * bits (KEPT_RUNS_HEAD_BYTES), little endian: where the batch begins in the
 * input of all ranks, how many records of the input it has, how many are left
 * of these (where duplicates are dropped), and 0, which is not looked at; then
 * the records of the slice.  All slices of a batch have the same words.  A
 * message of the words alone says that nothing is ready yet, whatever the words
 * are.  But for the last one of a batch, slices are whole blocks.
 *
 * What a giver says is checked before anything is done with it.  The records
 * become a run (run_index.h) with its own index for each giver, written by a
 * thread of this module while the next wave arrives.  The plan counts these
 * indexes among its index_bytes.  The keys of blocks and their checksums are
 * made here, so that a lie about records spoils their order and nothing else.
 *
 * All functions belong to one thread, which has the exchange, unless they say
 * otherwise.
 */
#ifndef KEPT_RUNS_H
#define KEPT_RUNS_H

#include <stdatomic.h>

#include "external/plan/external_plan.h"
#include "external/write/run_sink.h"
#include "system/thread_pool.h"

struct topology;

struct kept_runs;

/* All pointers are borrowed until kept_runs_close(). */
struct kept_runs_request {
	const struct external_plan *plan;
	const struct record_shape *shape;
	unsigned giver_count;
	bool drops;		      /* givers may have dropped records */
	struct run_sink_request sink; /* as for this rank's own runs */
	uint8_t *memory;	      /* plan->kept_bytes, page aligned */
	const struct topology *topology;
	struct stage_sum *writes;      /* what the writes count to, or NULL */
	struct first_failure *failure; /* the run's: of a write, too */
};

/* 0 or -errno with *failure filled.  In either case the caller closes it. */
int kept_runs_open(struct kept_runs **kept,
		   const struct kept_runs_request *request,
		   struct failure *failure);

/* Say before the first wave that this giver has that range of the input of all
 * ranks, in runs_max runs at most. */
void kept_runs_expect(struct kept_runs *kept, unsigned giver,
		      uint64_t input_record, uint64_t input_count,
		      unsigned runs_max);

/* Memory for the giver's message of this wave, if its length is good.  The
 * wave before the last one must have been written: kept_runs_written(). */
uint8_t *kept_runs_place(const struct kept_runs *kept, uint32_t wave,
			 unsigned giver);

/* May a message have byte_count bytes?  None: the giver has nothing more. */
bool kept_runs_length_is_good(const struct kept_runs *kept,
			      uint64_t byte_count);

/* The messages of this wave have arrived, of byte_count[giver] bytes each,
 * which are good lengths.  They are checked, and then written while the caller
 * goes on.  0; or -EBADMSG: what giver *bad says cannot be. */
int kept_runs_take(struct kept_runs *kept, uint32_t wave,
		   const uint64_t *byte_counts, unsigned *bad);

/* Waves that have been written, or tried to. */
uint32_t kept_runs_written(const struct kept_runs *kept);

/* No wave comes any more, and all have been written.  0; -ENOMEM with *failure
 * filled; or -EBADMSG: what giver *bad has sent is not all of its range. */
int kept_runs_end(struct kept_runs *kept, unsigned *bad,
		  struct failure *failure);

/* Any thread, after that: wait until all is in the scratch files, and append
 * all runs to the index.  0 or -errno with *failure filled. */
int kept_runs_append(struct kept_runs *kept, struct run_index *index,
		     struct failure *failure);

/* Adds the bytes of the blocks that have come, before compression and as
 * stored.  *codec: what any giver's were compressed with. */
void kept_runs_add_up(const struct kept_runs *kept, uint64_t *plain_bytes,
		      uint64_t *stored_bytes, struct codec *codec);

/* Safe on NULL. */
void kept_runs_close(struct kept_runs *kept);

/* --- what this rank gives -------------------------------------------------
 *
 * The leader of the ordering team offers a batch that is sorted in place, and
 * waits until the thread that has the exchange has sent all of it.  Meanwhile
 * the reading team fills other batches.
 */

struct given_runs {
	/* The owner sets these; all is borrowed. */
	uint32_t record_size;
	const struct thread_pool *pool; /* whose functions wake threads */
	/* The leader of the ordering team, before it raises offered. */
	const struct batch *batch;
	uint64_t input_record, input_count;
	_Atomic uint32_t offered;
	/* The thread with the exchange raises it behind offered. */
	_Atomic uint32_t sent;
};

/* The batch is sorted in place, and has records; it had that range of the input
 * of all ranks.  Returns what `sent` is above when all of it has been sent. */
uint32_t given_runs_offer(struct given_runs *given, const struct batch *batch,
			  uint64_t input_record, uint64_t input_count);

/* What follows is for the thread that has the exchange. */

/* Is there a batch to be sent? */
bool given_runs_have(const struct given_runs *given);

/* What each slice says of the batch: KEPT_RUNS_HEAD_BYTES. */
void given_runs_write_head(const struct given_runs *given, uint8_t *head);

/* Bytes of the batch's records, in their order, from offset_bytes on. */
void given_runs_copy(const struct given_runs *given, uint64_t offset_bytes,
		     uint8_t *target, size_t byte_count);

/* All of the batch has arrived; or the run has failed, which has been noted:
 * the leader of the ordering team does not wait any more. */
void given_runs_sent(struct given_runs *given);

#endif /* KEPT_RUNS_H */
