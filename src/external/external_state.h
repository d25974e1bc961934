/*
 * external_state.h - the state of an external sort, for src/external alone
 */
#ifndef EXTERNAL_STATE_H
#define EXTERNAL_STATE_H

#include "external/write/destination.h"
#include "external/plan/external_plan.h"
#include "external/external_sort.h"
#include "external/read/file_source.h"
#include "external/ranks/given_runs.h"
#include "external/read/piece_source.h"
#include "external/read/pipeline.h"
#include "external/read/reading_claims.h"
#include "external/read/reading_lanes.h"
#include "external/write/run_sink.h"
#include "io/file_hold.h"
#include "sort/record_counts.h"

struct external {
	/* The caller's thread, which leads the ordering team, writes all of
	 * this before a pass or between two. */
	const struct external_config *config;
	struct sorter_result *result;
	struct external_result *details; /* beside the result */
	struct input input;
	bool reads_streams; /* `streams` are the input, not `input` */
	struct destination destination;
	struct scratch scratch;
	bool scratch_has_begun; /* see external_begin_scratch() */
	struct file_hold hold;	/* of the scratch files and outputs */
	struct topology topology;
	struct external_request request;
	struct external_plan plan;
	struct arena arena;
	struct record_counts counts; /* of records that are counted */
	uint8_t *read_memory;
	uint8_t *slot_memory;
	uint8_t *encoder_memory;
	uint8_t *decoder_memory;
	uint8_t *kept_memory;  /* for runs of other ranks */
	struct batch *batches; /* [batch_count + 2], the last two for pieces */
	struct thread_pool leaders, readers, orderers;
	struct sort_wiring reading, ordering;
	struct sort_trace reading_trace, ordering_trace;
	struct first_failure failure;
	struct pipeline pipeline;

	/* The leaders of the reading teams. */
	struct reading_lanes lanes;
	struct stream_source streams;
	struct reading_claims claims; /* of a shared input */
	struct batch_deal claims_deal;

	/* The leader of the reading team of a merge. */
	struct piece_source pieces;
	const uint8_t **sample; /* those of lane 0 */
	uint64_t *sample_prefixes;
	_Atomic uint32_t read_pieces; /* of the merge */

	/* The last leader. */
	uint32_t released_piece; /* room of those before it is given back */

	/* The leader of the ordering team. */
	struct orderer orderer;
	struct run_index index;
	struct run_sink runs;
	/* Batches go to another rank instead; NULL: they are spilled or stay.
	 */
	struct given_runs *given;
	struct merge_plan merge;
	_Atomic uint64_t spilled_records; /* in whole batches, for the meter */
	uint64_t next_record;		  /* of the output's whole */
	/* In the output, where the last pass merges no runs. */
	_Atomic uint64_t output_bytes;
	unsigned __int128 checksum;
	enum external_pass pass;
	uint64_t pass_begin_ns;
	uint64_t written_before; /* scratch bytes, when the pass began */

	/* Worker 0 of a team, one at a time. */
	struct external_meter {
		atomic_flag is_busy;
		uint64_t next_ns; /* tell progress no earlier */
		uint64_t last_ns, last_read_wait_ns, last_fill_wait_ns;
		/* Since then the rates are measured; 0: they are not. */
		uint64_t rates_begin_ns, rates_begin_bytes;
		bool has_touched; /* all of the memory */
		bool has_rates;	  /* measured after that */
	} meter;
};

/* A sort that has not begun: *own has its memory.  NULL: *failure is filled. */
struct external *external_new(const struct external_config *config,
			      struct arena *own, struct failure *failure);

/* All that comes before the first pass: input, plan, memory, files, threads.
 * 0 or -errno with *failure filled. */
int external_prepare(struct external *external, struct failure *failure);

/* After the last pass: complete both results. */
void external_fill_result(struct external *external);

/* Give back all that is still open, however far the sort has come. */
void external_close(struct external *external);

/* The timelines of both teams, and the file that gets them. */
int external_open_traces(struct external *external, struct failure *failure);
int external_write_trace(struct external *external, struct failure *failure);

/* A pass begins and ends: what it has taken is added to details->passes[]. */
void external_begin_pass(struct external *external, enum external_pass pass);
void external_end_pass(struct external *external);

/* How long the run will take, if its size and the disk's rates are known. */
void external_predict(struct external *external);

/* Worker 0 of a reading team, or of the ordering team in a last pass that
 * merges no runs, every few ms: learn the disk's rates, and tell
 * progress when a second has passed; of a lane's, with the lane. */
void external_serve(void *context);
void external_serve_lane(void *context);

/* Where compressed blocks are read to takes so many bytes. */
uint64_t external_read_bytes(const struct external_plan *plan);

/* When the memory is laid out, and before it is used: staging memory comes from
 * the NUMA node of the disk. */
void external_place_staging(const struct external *external);

/* CPUs that compress blocks. */
unsigned external_codec_cpus(const struct external *external);

/* Pass 1.  Functions that return a bool, here and below, return false if the
 * run has failed; the reason is noted then. */
bool external_make_runs(struct external *external);

/* Open the scratch files, if they are not open yet.  0 or -errno, which is
 * noted. */
int external_open_scratch(struct external *external);

/* The same, with room for what the plan expects; before the first stripe. */
int external_begin_scratch(struct external *external);
/* When the input has ended: 0; or -errno with *failure filled, if the output is
 * memory and there is not as much. */
int external_refuse_output(const struct external *external,
			   struct failure *failure);
/* Where scratch files are memory: let them take no more than is left of it. */
void external_bound_scratch(struct external *external);

/* All workers have handed their chunks over: wait until they are written. */
bool external_check_sink(struct external *external, struct sink *sink);

/* Bring the batch's entries into order, where they are.  False: the run has
 * failed. */
bool external_sort_in_place(struct external *external, struct batch *batch);

/* Spill a batch as one more run; sort it in place as one. */
bool external_spill(struct external *external, struct batch *batch);
bool external_keep(struct external *external, struct batch *batch);

/* Wait until all runs lie in their files.  They may be read then, and the
 * output may have their slots. */
bool external_finish_runs(struct external *external);

/* A batch's records to the output, from next_record on, or to the latest run.
 */
bool external_order(struct external *external, struct batch *batch,
		    bool is_output);

/* Pass 2, and what must be merged before. */
bool external_merge_all(struct external *external);

/* After pass 1: spill until so many batches are free, sort the others in place,
 * and merge runs until there are no more than runs_max. */
bool external_settle_runs(struct external *external, unsigned free_count,
			  unsigned runs_max);

/* Make the merge's plan, and open its pieces. */
bool external_open_pieces(struct external *external,
			  const struct merge_request *merge);

/* The leader of the reading team: bring the next piece into the batch.  Returns
 * what pipeline_fill_fn does. */
int external_fill_piece(struct external *external, struct batch *batch);

/* Of the pipeline, through whose free batches the pieces go. */
bool external_run_merge(struct external *external, pipeline_fill_fn *fill,
			pipeline_empty_fn *empty, pipeline_tidy_fn *tidy,
			void *context);

/* So many bytes more are in the output, or under way: for the meter. */
static inline void external_add_output(struct external *external,
				       uint64_t bytes)
{
	atomic_fetch_add_explicit(&external->output_bytes, bytes,
				  memory_order_relaxed);
}

static inline void external_fail(struct external *external,
				 const struct failure *failure)
{
	first_failure_note(&external->failure, failure);
}

#endif /* EXTERNAL_STATE_H */
