/*
 * reading.h - what the first pass reads, and the threads that read it
 *
 * The input is files or streams, or files that several ranks share, of which
 * this one claims ranges (reading_claims.h).  Where files lie on several
 * devices there is a lane for each (lane_plan.h), with a source, a team of
 * workers and splitters of its own: those that suited its last batch serve the
 * next.  A single lane is read by the team of readers that the second pass has,
 * too; the plan's readers are divided among several lanes.
 *
 * All functions belong to the thread that leads the sort, between passes,
 * unless they say otherwise.  Those that return int return 0 or -errno with
 * *failure filled.
 */
#ifndef READING_H
#define READING_H

#include "external/plan/external_plan.h"
#include "external/read/file_source.h"
#include "external/read/reading_claims.h"
#include "external/read/stream_source.h"
#include "sort/sort_config.h"
#include "sort/sort_trace.h"
#include "system/topology.h"

/* Where the records come from; it is known when the input is opened. */
enum reading_kind {
	READING_FILES,
	READING_SHARED, /* files, of which `claims` deal out the batches */
	READING_STREAMS,
};

struct reading;

struct reading_lane {
	/* Set before the pass. */
	const struct reading *reading;	/* all lanes */
	struct thread_pool own_readers; /* of one of several lanes */
	struct sort_trace own_trace;
	struct sort_wiring wiring; /* with these, or those of `reading` */
	struct file_source files;
	struct source *source; /* `files`, or the streams */

	/* The lane's leader. */
	const uint8_t **sample;
	uint64_t *sample_prefixes;
	enum splitters_kind static_kind;
	bool is_uniform;  /* static splitters have suited so far */
	bool has_sampled; /* the two below are those of a batch before */
	struct splitters splitters;
	uint8_t *common_key; /* theirs: see batch_copy_splitters() */
};

struct reading {
	const struct sorter_config *config;
	/* The number that the input's first record has in that of all ranks;
	 * the owner sets it before reading_open(). */
	uint64_t first_number;
	struct input input;
	enum reading_kind kind;
	struct stream_source streams; /* in place of `input` */
	struct reading_claims claims;

	struct thread_pool readers; /* of a single lane, and of merges */
	struct sort_trace trace;    /* theirs */
	struct sort_wiring wiring;
	const struct topology *topology;
	const struct external_plan *plan;
	struct lane_plan lane_plan;
	unsigned lane_count; /* 0 before reading_plan() */
	/* A table for each of the plan's readers, if records are counted
	 * (record_counts.h), or NULL; the owner sets it before reading_begin().
	 */
	uint64_t *counts;
	const struct record_shape *key_shape; /* run_index_key_shape() */
	/* As struct bucketing_config has it; the owner sets it before
	 * reading_begin(). */
	const _Atomic uint64_t *word_max;
	/* Worker 0 of each lane, every few ms; and where the leader of each
	 * lane tells how long it has waited.  The owner sets these before
	 * reading_begin(). */
	void (*serve)(void *context);
	void *serve_context;
	struct stage_leader *leaders;
	struct reading_lane lane[LANES_MAX];
};

/* is_shared: other ranks read the same files.  The config and run_failure are
 * borrowed until reading_close(). */
int reading_open(struct reading *reading, const struct sorter_config *config,
		 bool is_shared, struct first_failure *run_failure,
		 struct failure *failure);

/* The first input's header, of which that of a stream is known when the pass
 * has ended; NULL: it is not kept. */
const uint8_t *reading_header(const struct reading *reading);

/* *plan has been made for one lane, and *request for it.  Change both to as
 * many lanes as there are devices, or to the most with which a plan costs no
 * more merging and hardly more room.  A shared input has one.  The plan and the
 * topology are borrowed. */
void reading_plan(struct reading *reading, const struct topology *topology,
		  struct external_request *request, struct external_plan *plan);

/* Threads and timelines. */
int reading_start(struct reading *reading, unsigned worker_count,
		  struct failure *failure);

/* Memory for samples of so many records, and for splitters. */
void reading_lay_out(struct reading *reading, uint32_t sample_count,
		     struct arena *arena);

/* The pass begins: each lane gets splitters and a source.  memory has the
 * staging slots of all readers; key_shape is that of the index, borrowed. */
int reading_begin(struct reading *reading, const struct record_shape *key_shape,
		  uint8_t *memory, struct failure *failure);

/* The lane's leader: fill the batch.  Returns what pipeline_fill_fn does. */
int reading_fill(struct reading *reading, unsigned lane, struct batch *batch);

/* How many batches of the lane are not begun yet, or PIPELINE_MORE. */
int reading_to_come(struct reading *reading, unsigned lane);

/* The pass has ended, or has not begun: the lanes' threads and sources go.  The
 * pools still tell their number of workers, for the batches that these have
 * filled. */
void reading_end(struct reading *reading);

/* No thread, file or timeline is left.  Safe on a zeroed one. */
void reading_close(struct reading *reading);

#endif /* READING_H */
