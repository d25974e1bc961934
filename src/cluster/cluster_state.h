/*
 * cluster_state.h - what the steps of a rank's sort share; private to them
 *
 *      cluster.c            the run, from the first pass to the commit
 *      cluster_join.c       before that: what we have, what all ranks have
 *      cluster_sample.c     splitters from a sample, cuts from counts
 *      cluster_send.c       our records in bucket order, and the messages
 *      cluster_receive.c    our share: room for it, what arrives, its order
 *      cluster_compress.c   records that are compressed before they are sent
 *      cluster_by_reference.c  records that are read where they are
 *      cluster_output.c     files of our own, or files with other ranks
 *      cluster_external.c   all of it, for what does not fit into memory
 *
 * The modules in the folders hold a part each and know nothing of the rest
 * (src/README.md).
 *
 * Thread 0 runs it and writes all fields, with the exceptions that the headers
 * of the bucketing, the orderer and the output name.  A field is written by the
 * one file that stands before its group.
 */
#ifndef CLUSTER_STATE_H
#define CLUSTER_STATE_H

#include "base/clock.h"
#include "cluster/cluster.h"
#include "cluster/agreement/cluster_agree.h"
#include "cluster/memory/shares.h"
#include "io/input/input.h"
#include "io/output/output.h"
#include "kernels/gather.h"
#include "sort/bucketing.h"
#include "sort/orderer.h"
#include "system/topology.h"

/* Splitters and cuts that follow from samples and counts.
 * Written by cluster_sample.c. */
struct cluster_sample {
	/* The shape of encoded keys, as if they were records, and one of them,
	 * owned, which has the bytes that all sampled keys share. */
	struct record_shape key_shape;
	uint8_t *common_key;
	/* Owned: the records that a source has in a bucket are counts[source *
	 * bucket_count + bucket]. */
	uint32_t *counts;
};

/* The message to a rank.
 * Written by cluster_send.c. */
struct cluster_target {
	uint8_t *head;
	uint64_t head_bytes;
	uint32_t first; /* its first record in entries */
	uint32_t count; /* of records */

	/* Written by cluster_compress.c, if records are compressed. */
	uint8_t *compressed; /* the table, and the blocks as they are sent */
};

/* Our own records in bucket order, and the messages that take them away. */
struct cluster_send {
	/* Written by cluster_send.c. */
	gather_fn *gather;
	/* The slots are the input's.  The entries of bucket b begin at
	 * start[b].  The entries of our own share get their slots in the share
	 * later, from the receiving side. */
	uint64_t *entries;
	uint32_t *start;
	uint64_t index_mask; /* of the slot in these entries */
	uint64_t digest;     /* of splitters and cuts */

	/* Written by cluster_join.c: [rank], of the cluster's memory. */
	struct share_cut *cuts; /* where its share begins; and one more */
	uint64_t *send_bytes;
	struct cluster_target *targets; /* targets[0].head is owned */

	/* Written by cluster.c: it has the lists, too. */
	struct arena arena;
};

/* Where our share goes.
 * Written by cluster_output.c. */
struct cluster_output {
	struct output output; /* the sink of the share */
	/* Of the file that we write with other ranks: its number; its first and
	 * its last rank, between which all ranks that sort write it; the room
	 * for its records, and how much of that they take in the end. */
	unsigned file, first_rank, last_rank;
	uint64_t room_bytes, gathered_bytes;
};

/* What one rank sends us (cluster_send.c). */
struct cluster_source {
	/* Written by cluster_receive.c. */
	uint8_t *head; /* and the table of compressed blocks behind it */
	uint64_t head_bytes;
	uint64_t table_bytes;
	uint64_t stored_bytes; /* of its records, as they are sent */
	uint64_t record_count;
	uint64_t first_slot; /* of its records, in the share's numbering */
	uint64_t *entries;   /* of its records */
	uint32_t *start;     /* [bucket] of the share, and one more */
	bool has_head;
	uint32_t complete_count; /* buckets whose records have all arrived */

	/* Written by cluster_compress.c. */
	uint64_t taken_blocks; /* that have been decompressed */
	uint64_t taken_bytes;  /* of them, as they were sent */

	/* Written by cluster_by_reference.c. */
	int input_fd; /* the rank's mapped input; 0: none */
};

/* Our share of all records, as it arrives. */
struct cluster_receive {
	/* Written by cluster_receive.c. */
	struct plan plan;    /* of the share; memory_bytes: of the whole sort */
	struct arena arena;  /* owned; of the sources and of the orderer */
	uint8_t *base;	     /* of slot 0 in the share's numbering */
	uint64_t index_mask; /* of the slot in an entry of the share */
	struct bucket_set set;	/* our share of the splitters' buckets */
	unsigned heads_missing; /* sources, ours included, without has_head */
	/* Static shares were too unequal: what arrives is thrown away. */
	bool discards;
	bool orders; /* the workers have been told to order */

	/* Written by cluster_join.c: [rank], of the cluster's memory. */
	struct cluster_source *sources;
	uint64_t *shares; /* records that each rank gets, if that is needed */
	struct bucket_run *runs; /* of the set */
};

/* What a worker compresses with.
 * Written by cluster_compress.c. */
struct cluster_coder {
	struct codec_encoder encoder;
	uint8_t *block; /* of records; later, what is to be decompressed */
};

/* Written by cluster_compress.c. */
struct cluster_compress {
	bool is_chosen;
	struct codec codec; /* CODEC_NONE: records are sent as they are */
	struct arena coders_arena, messages_arena; /* owned */
	struct cluster_coder coders[THREAD_POOL_WORKERS_MAX];
	struct codec_decoder decoder;
};

/* Phases of the exchange that all ranks must come to. */
enum cluster_phase { CLUSTER_WRITTEN = 1, CLUSTER_CHECKED, CLUSTER_NAMED };

struct cluster {
	/* Written by cluster.c, before the other files' functions run. */
	const struct sorter_config *sort_config;
	const struct cluster_config *config;
	struct cluster_result *result;
	struct cluster_report *report; /* ours, in the result */
	struct failure *failure;       /* the run's */
	struct rank rank;

	/* Written by cluster_join.c. */
	struct arena memory; /* owned; for what there is for each rank */
	unsigned node_count; /* also when the rank is forgotten */
	struct input input;
	struct source source;
	struct topology topology; /* of our own CPUs: see has_nodes */
	unsigned machine_cpus;	  /* that all ranks on it may use */
	/* The machine has several NUMA nodes, and they are not ignored: then
	 * topology has our own CPUs and their nodes only. */
	bool has_nodes;
	struct thread_pool pool;
	struct exchange *exchange;    /* owned */
	struct cluster_hello *hellos; /* [rank]; of the cluster's memory */
	struct cluster_agreement agreement;

	/* Written by cluster.c. */
	struct plan plan; /* of the lists of our own records */
	struct splitters splitters;
	bool is_passing; /* a pass over the input is under way */
	struct first_failure first_failure; /* any worker */
	struct sort_trace trace;
	struct bucketing bucketing;
	struct cluster_sample sample;
	struct cluster_send send;
	struct cluster_compress compress;
	struct cluster_receive receive;
	struct orderer orderer;
	struct cluster_output output;
};

/* Add the time since then to a figure; *since_ns is now. */
static inline void cluster_add_ns(struct cluster *cluster,
				  enum cluster_figure figure,
				  uint64_t *since_ns)
{
	uint64_t begin_ns = *since_ns;

	*since_ns = clock_now_ns();
	cluster->report->figures[figure] += *since_ns - begin_ns;
}

/* Does this rank have the role? */
static inline bool cluster_own_has(const struct cluster *cluster,
				   enum cluster_role role)
{
	return cluster_roles_have(cluster->result->roles[cluster->rank.rank],
				  role);
}

static inline bool cluster_is_on_one_machine(const struct cluster *cluster)
{
	return cluster->rank.machine_count == cluster->rank.node_count;
}

/* True by UDP on one machine: taking turns there means only switches between
 * processes. */
static inline bool cluster_shares_no_link(const struct cluster *cluster)
{
	return cluster_is_on_one_machine(cluster) &&
	       !cluster->config->open_exchange;
}

/* --- cluster.c ------------------------------------------------------------ */

/* cluster_run() in a cluster that is all zeros.  cluster_free() gives back what
 * is left there: inputs and memory.  Ranks that are threads of one process call
 * these two. */
int cluster_run_in(struct cluster *cluster, const struct sorter_config *config,
		   const struct cluster_config *cluster_config,
		   struct cluster_result *result, struct failure *failure);
void cluster_free(struct cluster *cluster);

/* The functions that follow return 0 or -errno, with *failure filled or
 * *cluster->failure if they have no such argument. */

/* --- cluster_sample.c ------------------------------------------------------
 */

/* All ranks: the same splitters for all, which refer to the sample. */
int cluster_sample_splitters(struct cluster *cluster);
/* All ranks: the same cuts for all, when our records are in bucket order. */
int cluster_sample_cuts(struct cluster *cluster);

/* --- cluster_send.c --------------------------------------------------------
 */

/* Pieces that cluster_send_take_memory() takes from the arena. */
#define CLUSTER_SEND_PIECES 2

void cluster_send_take_memory(struct cluster *cluster);
/* Make one array of the lists. */
int cluster_send_compact(struct cluster *cluster);
/* Make the messages' heads and sizes, when the cuts are made. */
int cluster_send_build_messages(struct cluster *cluster);
/* Copy bytes of the message to a rank, for the exchange. */
void cluster_send_read(void *cluster, unsigned node, uint64_t offset,
		       uint8_t *bytes, size_t byte_count);
/* Thread 0 works for long: other ranks may want to know that we are alive. */
void cluster_serve(void *cluster);
/* Copy bytes of the records that go to a rank. */
void cluster_send_read_records(const struct cluster *cluster, unsigned node,
			       uint64_t offset, uint8_t *bytes,
			       size_t byte_count);

/* --- cluster_compress.c ----------------------------------------------------
 */

static inline bool cluster_compresses(const struct cluster *cluster)
{
	return cluster->compress.codec.kind != CODEC_NONE;
}

/* All ranks, when the messages have been built: choose the codec, once. */
int cluster_compress_choose(struct cluster *cluster);
/* Compress the messages, if so chosen, and set their sizes. */
int cluster_compress_messages(struct cluster *cluster);
/* Bytes of the table in a message of so many records; 0 if they are not
 * compressed. */
uint64_t cluster_table_bytes(const struct cluster *cluster, uint64_t records);
/* Are all messages to us announced as their records may have become? */
int cluster_compress_check(struct cluster *cluster, struct failure *failure);
/* Decompress what is whole of a message that has come up to *prefix_bytes,
 * which becomes the prefix of the head and the records.  NULL, or what is wrong
 * with the message. */
const char *cluster_decompress(struct cluster *cluster, unsigned node,
			       uint64_t *prefix_bytes);

/* --- cluster_output.c ------------------------------------------------------
 */

/* Where ranks write files together: set the number of our file and its ranks,
 * from the roles in the result. */
void cluster_output_find_file(struct cluster *cluster);
/* Only the first records of the whole order are wanted: from how many each rank
 * has to how many each writes.  Returns our own. */
uint64_t cluster_output_head(const struct cluster *cluster, uint64_t *shares);
/* The rank gives an output its name, which has a header, and reads no input. */
bool cluster_output_lacks_header(const struct cluster *cluster);
/* Open the output for record_count records.  shares: if ranks write files
 * together, how many of the sorted records each rank has. */
int cluster_output_open(struct cluster *cluster, const uint64_t *shares,
			uint64_t record_count, struct failure *failure);
/* Called before the first chunk, or when all are written: there are fewer
 * records. */
int cluster_output_shrink(struct cluster *cluster, const uint64_t *shares,
			  uint64_t record_count, struct failure *failure);
/* All of the share has been handed over: write it, for other ranks to see. */
int cluster_output_finish(struct cluster *cluster, struct failure *failure);
/* All ranks have finished: look whether files that ranks write together are
 * whole.  Other ranks may look at other files, so no file gets its name before
 * all have looked. */
int cluster_output_check(struct cluster *cluster, struct failure *failure);
/* All ranks have finished, and looked: give the files their names; also, unless
 * it is NULL, is one more file that gets its name with them. */
int cluster_output_commit(struct cluster *cluster, struct outfile *also,
			  struct failure *failure);
/* Close the output.  If the run has failed, remove also the hidden files that
 * other ranks write: one of these may have been killed, and may have had no
 * other rank in its file.  Safe if nothing was opened. */
void cluster_output_close(struct cluster *cluster, bool has_failed);

/* --- cluster_receive.c ---------------------------------------------------- */

/* Send, receive and order; receive.discards tells if the shares were too
 * unequal: then nothing is ordered. */
int cluster_exchange(struct cluster *cluster);

/* --- cluster_join.c ------------------------------------------------------- */

/* Memory for what there is for each rank, when the ranks are known. */
int cluster_lay_out_ranks(struct cluster *cluster);
/* Open the input and start the pool, say hello.  After an error the exchange
 * may be open, for other ranks to be told. */
int cluster_open(struct cluster *cluster);
/* What the user allows, or our part of what the machine has. */
uint64_t cluster_memory_bytes(const struct cluster *cluster);
/* Hear all other ranks, agree, map the input. */
int cluster_join(struct cluster *cluster);

/* --- cluster_external.c ----------------------------------------------------
 */

/* Sort beyond memory: our share has been handed over to the output. */
int cluster_sort_externally(struct cluster *cluster);

/* --- cluster_by_reference.c ----------------------------------------------- */

static inline bool cluster_is_by_reference(const struct cluster *cluster)
{
	return cluster->agreement.by_reference;
}

/* Bytes of a message for a record. */
static inline uint32_t cluster_unit_bytes(const struct cluster *cluster)
{
	return cluster_is_by_reference(cluster)
		       ? (uint32_t)sizeof(uint64_t)
		       : cluster->sort_config->shape.size;
}

/* Fill the hello's words about our input, if other ranks on this machine can
 * map it. */
void cluster_offer_input(struct cluster *cluster, struct cluster_hello *hello);
/* Slots that a rank's input takes in the range of all inputs. */
uint64_t cluster_input_slots(const struct cluster *cluster, unsigned node);
/* Map those inputs that we want something of; their sources have first_slot. */
int cluster_map_inputs(struct cluster *cluster, struct failure *failure);
/* Entries as they have arrived, with slots of their source's input: give them
 * slots of the share. */
void cluster_take_entries(const struct cluster *cluster, unsigned node,
			  uint64_t *entries, uint64_t count);

#endif /* CLUSTER_STATE_H */
