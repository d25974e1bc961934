/*
 * external_state.h - the state of an external sort, for src/external alone
 *
 * Each part of it is written by one file, which its comment names; other files
 * read it, and call functions to change it (tests/unit/test_state_writers.py).
 * A file calls only those that stand below it:
 *
 *      external_sort.c   external_rank.c      a sort's life, here or of a rank
 *      external_passes.c                      input into runs, into the output
 *      external_inputs.c                      what is in order, as runs
 *      external_head.c                        the first records of the order
 *      external_ordering.c                    a batch into order, to a sink
 *      external_meter.c                       what passes take
 *
 * Functions that return a bool return false if the run has failed; the reason
 * is noted then.  Those with a struct failure return 0 or -errno with it
 * filled.
 */
#ifndef EXTERNAL_STATE_H
#define EXTERNAL_STATE_H

#include "base/answer.h"
#include "external/external_request.h"
#include "external/external_sort.h"
#include "external/ranks/kept_runs.h"
#include "external/read/piece_source.h"
#include "external/read/pipeline.h"
#include "external/read/reading.h"
#include "external/write/destination.h"
#include "external/write/run_sink.h"
#include "io/file_hold.h"
#include "sort/record_counts.h"

/* How far a pass has come; waits are those of one worker.
 * Written by external_meter.c. */
struct external_pace {
	uint64_t read_bytes;
	uint64_t read_wait_ns, fill_wait_ns;
};

/* Written by external_meter.c. */
struct external_meter {
	/* The caller's thread, which leads the ordering team. */
	enum external_pass pass;
	uint64_t pass_begin_ns;
	uint64_t pass_ns[EXTERNAL_PASSES];
	/* Any thread that is measured. */
	struct stage_table tables[EXTERNAL_PASSES];
	/* What struct external_result will say. */
	struct external_rates rates;
	struct external_forecast forecast;
	uint64_t forecast_after_ns;
	/* What is in the output, where the last pass merges no runs. */
	_Atomic uint64_t output_bytes;

	/* Worker 0 of a team, or the main thread in a signal's handler, one at
	 * a time. */
	atomic_flag is_busy;
	_Atomic bool is_asked; /* the one that is at it answers, too */
	struct answer answer;
	uint64_t next_ns; /* tell progress no earlier */
	uint64_t last_ns;
	struct external_pace last;
	/* Read before anything was spilled, in so long. */
	uint64_t alone_bytes, alone_ns;
	/* When the measuring of rates began; 0: they are not measured. */
	uint64_t rates_begin_ns, rates_begin_bytes;
	bool has_touched; /* all of the memory */
	bool has_rates;	  /* measured after that */
};

/* The ordering team, and what it has brought to the output.
 * Written by external_ordering.c. */
struct external_ordering {
	struct thread_pool pool;
	struct sort_trace trace;
	struct sort_wiring wiring;
	struct orderer orderer;
	struct destination destination;
	struct record_counts counts;	  /* of records that are counted */
	uint64_t next_record;		  /* of the output's whole */
	_Atomic uint64_t spilled_records; /* in whole batches, for the meter */
	uint64_t dropped_count;
	unsigned __int128 checksum;
	/* The last key so far, in lane 0's memory for one.  NULL: there is none
	 * yet; or none is needed, since no duplicates are dropped from pieces
	 * of which several may have a key. */
	const uint8_t *last_key;
};

/* What of the input so far may be among the records that are wanted, if only
 * the first of the order are.  Written by external_head.c. */
struct external_head {
	/* Records with a greater first word are not wanted. */
	_Atomic uint64_t word_max;
	/* If the plan keeps them: a batch that is not in the pipeline.  Its
	 * records, those of earlier batches first, are a source for their
	 * order. */
	struct batch *batch;
	struct source source;
};

/* The runs, and the scratch files that they lie in.
 * Written by external_passes.c. */
struct external_runs {
	struct run_index index;
	struct run_sink sink;
	struct scratch scratch;
	struct file_hold hold; /* of the scratch files and outputs */
	bool has_begun;	       /* the scratch files have their room */
	unsigned made_count;   /* by pass 1 */
	/* Records of batches that were in order were not spilled: they lie in
	 * the input. */
	uint64_t reread_records;
};

/* The merge that is under way, and what all merges have come to.
 * Written by external_passes.c. */
struct external_merge {
	struct merge_plan plan;
	struct run_sink *run; /* that comes of it; NULL: the output does */
	/* The leader of the reading team. */
	struct piece_source pieces;
	_Atomic uint32_t read_pieces;
	uint64_t read_records; /* in these */
	/* The last leader: room of pieces before it is given back. */
	uint32_t released_piece;
	uint32_t piece_count;	 /* of the latest merge */
	unsigned merge_count;	 /* of runs into runs */
	unsigned resident_count; /* runs that were not spilled */
};

struct external {
	/* The caller's thread writes all this before a pass or between two.
	 * Written by external_sort.c. */
	struct arena own; /* has this struct */
	const struct external_config *config;
	struct topology topology;
	struct external_request request;
	struct external_plan plan;
	bool may_reread; /* external_may_reread() */
	struct arena arena;
	uint8_t *read_memory;
	uint8_t *slot_memory;
	uint8_t *encoder_memory;
	uint8_t *decoder_memory;
	uint8_t *kept_memory;  /* for runs of other ranks */
	struct batch *batches; /* [batch_count + 2], the last two for pieces */
	struct thread_pool leaders;
	struct pipeline pipeline;
	/* Where batches go to another rank, if config->ranks.gives_runs. */
	struct given_runs given;
	struct reading reading;
	struct first_failure failure; /* any thread notes its own */

	struct external_ordering ordering;
	struct external_head head;
	struct external_runs runs;
	struct external_merge merge;
	struct external_meter meter;
};

/* False: there was an error, and *failure is noted. */
static inline bool external_good(struct external *external, int error,
				 const struct failure *failure)
{
	if (error)
		first_failure_note(&external->failure, failure);
	return error == 0;
}

/* --- external_sort.c ------------------------------------------------------ */

/* A sort that has not begun.  Returns NULL with *failure filled if there is no
 * memory. */
struct external *external_new(const struct external_config *config,
			      struct failure *failure);

/* All that comes before the first pass: input, plan, memory, files, threads. */
int external_prepare(struct external *external, struct failure *failure);

/* What the sink of runs needs, with a slot and an encoder for each worker. */
struct run_sink_request external_run_sink(struct external *external);

/* Say after the last pass what it has come to: all but the times. */
void external_fill_result(const struct external *external,
			  struct sorter_result *result,
			  struct external_result *details);

/* Give back all that is still open, however far the sort has come. */
void external_close(struct external *external);

/* --- external_passes.c ---------------------------------------------------- */

/* Open the scratch files, if they are not open yet. */
int external_open_scratch(struct external *external, struct failure *failure);
/* The same, with room for what the plan expects; before the first stripe.
 * Files that are memory take no more than is left of it. */
int external_begin_scratch(struct external *external, struct failure *failure);

/* Wait until the thread that has the exchange has raised the word above the
 * value; the leader of a team, which is not NULL then, tells so. */
bool external_wait_for_wave(struct external *external,
			    struct stage_leader *leader, _Atomic uint32_t *word,
			    uint32_t value);

/* Pass 1. */
bool external_make_runs(struct external *external);

/* Count after that the runs that there are, and those that full batches will
 * become. */
void external_count_runs(struct external *external);

/* Pass 2, and what must be merged before. */
bool external_merge_all(struct external *external);

/* Spill after pass 1 until free_count batches are free, sort the others in
 * place, and merge runs until there are no more than the ranks have agreed on,
 * or, if that is 0, than one merge may have. */
bool external_settle_runs(struct external *external, unsigned free_count,
			  unsigned agreed);

/* Two batches for pieces, in areas cut from what so many free batches had. */
void external_add_pieces(struct external *external, uint8_t *const areas[2],
			 unsigned free_batches);

/* Make the merge's plan, and open its pieces; close both. */
bool external_open_pieces(struct external *external,
			  const struct merge_request *request);
void external_close_pieces(struct external_merge *merge);

/* The leader of the reading team: bring the next piece into the batch.  The
 * context is the sort. */
pipeline_fill_fn external_fill_piece;

/* Merge through the free batches of the pipeline. */
bool external_run_merge(struct external *external, pipeline_fill_fn *fill,
			pipeline_empty_fn *empty, pipeline_tidy_fn *tidy,
			void *context);

/* --- external_inputs.c ---------------------------------------------------- */

/* In place of pass 1, if the input files are in order: index them as runs. */
bool external_index_inputs(struct external *external);

/* True if batches need not be spilled whose records lie in the input in order:
 * their records are as runs have them, and are read again from the same disks.
 */
bool external_may_reread(const struct external *external);

/* --- external_head.c ------------------------------------------------------ */

/* Before pass 1: take a batch of the pipeline for the records that are wanted,
 * if the plan keeps these. */
void external_begin_head(struct external *external);

/* Another run has been made: which records are wanted no more. */
bool external_bound_by_runs(struct external *external);

/* The pipeline's function: of this batch, keep what may be wanted. */
bool external_empty_into_head(struct external *external, struct batch *batch);

/* After pass 1: the same for the batches that are still full; then the records
 * that are kept become the only full batch. */
bool external_end_head(struct external *external);

/* --- external_ordering.c -------------------------------------------------- */

/* The team's threads; memory for the orderer, whose sinks may have chunks of
 * any size. */
int external_start_ordering(struct external *external, struct failure *failure);
void external_lay_out_ordering(struct external *external);

/* The batches that are ordered from now on are the pieces of a merge. */
void external_begin_pieces(struct external *external);

/* A batch's records to the run, or, if that is NULL, to the output from
 * next_record on.  If duplicates are dropped where input files are merged,
 * equal keys may lie in several pieces: a record that has the key of the last
 * one of the pieces before is a duplicate, too. */
bool external_order(struct external *external, struct batch *batch,
		    struct run_sink *run);

/* All workers have handed their chunks over to the run's sink, or to that of
 * the output: wait until they are written. */
bool external_finish_sink(struct external *external, struct run_sink *run);

/* Bring the batch's entries into order, where they are. */
bool external_sort_in_place(struct external *external, struct batch *batch);

/* Last passes that merge nothing: of a batch that has the keys of all records;
 * of records that were counted. */
bool external_order_keys(struct external *external, struct batch *batch);
bool external_write_counted(struct external *external);

/* --- external_meter.c ----------------------------------------------------- */

/* A pass begins, maybe with one of several parts; the one before ends, as it
 * does when nothing is under way for a while. */
void external_begin_pass(struct external *external, enum external_pass pass);
void external_end_pass(struct external *external);

/* All has been written: what the passes have taken. */
void external_fill_passes(const struct external *external,
			  struct external_pass_result passes[EXTERNAL_PASSES]);

/* Any thread, at any time: about how many bytes the pass has read. */
uint64_t external_read_bytes(const struct external *external,
			     enum external_pass pass);

/* Any worker: so many bytes more are in the output, or under way. */
void external_serve_output(void *context, unsigned worker, uint64_t bytes);

/* How long the run will take, if its size and the disk's rates are known. */
void external_predict(struct external *external,
		      const struct external_rates *rates);

/* Worker 0 of a team calls it every few ms, with the sort as context: learn the
 * disk's rates, and tell progress when a second has passed. */
void external_serve(void *context);

#endif /* EXTERNAL_STATE_H */
