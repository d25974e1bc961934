/*
 * input_runs.h - what lies in an input file in order, as a run of a merge
 *
 * Such a run is a whole file that is said to be in order, or records that have
 * been found so, whose blocks lie in the file one behind the other.  The index
 * has the key of each block's first record; of a whole file it is read by
 * itself before the merge.  Whether a file is in order shows when its blocks
 * are read: a block must begin with the key that the index has of it, ascend,
 * and end with a key that is no greater than the next block's first.  So each
 * block can be checked by itself, by any thread.
 *
 * Functions that return int return 0 or -errno with *failure filled.
 */
#ifndef INPUT_RUNS_H
#define INPUT_RUNS_H

#include "base/stage.h"
#include "external/runs/run_index.h"
#include "io/input/input.h"

/*
 * Add a run of each file that has some of these records, or, if the latest one
 * ends where these begin, and they go on in its order, add them to it.
 * records: these, in memory; or NULL: the keys of the blocks are still to be
 * read, and the files have no runs yet.
 */
int input_runs_add(struct run_index *index, const struct input *input,
		   uint64_t first_record, uint64_t record_count,
		   const uint8_t *records, struct failure *failure);

/* True if, in each file, those of these records that lie in it are in order.
 */
bool input_runs_ascend(const struct record_shape *shape,
		       const struct input *input, uint64_t first_record,
		       uint64_t record_count, const uint8_t *records);

/* Memory for the reads of one worker: depth slots of slot_bytes, page aligned;
 * a slot has room for a key (run_index.h). */
struct input_runs_slots {
	uint8_t *memory;
	uint32_t slot_bytes;
	unsigned depth;
};

/* One of several workers at the same time: read the keys of its share of the
 * blocks.  The clock is the worker's. */
int input_runs_read_keys(struct run_index *index, unsigned worker,
			 unsigned worker_count,
			 const struct input_runs_slots *slots,
			 struct stage_clock *clock, struct failure *failure);

/* All keys have been read: refuse the first file whose keys are not in order.
 */
int input_runs_check_keys(const struct run_index *index,
			  const struct input *input, struct failure *failure);

/* The block's records have been read, of a run that lies in an input file:
 * refuse the file if they are not in order.  input: NULL if they have been
 * found so before.  Any thread. */
int input_runs_check_block(const struct run_index *index,
			   const struct input *input, const struct run *run,
			   uint32_t block, const uint8_t *records,
			   struct failure *failure);

#endif /* INPUT_RUNS_H */
