/*
 * record_fetch.h - large records: the keys are in order, now the records
 *
 * Each worker takes every worker_count-th chunk of the output, reads the
 * records of its chunks past the page cache, many at a time, and hands the
 * chunks over.  (WiscSort, Banakar et al. 2023, sorts so on memory that is read
 * at random as fast as in order.)
 */
#ifndef RECORD_FETCH_H
#define RECORD_FETCH_H

#include "base/first_failure.h"
#include "external/runs/batch.h"
#include "io/input/input.h"
#include "io/output/sink.h"
#include "system/thread_pool.h"

/* All pointers are borrowed. */
struct record_fetch_config {
	const struct input *input; /* open */
	const struct batch *batch; /* of all records' keys, sorted in place */
	struct sink *sink;
	uint32_t record_size;
	struct thread_pool *pool;
	/* Staging slots for reads: `depth` of each worker. */
	uint8_t *memory;
	uint32_t slot_bytes;
	unsigned depth;
	struct first_failure *failure;
	/* Any worker: so many bytes more are in the sink. */
	void (*serve)(void *context, unsigned worker, uint64_t bytes);
	void *serve_context;
};

/* Fetch all records; the sink's owner finishes it.  *read_bytes and *wait_ns
 * get what was read, and how long workers have waited for that, in addition.
 * False: the run has failed, or the sink. */
bool record_fetch_run(const struct record_fetch_config *config,
		      uint64_t *read_bytes, uint64_t *wait_ns);

#endif /* RECORD_FETCH_H */
