/*
 * external_plan.h - every size of an external sort, decided before it starts
 *
 * The memory is divided into batches, of which all but one or two may keep
 * their records to the end: what is spilled is what does not fit into these.
 * More batches spill less, but make more and shorter runs, and so smaller reads
 * when these are merged.  The plan chooses the number that moves the fewest
 * bytes, each read counted like the bytes that a disk would bring meanwhile.
 *
 * A disk with an arm would go to and fro between what is read and what is
 * written.  There a single batch, with nearly all of the memory, is filled and
 * emptied in turns, as psort does; and so is a piece of the last merge, in one
 * area in place of two.
 *
 * Pure arithmetic.  results/NOTES.md has the measurements behind the constants.
 */
#ifndef EXTERNAL_PLAN_H
#define EXTERNAL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "external/runs/batch.h"
#include "external/runs/codec.h"
#include "external/plan/lane_plan.h"

/* A record_count that is not known: the input is a pipe. */
#define EXTERNAL_RECORDS_UNKNOWN UINT64_MAX
/* A read takes as long as that of so many bytes more, at least: a disk that
 * brings 2.9 GB/s by reads of 176 KB brings 2.1 by reads of 88
 * (results/NOTES.md). */
#define EXTERNAL_READ_COST_BYTES (64 * KIB)
/* The disk has an arm, which reads and writes in turn, if a read elsewhere
 * costs it as much as so many bytes; at 150 MB/s that is 3.5 ms. */
#define EXTERNAL_ARM_BYTES (512 * KIB)
/* A merge of runs into a run takes longer than the last merge does for as many
 * bytes: no pass runs beside its begin and its end, and room is given back
 * behind it.  1.4 s a GB were measured, and 0.85 (results/NOTES.md). */
#define EXTERNAL_MERGE_COST 1.7

/* The kernel counts this part of the memory beside it, of the sort's and of
 * files that are memory: for pages, requests and a file system's blocks.  Of
 * 100 MB it is 3 MB. */
#define EXTERNAL_KERNEL_PART 32

/* What this rank has to do of a sort by many; all zeros: it sorts alone. */
struct external_ranks {
	/* Ranks that merge all of their runs together (external_rank.h), with
	 * this one; and how many records this one gets. */
	unsigned rank_count;
	uint64_t part_records;
	/* Ranks among these that keep runs (0: all), and other ranks than this
	 * one that get a part of the merge; does this one get none? */
	unsigned keeper_count, taker_count;
	bool takes_nothing;
	/* This one keeps no runs, and gives its own to another rank.  Or it
	 * keeps those of other ranks (kept_runs.h), beside its own: how many
	 * ranks, records of all of them together, and of the one that has most.
	 */
	bool gives_runs;
	unsigned giver_count;
	uint64_t kept_records, kept_most;
	/* The number of this one's first record in the input of all. */
	uint64_t input_begin;
	/* Records of the rank with the largest input: all of them plan for so
	 * many, so that their pieces and blocks suit each other.  Forecasts are
	 * of own_records: the same, or 0 of a rank that reads nothing. */
	uint64_t planned_records, own_records;
	/* All ranks read the same files: this one plans for planned_records of
	 * them, reads what is given to external_rank.claims, and has an index
	 * for records_max. */
	bool shares_input;
	uint64_t records_max;
};

/* All ranks that get a part. */
static inline unsigned external_ranks_takers(const struct external_ranks *ranks)
{
	return ranks->taker_count + !ranks->takes_nothing;
}

struct external_request {
	struct record_shape shape;
	uint64_t record_count;
	uint64_t memory_bytes; /* of all that the process touches */
	unsigned worker_count; /* of each of the two teams */
	bool may_have_fewer;   /* workers, if memory is little */
	/* Borrowed; NULL: all records are read one after the other. */
	const struct lane_plan *lanes;
	/* The input is so many files, each in order, which are merged as runs
	 * (input_runs.h).  0: it is to be sorted. */
	unsigned input_runs;
	unsigned runs_max;  /* in one merge; 0: what memory allows */
	struct codec codec; /* of the blocks of runs */
	bool in_order;	    /* the output's chunks must be written so */
	bool sums_up;	    /* the records' checksums are wanted */
	/* Records that are wanted, the first of the order; 0: all. */
	uint64_t head_records;
	/* What the output gets of a record; 0: all of it. */
	uint32_t written_size;
	struct external_ranks ranks;
	/* What decided on the workers, as in sort_setup.h, or "memory"; and on
	 * memory_bytes: "--memory", or as in allowance.h, or "scratch files",
	 * which are memory. */
	const char *threads_source, *memory_source;
	/* What outputs take, which are memory themselves. */
	uint64_t output_bytes;
	/* If all scratch files are memory: what is available for them and
	 * memory_bytes together; else 0. */
	uint64_t available_bytes;
	/* Bytes that the disk would read in the time of a seek; 0: they are not
	 * known, and few. */
	uint64_t seek_bytes;
	/* What is read and what is written are on different disks. */
	bool reads_apart;
};

/* The arm of the disk would go to and fro between what is read and what is
 * written. */
static inline bool
external_request_has_arm(const struct external_request *request)
{
	return request->seek_bytes >= EXTERNAL_ARM_BYTES &&
	       !request->reads_apart;
}

static inline bool
external_request_is_stream(const struct external_request *request)
{
	return request->record_count == EXTERNAL_RECORDS_UNKNOWN;
}

static inline uint32_t
external_request_written_size(const struct external_request *request)
{
	return request->written_size > 0 ? request->written_size
					 : request->shape.size;
}

enum external_way {
	/* The records are sorted in runs, and these are merged. */
	EXTERNAL_BY_RUNS,
	/* The records are large: only their keys are sorted, in one batch, and
	 * each record is fetched once (external_ordering.c).  The batch's
	 * records are the keys then. */
	EXTERNAL_BY_KEYS,
	/* The records are so small that they are counted (record_counts.h):
	 * batches pass through the memory, and the output is written from what
	 * was counted (record_counts.h). */
	EXTERNAL_BY_COUNTS,
	/* Only the first records of the order are wanted, and these stay in
	 * memory (external_head.c): batches pass by, and nothing is spilled. */
	EXTERNAL_BY_HEAD,
};

/* What ranks that merge together need memory for, in areas of the same size:
 * two pieces; what has arrived for a third, and arrives for a fourth; and what
 * goes to other ranks, twice.
 */
#define EXTERNAL_RANK_AREAS 6

/* Pieces that a rank's merge may have.  Each is brought by a wave, which is a
 * collective of the exchange: of 65535 that a run may have, some go before and
 * behind. */
#define EXTERNAL_RANK_PIECES_MAX 40000

/* What a rank that keeps runs of others gets from each of them is bounded by
 * these (external/ranks/kept_runs.h): bytes before the records of a message;
 * how many slices a giver sends its input in, but for the last one of each
 * batch, since each slice is a collective of all ranks; and staging slots of
 * each giver, of which the writing thread fills one while others are written.
 */
#define KEPT_RUNS_HEAD_BYTES 32
#define KEPT_RUNS_SLICES_MAX 8192
#define KEPT_RUNS_SLOTS 3

struct external_plan {
	enum external_way way;
	unsigned rank_count;   /* at least 1 */
	unsigned keeper_count; /* the same */
	struct batch_request batch;
	unsigned batch_count;
	uint64_t batch_bytes;	/* of memory, each */
	uint32_t block_records; /* in a block of a run */
	/* That the first pass reads side by side, and its workers, of all lanes
	 * together: at least one each. */
	unsigned lane_count;
	unsigned reader_count;
	/* Staging slots for reads: `read_depth` of each reader. */
	uint32_t read_slot_bytes;
	unsigned read_depth;
	/* Staging slots for writes, of runs or of the output. */
	unsigned write_depth;
	unsigned slot_count;
	size_t slot_bytes; /* whole pages */
	size_t run_chunk_bytes;
	size_t output_chunk_bytes;
	/* What each worker has beside its staging slots. */
	size_t encoder_bytes;
	size_t decoder_bytes;
	/* What runs of other ranks take: records that one of them may send at
	 * once, room for a message of it, and memory for all. */
	uint64_t kept_slice_records;
	uint64_t kept_message_bytes; /* whole pages */
	uint64_t kept_bytes;
	uint64_t memory_bytes; /* of the arena */

	/* The first records of each batch's order stay, as many as are wanted
	 * of the whole, in a batch of their own (external_head.c). */
	bool keeps_head;

	unsigned free_batches; /* for the last merge, at least */
	/* Areas for that merge: two for pieces, or one, where a piece is read
	 * when the one before it has been written; or EXTERNAL_RANK_AREAS. */
	unsigned merge_areas;

	/* What is expected; all are 0 if the number of records is
	 * unknown. */
	uint64_t run_count;
	uint64_t spilled_records; /* by the first pass */
	uint64_t scratch_bytes;	  /* at most */
	uint64_t piece_count;
	/* Merges of runs into longer ones before the last merge, and what they
	 * read and write. */
	uint64_t merge_count;
	uint64_t merged_records;
	uint64_t read_bytes; /* mean, of one run at once, in the last pass */
	/* How often the disk moves the input between reading it and writing the
	 * output, with what its reads cost; also of a stream. */
	double cost;
	/* That it has room for at first; a stream can't have more. */
	uint64_t index_blocks;
	uint64_t index_bytes;
};

/* All staging slots for reads together. */
static inline uint64_t
external_plan_reading_bytes(const struct external_plan *plan)
{
	return (uint64_t)plan->reader_count * plan->read_depth *
	       plan->read_slot_bytes;
}

/* The most entries of a chunk, of a run or of the output. */
uint64_t external_plan_chunk_entries(const struct external_plan *plan,
				     const struct external_request *request);

/* Returns 0, or -ENOMEM if request->memory_bytes is too little. */
int external_plan_make(struct external_plan *plan,
		       const struct external_request *request);

/* [enum external_way]: "runs", "keys", "counts", "head" */
extern const char *const external_way_names[];

/* True: the plan with several lanes needs no more merges than the one with a
 * single lane, and spills hardly more. */
bool external_plan_gains(const struct external_plan *several,
			 const struct external_plan *single,
			 const struct external_request *request);

/* When `free_batches` of the batches hold nothing, each is divided into so many
 * areas of the same size for the last merge: two pieces may share a lone one.
 */
unsigned external_plan_areas(const struct external_plan *plan,
			     unsigned free_batches);

/* Bytes of such an area, and records that a piece may have in it. */
size_t external_plan_area_bytes(const struct external_plan *plan,
				unsigned free_batches);
uint64_t external_plan_piece_records(const struct external_plan *plan,
				     unsigned free_batches);

/* How many runs one merge may have; of this rank alone. */
unsigned external_plan_runs_max(const struct external_plan *plan,
				const struct external_request *request,
				unsigned free_batches);

#endif /* EXTERNAL_PLAN_H */
