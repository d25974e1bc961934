/*
 * bucketing.h - the first half of a sort: every record's entry into its bucket
 *
 * The workers read the source's records and append an entry for each to the
 * list of its bucket.  Each worker has a writer with lists of its own; the
 * lists of all writers are the bucket set.
 *
 * The driver gives memory, fills in struct bucketing_config, calls
 * bucketing_begin(), and lets all workers call bucketing_pass().  A pass may
 * bring the records in, or partition them, or both.  Between passes the driver
 * may change the splitters, and plan and give memory anew.
 */
#ifndef BUCKETING_H
#define BUCKETING_H

#include <stdatomic.h>

#include "io/input/source.h"
#include "sort/bucket_set.h"
#include "sort/sort_wiring.h"
#include "system/arena.h"

struct bucketing_config {
	const struct source *source; /* outlives the bucketing */
	/* The writers' lists of a bucket, one after the other, must be in
	 * record order: each worker partitions its share, not pieces. */
	bool keeps_order;
	/* Records that are counted (record_counts.h): the workers' tables, one
	 * behind the other.  NULL: they are not. */
	uint64_t *counts;
	/* Records whose first word is above this get no entry, except that in
	 * slot 0; any thread may lower it meanwhile.  NULL: all get one. */
	const _Atomic uint64_t *word_max;
	/* What worker 0 calls every few ms of a pass, or NULL. */
	void (*serve)(void *context);
	void *serve_context;
};

struct bucketing {
	/* bucketing_begin() writes these; then nothing does. */
	struct sort_wiring wiring;
	struct bucketing_config config;
	/* Any worker raises it: the first record of the next piece. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_record;
	/* All writers take blocks from it. */
	struct bucket_pool pool;
	/* Writer w is worker w's during a pass; then nothing changes it. */
	struct bucket_writer writers[THREAD_POOL_WORKERS_MAX];
};

void bucketing_begin(struct bucketing *bucketing,
		     const struct sort_wiring *wiring,
		     const struct bucketing_config *config);

/* Pieces that the two functions below take together. */
#define BUCKETING_PIECES(worker_count) (2 * (worker_count) + 4)

/* Memory for plan->list_count lists of each writer, and for what is noted of
 * the pool's blocks; then for the blocks, most of which may never be touched.
 */
void bucketing_take_lists(struct bucketing *bucketing, const struct plan *plan,
			  unsigned worker_count, struct arena *arena);
void bucketing_take_blocks(struct bucketing *bucketing, const struct plan *plan,
			   struct arena *arena);

/*
 * Each worker, once for a pass: bring the records in (or, if they are resident,
 * walk over them), and with partition put their entries into buckets.  Records
 * that are to be counted are counted.  The passes of all workers together cover
 * the source once.  A worker that fails notes it in wiring.failure.
 */
void bucketing_pass(struct bucketing *bucketing, unsigned worker, bool resident,
		    bool partition);

/* The driver: such a pass as a job of wiring.pool. */
void bucketing_pass_all(struct bucketing *bucketing, bool resident,
			bool partition);

/* All workers have ended a pass that partitions: what it has made. */
struct bucket_set bucketing_set(const struct bucketing *bucketing);

/* The blocks are not needed any more: their memory, which has been touched, for
 * another use. */
struct arena bucketing_left_memory(const struct bucketing *bucketing);

#endif /* BUCKETING_H */
