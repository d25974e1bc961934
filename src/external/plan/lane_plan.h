/*
 * lane_plan.h - which files are read side by side, and in which batches
 *
 * Files on different devices are read at the same time, so that all disks work.
 * Each device has a lane, and a lane reads its files one after the other.  A
 * range is as much of the input as lies in one lane without a gap.  A batch
 * lies in one range, so it is a range, too, and the order of all batches by
 * their first records is that of the input, in whatever order the lanes fill
 * them.
 *
 * Pure arithmetic.
 */
#ifndef LANE_PLAN_H
#define LANE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "external/runs/input_range.h"
#include "io/input/input.h"

/* Disks that are read at once: each lane holds a batch of the memory while it
 * fills it, and a few disks bring as much as the CPUs can sort.  Further
 * devices share lanes. */
#define LANES_MAX 4
#define LANES_ALL LANES_MAX

struct lane_range {
	unsigned lane;
	uint64_t first_record; /* counted over all files */
	uint64_t record_count; /* above 0 */
};

struct lane_plan {
	unsigned lane_count;
	unsigned range_count;
	struct lane_range ranges[INPUT_FILES_MAX]; /* in input order */
};

/* What lane_plan.c looks at of each input file. */
struct lane_file {
	dev_t device;
	uint64_t record_count;
};

/* Deal the files, at most INPUT_FILES_MAX, out to lane_count lanes; to fewer if
 * they are on fewer devices, to one if they have no records.  Devices get lanes
 * in turn, in the order in which they occur. */
void lane_plan_make(struct lane_plan *plan, const struct lane_file *files,
		    unsigned file_count, unsigned lane_count);

/* Batches of the lane, or of LANES_ALL, when a batch has `capacity` records. */
uint64_t lane_plan_batches(const struct lane_plan *plan, unsigned lane,
			   uint64_t capacity);

/* How many records the `count` smallest of all batches have together, of
 * several lanes. */
uint64_t lane_plan_least(const struct lane_plan *plan, uint64_t capacity,
			 uint64_t count);

/* The lane's batch with this number, from 0 on; false: it has no more.  A
 * single lane has full ones and a rest.  Of several lanes, the batches of a
 * range differ by a record at most: a small rest at the end of each range would
 * take the memory of a full batch. */
bool lane_plan_batch(const struct lane_plan *plan, unsigned lane,
		     uint64_t capacity, uint64_t number,
		     struct input_range *batch);

#endif /* LANE_PLAN_H */
