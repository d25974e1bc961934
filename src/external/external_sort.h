/*
 * external_sort.h - sort what does not fit into memory
 *
 * Pass 1 reads the input batch by batch, sorts each batch and writes it to
 * scratch files as a run (run_sink.h); the last batches stay in memory.  Pass 2
 * cuts the merge of all runs into pieces (merge_plan.h): it reads the blocks of
 * each piece, sorts them as pass 1 does, and writes them to the output.  In
 * both passes one team of threads reads while another one sorts and writes
 * (pipeline.h).  Only where the runs are too many for pieces of this memory are
 * some of them merged into longer runs before.
 *
 * Where the input files are on several devices, pass 1 reads these side by side
 * (lane_plan.h).  Ranks merge all of their runs together (external_rank.h).
 *
 * Terms, in the order in which a record meets what they mean:
 *
 *      lane    files that are read one after the other, by a team of their own
 *      unit    what one read brings: records, or blocks that lie side by side
 *      batch   an area of the memory, and the range of the input that fills it
 *      share   what one worker reads of a batch, or of a piece
 *      run     such a range in order: in scratch files, still in its batch, or
 *              in the input, if it is in order there
 *      block   some records of a run: the index has its first key, and of those
 *              in scratch files the checksum
 *      cut     a place in the order of the blocks of all runs
 *      piece   what lies between two cuts and fits into a batch: it is merged
 *              in one step
 *      rest    records of a piece's last blocks that belong to the next piece
 *      part    what one rank gets of the merge of all ranks' runs, by two cuts;
 *              its first piece is the lead, of which it has only the rests
 *      wave    a message from each rank to each other: it brings each its piece
 *      keeper  a rank that keeps runs, also those of a giver, which keeps none
 *      team    threads that do the same, and the leader that hands them a batch
 *
 * Threads of a sort:
 *
 * The caller leads the ordering team.  The pool of leaders (pipeline.h) also
 * has a thread for each lane, which leads the lane's reading team, and one that
 * gives back the room of blocks that have been read.  A leader is worker 0 of
 * its team: thread_pool_run() wakes the others and waits for them.  Only
 * leaders wait for batches, on the pipeline's condition: a reading leader until
 * one is free, the ordering leader until one must be emptied.  A leader that
 * puts a batch into a queue, or ends, wakes all of them.
 *
 * Between passes the caller may touch everything, and no other thread anything.
 * In a pass a batch belongs to the leader that took it, and to its team until
 * the leader puts it back.  A lane belongs to its leader, the pieces of a merge
 * to the leader of lane 0; the orderer, and the index of runs that are written,
 * to the ordering leader.  The workers have what the headers of the bucketing,
 * the sources and the orderer give them.  A sink has a lock: the worker that
 * finds all slots taken waits for a write itself, so no thread only writes.
 * Worker 0 of a team calls the meter, and goes on if another one is in it.
 *
 * The caller of a rank (external_rank.h) is busy with the exchange; a thread of
 * its own, the driver, does there what the caller does above.  The sender reads
 * blocks for other ranks, and the writer (kept_runs.h) writes the runs of
 * givers.  They wait for counters that the caller raises by thread_pool_set();
 * the caller looks at theirs between two steps of the exchange.
 *
 * A thread that fails notes why in the state's `failure`, where the first one
 * stays.  All others look there as they go on, and end.  The leader that ends
 * wakes those that wait; external_rank_stop() wakes the threads of a rank.
 *
 * Indexed runs that are merged range by range come from DuckDB 1.4 and
 * Databend; a part that stays in memory from SPsort (Wyllie 1999).
 */
#ifndef EXTERNAL_SORT_H
#define EXTERNAL_SORT_H

#include "base/failure.h"
#include "base/format.h"
#include "base/stage.h"
#include "external/runs/codec.h"
#include "external/plan/codec_choice.h"
#include "external/plan/external_model.h"
#include "external/plan/external_plan.h"
#include "io/scratch.h"
#include "sort/sort_config.h"

struct external_progress {
	enum external_pass pass;
	/* What all passes together have read and written, and what they will;
	 * 0 if that is not known yet, as with a stream. */
	uint64_t moved_bytes, total_bytes;
	/* How long the reading team has waited since the last call, in percent
	 * of that time: for the disk, and for memory that the ordering team has
	 * not given back yet. */
	unsigned wait_disk_percent, wait_memory_percent;
};

typedef void external_progress_fn(void *context,
				  const struct external_progress *progress);

/* Add this progress to a line: async-signal-safe, since it answers SIGUSR1
 * (answer.h). */
void external_progress_tell(const struct external_progress *progress,
			    struct format_line *line);

struct external_config {
	const struct sorter_config *sort;
	/* Directories for scratch files. */
	const char *const *scratch_paths;
	unsigned scratch_count;
	/* The user has named them: before a stream is read, all of them must
	 * take files, even if none is needed in the end; but not if its records
	 * are counted. */
	bool scratch_is_named;
	/* Each input file is in order: they are merged (input_runs.h), and one
	 * that turns out not to be is refused. */
	bool merges_inputs;
	unsigned runs_max;  /* in one merge; 0: what memory allows */
	struct codec codec; /* for what is spilled */
	/* What a sort in memory would take, for a message; 0: not known. */
	uint64_t in_memory_bytes;
	/* The machine has several NUMA nodes, though this process may be kept
	 * to one: what lies where is counted. */
	bool has_nodes;
	struct external_ranks ranks;
	/* Predictions need them.  The three of the disk are 0 if they are not
	 * known, and that of the link is 0 if it is not. */
	struct external_rates rates;
	/* The rate of the slowest link of all ranks, by which the codec is
	 * chosen; 0: not known. */
	uint64_t least_link;
	/* What one thread calls about once a second, or NULL. */
	external_progress_fn *progress;
	void *progress_context;
};

/* What a pass has taken.  A stage of no units was not there.  STAGE_ORDER,
 * STAGE_GATHER and STAGE_PUT are the work of the same threads, by turns. */
struct external_pass_result {
	uint64_t ns;
	uint64_t read_bytes, written_bytes;
	struct stage_result stages[STAGES];
};

/* What struct sorter_result does not say.  Valid if external_sort_run()
 * returned 0. */
struct external_result {
	enum external_way way;
	bool merges_inputs;  /* the runs are the input files */
	unsigned lane_count; /* devices that pass 1 read side by side */
	unsigned batch_count;
	uint64_t batch_bytes;	 /* records of a full batch */
	unsigned run_count;	 /* that pass 1 made */
	unsigned resident_count; /* of these, not spilled */
	unsigned merge_count;	 /* of runs into runs */
	uint32_t piece_count;
	uint32_t block_bytes;
	uint64_t spilled_bytes; /* of all passes */
	/* Not spilled, since they were found in order: they were read from the
	 * input again. */
	uint64_t reread_bytes;
	/* What each directory got of these; the paths are borrowed. */
	unsigned directory_count;
	const char *const *directory_paths;
	uint64_t directory_bytes[SCRATCH_DIRECTORIES_MAX];
	uint64_t scratch_peak_bytes;
	/* What blocks were compressed with, from the first run or, by
	 * CODEC_AUTO, from a later one on; CODEC_NONE: nothing was. */
	struct codec codec;
	/* The bytes of all blocks before compression, and as stored, without
	 * the padding to whole pages. */
	uint64_t plain_bytes, stored_bytes;
	/* Why CODEC_AUTO has chosen that, if it has. */
	struct codec_verdict verdict;
	struct external_pass_result passes[EXTERNAL_PASSES];
	/* The rates that were given, or those of the run's own seconds, and
	 * what follows from them; ns is 0: neither is known. */
	struct external_rates rates;
	struct external_forecast forecast;
	uint64_t forecast_after_ns; /* of the first pass; 0: before it */
};

/* What a sort would do.  Valid if external_sort_explain() returned 0. */
struct external_explanation {
	/* The records of all ranks; and why blinksort would not sort them, or
	 * NULL. */
	uint64_t whole_records;
	const char *refused;
	/* What would end the sort before it reads anything: the files need more
	 * room than there is.  EXIT_DONE: nothing. */
	struct failure refusal;
	struct external_request request;
	struct external_plan plan;
	/* Batches that are in order are not spilled: the plan counts them as
	 * if they were. */
	bool may_reread;
	/* All rates are 0 if they were neither given nor could be measured:
	 * `unmeasured` has the reason then, and the forecast no times. */
	struct external_rates rates;
	struct failure unmeasured;
	struct external_forecast forecast;
	unsigned directory_count;
	/* [directory_count]: room on their file systems. */
	uint64_t room_bytes[SCRATCH_DIRECTORIES_MAX];
};

/*
 * Sort.  Returns 0 or -errno with *failure filled; then no output exists.  In
 * either case no scratch file is left.
 */
int external_sort_run(const struct external_config *config,
		      struct sorter_result *result,
		      struct external_result *external,
		      struct failure *failure);

/*
 * Plan the sort, and measure the disk for a second if its rates are not given.
 * What that writes is removed.  0, also where the disk cannot be measured;
 * or -errno with *failure filled.
 */
int external_sort_explain(const struct external_config *config,
			  struct external_explanation *explanation,
			  struct failure *failure);

/*
 * The same without any file, for machines that need not be there: this process,
 * or this rank as the config says, has so many records.  Times are those of the
 * config's rates.  Memory and threads that the config leaves open are those of
 * this machine.  0; or -errno with *failure filled: the memory does not
 * suffice.
 */
int external_sort_suppose(const struct external_config *config,
			  uint64_t record_count,
			  struct external_explanation *explanation,
			  struct failure *failure);

#endif /* EXTERNAL_SORT_H */
