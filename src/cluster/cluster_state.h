/*
 * cluster_state.h - what the parts of a cluster sort share; private to it
 *
 *      cluster.c            the run, from the first pass to the commit
 *      cluster_join.c       before that: who we are and what we have
 *      cluster_agree.c      what follows from the hellos
 *      cluster_sample.c     shares by a sample and by counts
 *      cluster_send.c       our records in bucket order, and to whom they go
 *      cluster_receive.c    what comes, and its order
 *      cluster_by_reference.c  records that are read where they are
 *      cluster_output.c     where it goes: files of our own, or one of all
 *      cluster_report.c     figures
 *      cluster_trace.c      all ranks' timelines in one
 */
#ifndef CLUSTER_STATE_H
#define CLUSTER_STATE_H

#include "cluster/cluster.h"
#include "cluster/cluster_agree.h"
#include "cluster/shares.h"
#include "sort/sorter_state.h"

/*
 * A message is the numbers of records that each bucket of the receiver's share
 * gets from this source (u32, little endian), and behind it these records; or,
 * if memory is shared, their entries (u64), with slots of the source's input.
 */
struct cluster_target {
	uint8_t *head; /* the numbers */
	uint64_t head_bytes;
	uint32_t first; /* its first record in own_entries */
	uint32_t count;
};

struct cluster_source {
	uint8_t *head;
	uint64_t head_bytes;
	bool has_head;
	uint64_t record_count;
	uint64_t first_slot;	 /* of its records, in the share's numbering */
	uint64_t *entries;	 /* of its records */
	uint32_t *start;	 /* [bucket] of the share, and one more */
	uint32_t complete_count; /* of these buckets */
};

/* Phases of the exchange that all ranks must come to. */
enum cluster_phase { CLUSTER_WRITTEN = 1, CLUSTER_NAMED };

struct cluster {
	struct sorter sorter;
	const struct cluster_config *config;
	struct cluster_result *result;
	struct failure *failure; /* the run's, filled by member 0 */
	struct rank rank;
	struct exchange *exchange;
	struct cluster_agreement agreement;
	struct cluster_hello hellos[RANK_NODES_MAX];
	int error; /* of the script */

	/* What members other than 0 do: a serial number above an action. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint32_t command;
	bool pass_resident, pass_partition;

	/* Our own records in bucket order; slots are the input's.  Those of
	 * bucket b begin at own_start[b]. */
	struct arena own_arena;
	uint64_t *own_entries;
	uint32_t *own_start;
	uint64_t own_mask; /* of the slot in these entries */
	/* counts[source * bucket_count + bucket], if shares were counted. */
	uint32_t *counts;
	/* Sampled keys, and a record with the prefix they share. */
	uint8_t *prefix_record;
	struct share_cut cuts[RANK_NODES_MAX + 1];
	uint64_t send_bytes[RANK_NODES_MAX];
	struct cluster_target targets[RANK_NODES_MAX];

	/* Static shares were too unequal: what comes is thrown away. */
	bool discards;
	uint8_t *trash;
	unsigned heads_missing;
	struct cluster_source sources[RANK_NODES_MAX];
	struct bucket_run runs[RANK_NODES_MAX];
};

/* --- cluster.c -------------------------------------------------------------
 */

/* cluster_run() in a cluster that is all zeros.  What it leaves there is input,
 * arenas and memory, for the end of the process or of a test to free. */
int cluster_run_in(struct cluster *cluster, const struct sorter_config *config,
		   const struct cluster_config *cluster_config,
		   struct cluster_result *result, struct failure *failure);

/* Let the other members order what becomes ready. */
void cluster_start_ordering(struct cluster *cluster);
void cluster_add_ns(struct cluster *cluster, enum cluster_figure figure,
		    uint64_t since_ns);

/* Those that follow return 0 or -errno with *cluster->failure filled. */

/* All members: bring in, put into buckets. */
int cluster_pass(struct cluster *cluster, bool resident, bool partition);

/* --- cluster_sample.c ------------------------------------------------------
 */

/* Splitters from the keys that all ranks draw. */
int cluster_sample(struct cluster *cluster);
/* Cut shares by what all ranks have in each bucket. */
int cluster_count(struct cluster *cluster);

/* --- cluster_send.c ---------------------------------------------------------
 */

/* An arena for so many bytes in so many pieces, and a piece of it. */
int cluster_map_arena(struct arena *arena, uint64_t bytes, uint64_t takes,
		      struct failure *failure);
void *cluster_take(struct arena *arena, uint64_t count, size_t each_bytes);

/* Sizes of what buckets our own records, with so many lists. */
int cluster_plan_lists(struct cluster *cluster, uint32_t bucket_count);
/* The same, and the memory. */
int cluster_lay_out_lists(struct cluster *cluster, uint32_t bucket_count);
static inline bool cluster_is_on_one_machine(const struct cluster *cluster)
{
	return cluster->rank.machine_count == cluster->rank.node_count;
}

/* From lists to own_entries. */
int cluster_flatten(struct cluster *cluster);
/* The messages' heads and sizes, when cuts are made. */
int cluster_address(struct cluster *cluster);
/* For the exchange: bytes of the message to a node. */
void cluster_read_message(void *context, unsigned node, uint64_t offset,
			  uint8_t *bytes, size_t byte_count);

/* --- cluster_receive.c ------------------------------------------------------
 */

/* Send, receive and order; discards tells if it was in vain. */
int cluster_exchange(struct cluster *cluster);

/* What each node gets of the whole, when all have announced. */
void cluster_count_shares(const struct cluster *cluster,
			  uint64_t records[RANK_NODES_MAX]);

/* --- cluster_output.c -------------------------------------------------------
 */

/* For so many records of ours. */
int cluster_open_output(struct cluster *cluster, uint64_t record_count,
			struct failure *failure);
/* All of ours is written, for the others to see. */
int cluster_finish_output(struct cluster *cluster);
/* When that holds for all: names, of also too unless it is NULL. */
int cluster_commit_output(struct cluster *cluster, struct outfile *also);

/* --- cluster_join.c ---------------------------------------------------------
 */

/* Open the input and start the team, say hello.  After an error the exchange
 * may be open, for others to be told. */
int cluster_open(struct cluster *cluster);
/* Hear all others, agree, map the input. */
int cluster_join(struct cluster *cluster);

/* --- cluster_by_reference.c ---------------------------------------------------------
 */

static inline bool cluster_is_shared(const struct cluster *cluster)
{
	return cluster->agreement.by_reference;
}

/* Bytes of a message for a record. */
static inline uint32_t cluster_unit_bytes(const struct cluster *cluster)
{
	return cluster_is_shared(cluster) ? (uint32_t)sizeof(uint64_t)
					  : cluster->sorter.config->shape.size;
}

/* Fill the hello's words about it, if others on this machine can map it. */
void cluster_offer_input(struct cluster *cluster, struct cluster_hello *hello);
/* Room around our own input for those of all others. */
void cluster_reserve_inputs(struct cluster *cluster);
/* Slots that a rank's input takes in this room. */
uint64_t cluster_input_slots(const struct cluster *cluster, unsigned node);
/* Map those that something is wanted of; their sources have first_slot. */
int cluster_map_inputs(struct cluster *cluster, struct failure *failure);
/* Entries as they have come, with slots of their source's input, into ours. */
void cluster_take_entries(const struct cluster *cluster, unsigned node,
			  uint64_t *entries, uint64_t count);

/* --- cluster_trace.c -------------------------------------------------------
 */

/* Rank 0 gets all timelines and writes them, by its own clock. */
int cluster_trace(struct cluster *cluster);

#endif /* CLUSTER_STATE_H */
