/*
 * reading_lane.h - what fills batches in pass 1, one of several side by side
 *
 * A lane (lane_plan.h) has a source of its own, a team of workers, and
 * splitters: those that suited its last batch serve the next.
 */
#ifndef READING_LANE_H
#define READING_LANE_H

#include "external/batch.h"
#include "external/file_source.h"
#include "external/stream_source.h"

struct external;

struct reading_lane {
	/* The caller writes these before the pass. */
	struct external *external; /* the lane's owner, for `serve` */
	struct thread_pool *readers;
	struct thread_pool own_readers; /* of one of several lanes */
	struct sort_trace own_trace;
	struct sort_wiring wiring;
	const struct record_shape *key_shape; /* run_index_key_shape() */
	enum splitters_kind wanted;	      /* by the user */
	void (*serve)(void *lane);	      /* worker 0, every few ms */
	struct lane_batch *batches;	      /* owned */
	struct file_source files;
	struct stream_source *streams; /* NULL: files are the input */
	struct source *source;	       /* of either */

	/* The lane's leader. */
	const uint8_t **sample;
	uint64_t *sample_prefixes;
	enum splitters_kind static_kind;
	bool is_probed;	  /* the keys of a stream */
	bool is_uniform;  /* static splitters suit so far */
	bool has_sampled; /* splitters, which are those of the last batch: */
	struct splitters splitters;
	uint8_t *common_key;
	bool samples_each; /* no splitters suited the batch that followed */

	/* Worker 0 of the lane writes them: of itself, for the meter. */
	_Atomic uint64_t read_bytes, read_wait_ns, fill_wait_ns;
};

/* The keys have been probed: what the user wants overrides it. */
void reading_lane_override(struct reading_lane *lane);

/* As pipeline_fill_fn. */
int reading_lane_fill(struct reading_lane *lane, struct batch *batch);

/* Batches that are not begun yet, or PIPELINE_MORE. */
int reading_lane_to_come(const struct reading_lane *lane);

#endif /* READING_LANE_H */
