/*
 * sorter_state.h - what the phases of a sort share; private to the sorter
 */
#ifndef SORTER_STATE_H
#define SORTER_STATE_H

#include <stdatomic.h>

#include "arena.h"
#include "buckets.h"
#include "checksum.h"
#include "gather.h"
#include "local_sort.h"
#include "output.h"
#include "plan.h"
#include "sorter.h"
#include "team.h"
#include "ties.h"
#include "topology.h"
#include "trace.h"

/* One member's own; a pair of cache lines apart from the next one's. */
struct sorter_member {
	_Alignas(CACHE_PAIR_BYTES) struct bucket_writer writer;
	uint64_t *entries; /* of the chunk at hand: plan.chunk_entries */
	/* Of the bucket at hand and the next one. */
	uint32_t blocks[2][PLAN_BIG_ENTRIES / BUCKETS_BLOCK_ENTRIES +
			   TEAM_MEMBERS_MAX];
	unsigned __int128 checksum;
	struct trace_lane lane;
};

struct sorter {
	const struct sorter_config *config;
	struct sorter_result *result;
	struct input input;
	struct output output;
	struct outfile trace; /* of the timeline */
	struct topology topology;
	struct team team;
	struct plan plan;
	struct arena arena;
	struct splitters splitters;
	struct ties ties;
	local_sort_fn *sort;
	gather_fn *gather;
	checksum_fn *sum;
	uint64_t index_mask;

	struct bucket_pool pool;
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

	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_record; /* to pass */
	uint64_t chunk_count;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t next_chunk;
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t next_big;
	/* The first to fail describes it; stop is set afterwards. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic bool failing;
	_Atomic bool stop;
	struct failure failure;

	struct sorter_member members[TEAM_MEMBERS_MAX];
};

/* From any member: the run has failed; the first failure is kept. */
void sorter_fail(struct sorter *sorter, const struct failure *failure);

/* All members.  False: stop, the run has failed. */
bool bucketing_run(struct sorter *sorter, unsigned member);
bool ordering_run(struct sorter *sorter, unsigned member);

#endif /* SORTER_STATE_H */
