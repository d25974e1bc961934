/*
 * orderer.h - the second half of a sort: a bucket set in, sorted records out
 *
 * The orderer divides the sorted whole into the sink's chunks; or a range of
 * it, whose first and last chunk may be a part of the sink's.  Workers take
 * chunks in turn, sort the chunk's buckets, gather the records and hand them to
 * the sink.  A bucket of more than PLAN_OVERSIZED_ENTRIES, or of more bytes
 * than some chunks, is oversized: workers sort all of these first, each one as
 * a whole.
 *
 * If duplicates are dropped, all buckets count as oversized: how many records
 * remain, and so where a chunk begins, is known when all buckets are sorted.
 *
 * If the orderer sorts only, all buckets count as oversized, too, and all
 * workers call orderer_sort_oversized() instead of orderer_run().  When they
 * have ended, the driver takes the sorted entries.
 *
 * The orderer knows neither files nor ranks, and may begin while entries still
 * arrive: it takes a chunk only when all of the chunk's buckets are ready.
 *
 *      orderer_take_memory(), orderer_take_oversized()
 *      orderer_begin()
 *      orderer_add_up()      when each bucket's count is known
 *      orderer_set_ready()   when entries are complete, in one step or in many
 *      orderer_drop_duplicates(), orderer_begin_chunks()
 *                            then, if config.drops_duplicates
 *      orderer_run()         each worker, but for one that has other work, too
 *      orderer_sort_oversized(), orderer_try()     that one
 *
 * The thread that does all of it but orderer_run() is the driver.  The
 * functions belong to that thread unless they say otherwise; what arrives may
 * be told by others, one at a time (orderer_set_ready(), orderer_add_up()).
 */
#ifndef ORDERER_H
#define ORDERER_H

#include <stdatomic.h>

#include "io/output/sink.h"
#include "kernels/gather.h"
#include "record/checksum.h"
#include "record/widening.h"
#include "sort/bucket_set.h"
#include "sort/chunk_range.h"
#include "sort/plan.h"
#include "sort/sort_wiring.h"
#include "sort/tie_break.h"
#include "system/arena.h"

/* Tells orderer_set_ready() that all buckets are complete. */
#define ORDERER_ALL_READY UINT32_MAX

/* This orderer_config.record_count stands for all records that the sink will
 * hold, from first_record on. */
#define ORDERER_ALL_RECORDS UINT64_MAX

/* What pointers point to must outlive the orderer, and does not change. */
struct orderer_config {
	unsigned index_bits;   /* slots are below 2 to this */
	const uint8_t *base;   /* of slot 0 */
	size_t chunk_entries;  /* what a chunk's buckets hold at most: plan.h */
	bool sums_up;	       /* compute the checksum of all records */
	bool drops_duplicates; /* of equal keys, only one record stays: */
	bool keeps_last;       /* the last one, not the first */
	/* Where duplicates are dropped: the key of the last record that another
	 * orderer has brought before, whose equals do not stay, either; and the
	 * shape of such keys (run_index.h).  NULL: there is none. */
	const uint8_t *last_key;
	const struct record_shape *key_shape;
	/* Only orderer_sorted_entries() is wanted: nothing goes to a sink. */
	bool sorts_only;
	/* All buckets will be complete before any worker comes: none waits. */
	bool is_ready;
	/* The sink takes chunks in any order, and nothing is lost by that: the
	 * workers of a NUMA node begin with a range of their own, which so gets
	 * its pages from that node. */
	bool by_node;
	struct sink *sink;	     /* NULL if sorts_only */
	struct record_slice written; /* what the sink gets of each record */
	/* The bucket set holds these records of the sink's whole; the records
	 * before and behind them are brought by other orderers.  If duplicates
	 * are dropped, record_count is what remains, whatever is said here. */
	uint64_t first_record;
	uint64_t record_count;
};

/* A worker's own, written by that worker alone, and read by the driver when the
 * worker has ended. */
struct orderer_worker {
	_Alignas(CACHE_PAIR_BYTES) uint64_t *entries; /* of the chunk at hand */
	unsigned __int128 checksum;
	bool has_passed; /* it has been counted in passed_workers */
};

struct orderer {
	/* orderer_begin() writes these; then nothing does. */
	struct sort_wiring wiring;
	struct orderer_config config;
	gather_fn *gather; /* NULL: parts of records are copied */
	checksum_fn *sum;
	struct tie_break tie_break;  /* what a bucket is sorted by */
	uint32_t bucket_entries_max; /* one that has more is oversized */
	/* The driver sets it, too, when duplicates have been dropped. */
	struct chunk_range range;

	/* The driver writes these before the first bucket is ready, and
	 * bucket_start once more when duplicates have been dropped. */
	struct bucket_set set;
	/* [bucket_count + 1]: bucket b holds the range's sorted records
	 * bucket_start[b] up to bucket_start[b + 1].  While duplicates are
	 * dropped, a worker puts there how many entries of its bucket remain.
	 */
	uint32_t *bucket_start;
	/* [bucket_count]: a bucket's entries are oversized_entries[
	 * oversized_start[b]] and following, if it is oversized. */
	uint32_t *oversized_start;
	uint32_t oversized_count; /* entries in oversized buckets */
	/* How many of these are in buckets of more than PLAN_OVERSIZED_ENTRIES,
	 * whose keys the splitters do not suit. */
	uint32_t crowded_count;
	/* The workers write the sorted entries there, each bucket once. */
	uint64_t *oversized_entries;

	/* What any worker raises; each a pair of cache lines apart. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t
		gathered_chunks; /* the records have been copied */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t next_oversized;
	/* Workers that have no oversized bucket left to sort, or have left
	 * since the run has failed: each counts itself once.  orderer_stop()
	 * sets it to all of them. */
	_Atomic uint32_t passed_workers;
	/* 0 until the sink knows how much comes; the driver sets it to 1. */
	_Atomic uint32_t chunks_begun;
	/* Buckets [0, ready_buckets) are complete.  The driver raises it. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t ready_buckets;

	/* Who takes which of the range's chunks; the driver deals them with the
	 * range. */
	struct chunk_shares chunks;
	struct orderer_worker workers[THREAD_POOL_WORKERS_MAX];
};

/* The sink's geometry must be set, if there is a sink.  The orderer notes no
 * failure: a sink keeps its own. */
void orderer_begin(struct orderer *orderer, const struct sort_wiring *wiring,
		   const struct orderer_config *config);

/* Pieces that the two functions below take together. */
#define ORDERER_PIECES(worker_count) ((worker_count) + 3)

/*
 * Memory for the plan's buckets and chunks, from arena; or from used, memory
 * that has been touched already and need not be zero, as far as that has room.
 * used may be NULL.  Then memory for oversized buckets among record_count
 * records, which is touched only when keys are not uniform.
 */
void orderer_take_memory(struct orderer *orderer, const struct plan *plan,
			 unsigned worker_count, struct arena *arena,
			 struct arena *used);
void orderer_take_oversized(struct orderer *orderer, const struct plan *plan,
			    uint64_t record_count, struct arena *arena);

/* All buckets' counts are known: where each bucket begins in the sorted whole,
 * and which ones are oversized. */
void orderer_add_up(struct orderer *orderer, const struct bucket_set *set);

/*
 * Of a run that drops duplicates, when all buckets are complete: sort buckets
 * with the other workers, which do so in orderer_run(), and return in
 * *kept_count how many records remain.  When the sink has been told of that,
 * the chunks begin.  False: the run has failed.
 */
bool orderer_drop_duplicates(struct orderer *orderer, unsigned worker,
			     uint64_t *kept_count);
void orderer_begin_chunks(struct orderer *orderer);

/* After that: the last record that remains; NULL: none does. */
const uint8_t *orderer_last_record(const struct orderer *orderer);

/* The first ready_buckets buckets are complete; never fewer than before. */
void orderer_set_ready(struct orderer *orderer, uint32_t ready_buckets);

/* The run has failed, and wiring.failure tells so: wake all workers that wait
 * in orderer_run(), and let them return. */
void orderer_stop(struct orderer *orderer);

enum orderer_step {
	ORDERER_MORE,  /* a chunk is done */
	ORDERER_DONE,  /* no chunk is left */
	ORDERER_WAITS, /* the next chunk's buckets are not complete */
	ORDERER_FAILED,
};

/* Any worker, when all buckets are complete: sort those that are oversized, and
 * wait until all workers have, and until the chunks have begun.  Without
 * oversized buckets nothing is done.  False: the run has failed. */
bool orderer_sort_oversized(struct orderer *orderer, unsigned worker);

/* Any worker: order the next chunk and hand it to the sink, if the chunk's
 * buckets are complete. */
enum orderer_step orderer_try(struct orderer *orderer, unsigned worker);

/* Any worker: order chunk after chunk until none is left, and help the sink.
 * False: the run or the sink has failed. */
bool orderer_run(struct orderer *orderer, unsigned worker);

/* Any worker: true when the records of all chunks have been copied. */
bool orderer_has_gathered_all(const struct orderer *orderer);

/*
 * Of a run that sorts only, when all workers have returned from
 * orderer_sort_oversized(), and none has failed; call it once.  The entries of
 * all records that remain, orderer_record_count() of them, in the records'
 * order; only their index bits are meaningful.  They lie in the memory for
 * oversized buckets.
 */
const uint64_t *orderer_sorted_entries(struct orderer *orderer);

/* All workers have ended: the records that went to the sink, those that were
 * dropped, and the checksum of the former. */
uint64_t orderer_record_count(const struct orderer *orderer);
uint64_t orderer_dropped_count(const struct orderer *orderer);
unsigned __int128 orderer_checksum(const struct orderer *orderer);

#endif /* ORDERER_H */
