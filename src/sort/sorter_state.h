/*
 * sorter_state.h - what the phases of a sort share; private to the sorter
 */
#ifndef SORTER_STATE_H
#define SORTER_STATE_H

#include <stdatomic.h>

#include "system/arena.h"
#include "sort/buckets.h"
#include "record/checksum.h"
#include "kernels/gather.h"
#include "kernels/local_sort.h"
#include "io/output.h"
#include "sort/plan.h"
#include "sort/sorter.h"
#include "system/thread_pool.h"
#include "sort/ties.h"
#include "system/topology.h"
#include "base/trace.h"

/* One member's own; a pair of cache lines apart from the next one's. */
struct sorter_member {
	_Alignas(CACHE_PAIR_BYTES) struct bucket_writer writer;
	uint64_t *entries; /* of the chunk at hand: plan.chunk_entries */
	unsigned __int128 checksum;
	bool big_passed; /* its part of the big buckets is done */
	struct trace_lane lane;
};

/* Entries in bucket order that came from one source: those of bucket b are
 * entries[start[b]] up to entries[start[b + 1]], in record order. */
struct bucket_run {
	const uint64_t *entries;
	const uint32_t *start;
};

/* Spans that a member's lane has room for. */
#define SORTER_TRACE_SPANS 4096

/* Of ready_buckets: all are complete. */
#define SORTER_ALL_READY UINT32_MAX

struct sorter {
	const struct sorter_config *config;
	struct sorter_result *result;
	struct input input;
	struct output output;
	struct outfile trace; /* of the timeline */
	struct topology topology;
	struct thread_pool threads;
	struct plan plan;
	struct arena arena;
	_Atomic bool *touched; /* its first byte */
	struct splitters splitters;
	struct ties ties;
	local_sort_fn *sort;
	gather_fn *gather;
	checksum_fn *sum;
	uint64_t index_mask;
	uint8_t *base; /* of slot 0 */

	struct bucket_pool pool;
	/* Where the buckets' entries are: in so many runs, whose sources (and
	 * slots) ascend; 0: in the members' lists. */
	const struct bucket_run *runs;
	unsigned run_count;
	/* What is ordered here: of the splitters' buckets so many from that one
	 * on.  All that follows counts from there. */
	uint32_t first_bucket;
	uint32_t bucket_count;
	/* bucket b holds the sorted records bucket_start[b] up to
	 * bucket_start[b + 1]. */
	uint32_t *bucket_start;
	/* Big buckets' entries, sorted; those of bucket b begin at
	 * big_entries[big_start[b]]. */
	uint64_t *big_entries;
	uint32_t *big_start;
	uint32_t big_count; /* entries in big buckets */
	/* Sampled records and scratch for their windows. */
	const uint8_t **sample;
	uint64_t *sample_windows;
	/* Set by member 0 between meetings. */
	bool partition_while_reading;
	bool partition_again;
	bool partitioned;
	/* Or NULL: what member 0 calls every few ms of a pass, for who may not
	 * be silent for long; it calls sorter_fail() to end the run. */
	void (*serve)(void *context);
	void *serve_context;
	/* The members' lists, one after the other, must be in record order. */
	bool keeps_order;

	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_record; /* to pass */
	uint64_t chunk_count;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_chunk;
	_Atomic uint64_t gathered_chunks; /* their records were copied */
	/* Buckets [0, ready_buckets) are complete.  Once it is not 0, all else
	 * that ordering looks at stands. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t ready_buckets;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t next_big;
	/* Of the input's parts that are to be forgotten. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t next_part;
	/* The first to fail describes it; stop is set afterwards. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic bool failing;
	_Atomic bool stop;
	struct failure failure;

	struct sorter_member members[THREAD_POOL_WORKERS_MAX];
};

/* From any member: the run has failed; the first failure is kept. */
void sorter_fail(struct sorter *sorter, const struct failure *failure);

/* The steps of a run.  Those that can fail return 0 or -errno with *failure
 * filled. */
void sorter_choose_kernels(struct sorter *sorter);
/* Before the input is mapped: what its keys look like, and if evenly spread. */
enum splitters_kind sorter_look(const struct sorter *sorter, bool *even,
				struct failure *failure);
/* members threads of the topology, which is read already. */
int sorter_start_team(struct sorter *sorter, unsigned members,
		      struct failure *failure);
/* The output files, with so many records in them, and the timeline's. */
int sorter_open_outputs(struct sorter *sorter, uint64_t record_count,
			struct failure *failure);
int sorter_open_trace(struct sorter *sorter, struct failure *failure);
int sorter_write_trace(struct sorter *sorter, struct failure *failure);
/* Of all members' lanes and for all files' chunks. */
int sorter_trace_lanes(struct sorter *sorter, struct failure *failure);
void sorter_count_chunks(struct sorter *sorter);
/* Refuse a run that takes more memory than --memory allows, or than there is
 * for each of so many runs on this machine. */
int sorter_refuse_memory(const struct sorter *sorter, uint64_t needed_bytes,
			 unsigned runs, struct failure *failure);

/* All members.  False: stop, the run has failed. */
bool bucketing_run(struct sorter *sorter, unsigned member);

/* All members: bring the input in, or walk over what is in memory, or put its
 * records into buckets, or both.  What fails calls sorter_fail(). */
void bucketing_pass(struct sorter *sorter, unsigned member, bool resident,
		    bool partition);
bool ordering_run(struct sorter *sorter, unsigned member);

/* Member 0: from the buckets' counts, where each begins in the sorted whole and
 * which are big. */
void ordering_add_up(struct sorter *sorter);

enum ordering_step {
	ORDERING_MORE,	/* a chunk is done */
	ORDERING_DONE,	/* none is left */
	ORDERING_WAITS, /* the next one's buckets are not complete */
	ORDERING_FAILED,
};

/* All members, when all buckets are complete: order those that are too big for
 * the chunks.  Without big ones it does nothing.  False: stop. */
bool ordering_pass_big(struct sorter *sorter, unsigned member);

/* Order the next chunk and hand it to the output, if its buckets are complete.
 */
enum ordering_step ordering_try(struct sorter *sorter, unsigned member);

#endif /* SORTER_STATE_H */
