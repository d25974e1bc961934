/*
 * reading_lane.h - one of several lanes that are read side by side in pass 1
 *
 * A lane (lane_plan.h) fills batches with the records of its files, or of the
 * streams.  It has a source and a team of workers of its own, and splitters:
 * those that suited its last batch serve the next.
 */
#ifndef READING_LANE_H
#define READING_LANE_H

#include "external/runs/batch.h"
#include "external/read/file_source.h"
#include "external/read/stream_source.h"

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
	/* Known from the files, [batch_count], owned; NULL: they are dealt
	 * another way, or streams are the input. */
	struct input_range *batches;
	uint64_t batch_count;
	struct file_source files;
	struct stream_source *streams; /* borrowed; NULL: files are the input */
	struct source *source;	       /* of either */
	uint64_t *counts; /* the records are counted here; NULL: they are not */

	/* The lane's leader. */
	const uint8_t **sample;
	uint64_t *sample_prefixes;
	enum splitters_kind static_kind;
	bool is_probed;	  /* the keys of a stream: static_kind is known */
	bool is_uniform;  /* static splitters have suited so far */
	bool has_sampled; /* the two below are those of a batch before */
	struct splitters splitters;
	uint8_t *common_key; /* theirs: see batch_copy_splitters() */
	bool samples_next;   /* they did not suit: the next batch makes its own
			      * before it has entries */

	/* What worker 0 of the lane has read and waited itself: it writes
	 * them, and the meter of all lanes loads them. */
	_Atomic uint64_t read_bytes, read_wait_ns, fill_wait_ns;
};

/* Between batches: the keys have been probed, with this answer (key_probe()).
 * What the user wants overrides it. */
void reading_lane_set_keys(struct reading_lane *lane, enum splitters_kind kind,
			   bool is_uniform);

/* The lane's leader: fill the batch.  Returns what pipeline_fill_fn does. */
int reading_lane_fill(struct reading_lane *lane, struct batch *batch);

/* Between batches: how many are not begun yet, or PIPELINE_MORE. */
int reading_lane_to_come(const struct reading_lane *lane);

#endif /* READING_LANE_H */
