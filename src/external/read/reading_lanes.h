/*
 * reading_lanes.h - the lanes of pass 1: how many, their threads and sources
 *
 * A single lane is read by the team of readers that pass 2 has, too.  Several
 * lanes have a team each, in which the plan's readers are divided.
 *
 * All functions belong to the thread that leads the sort, between passes.
 */
#ifndef READING_LANES_H
#define READING_LANES_H

#include "external/runs/input_range.h"
#include "external/plan/external_plan.h"
#include "external/read/reading_lane.h"
#include "sort/sort_trace.h"
#include "system/topology.h"

/* All pointers are borrowed until reading_lanes_close(). */
struct reading_lanes_config {
	struct external *external;     /* the owner, for `serve` */
	void (*serve)(void *lane);     /* worker 0 of each lane, every few ms */
	const struct input *input;     /* open */
	struct stream_source *streams; /* NULL: the files are the input */
	const struct record_shape *shape;
	enum splitters_kind splitters; /* wanted by the user */
	const struct topology *topology;
	struct thread_pool *readers; /* of a single lane */
	/* Of an input that is shared with other ranks: one lane reads it.
	 * NULL: all of it is ours. */
	const struct batch_deal *deal;
	const char *trace_path; /* NULL: nothing is traced */
};

struct reading_lanes {
	struct reading_lanes_config config;
	const struct external_plan *plan;
	struct lane_plan lane_plan;
	unsigned count; /* 0 before reading_lanes_plan() */
	/* The owner sets it before reading_lanes_open(): a table for each of
	 * the plan's readers, if records are counted (record_counts.h). */
	uint64_t *counts;
	struct reading_lane lane[LANES_MAX];
};

/* *plan has been made for one lane, and *request for it.  Change both to as
 * many lanes as there are devices, or to the most with which a plan costs no
 * more merging and hardly more room.  The plan is borrowed. */
void reading_lanes_plan(struct reading_lanes *lanes,
			const struct reading_lanes_config *config,
			struct external_request *request,
			struct external_plan *plan);

/* Threads and timelines.  0 or -errno with *failure filled. */
int reading_lanes_start(struct reading_lanes *lanes, struct failure *failure);

/* Memory for samples of so many records, and for splitters. */
void reading_lanes_lay_out(struct reading_lanes *lanes, uint32_t sample_count,
			   struct arena *arena);

/*
 * Pass 1 begins: each lane gets splitters and a source.  `wiring` is that of
 * the readers of a single lane; `memory` has the staging slots of all readers;
 * key_shape is that of the index.  Both pointers are borrowed.  0 or -errno
 * with *failure filled.
 */
int reading_lanes_open(struct reading_lanes *lanes,
		       const struct sort_wiring *wiring,
		       const struct record_shape *key_shape, uint8_t *memory,
		       struct failure *failure);

/* Add what all lanes have read from files, and how long their workers have
 * waited for that. */
void reading_lanes_add_up(const struct reading_lanes *lanes,
			  uint64_t *read_bytes, uint64_t *wait_ns);

/* Pass 1 has ended, or has not begun: threads and sources go.  The pools still
 * tell their number of workers, for the batches that these have filled. */
void reading_lanes_end(struct reading_lanes *lanes);

/* The timelines of several lanes, as processes; trace_lanes has room for as
 * many as a pool has workers.  Returns how many processes there are, at most
 * LANES_MAX. */
unsigned reading_lanes_copy_traces(const struct reading_lanes *lanes,
				   uint64_t origin_ns,
				   struct trace_process *processes,
				   struct trace_lane *trace_lanes);

/* No thread, file or timeline of a lane is left.  Safe on a zeroed struct. */
void reading_lanes_close(struct reading_lanes *lanes);

#endif /* READING_LANES_H */
