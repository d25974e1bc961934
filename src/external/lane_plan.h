/*
 * lane_plan.h - which files are read side by side, and in which batches
 *
 * Files on different devices are read at the same time, so that all disks work:
 * each device has a lane, and a lane reads its files one after the other.  A
 * range is as many records of one lane as follow each other in the input.  A
 * batch lies in one range, so that it is a part of the input: batches in the
 * order of their first records are the whole input in order, whatever order
 * they are filled in.
 *
 * Pure arithmetic.
 */
#ifndef LANE_PLAN_H
#define LANE_PLAN_H

#include <stdint.h>
#include <sys/types.h>

#include "io/input.h"

/* Disks that are read at once: each lane takes a batch of the memory, and a few
 * disks bring as much as the CPUs can sort.  Further devices share lanes. */
#define LANES_MAX 4

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

struct lane_batch {
	uint64_t first_record; /* counted over all files */
	uint64_t record_count;
};

/* How many devices have records: at least 1, at most LANES_MAX. */
unsigned lane_plan_devices(const struct lane_file *files, unsigned file_count);

/* Cut the files, at most INPUT_FILES_MAX, into this many lanes or, if they are
 * on fewer devices, one lane each; at least 1.  Devices get lanes in the order
 * in which they occur, in turn. */
void lane_plan_make(struct lane_plan *plan, const struct lane_file *files,
		    unsigned file_count, unsigned lane_count);

/* Batches of all lanes, or of one, when a batch has `capacity` records. */
uint64_t lane_plan_batches(const struct lane_plan *plan, uint64_t capacity);
uint64_t lane_plan_batches_of(const struct lane_plan *plan, unsigned lane,
			      uint64_t capacity);

/* Records of the `count` smallest of all batches. */
uint64_t lane_plan_least(const struct lane_plan *plan, uint64_t capacity,
			 uint64_t count);

/* The lane's batches, lane_plan_batches_of() of them, in order.  A single lane
 * has full ones and a rest.  Of several lanes, the batches of a range are
 * equally large: no small one takes the memory of a large one. */
void lane_plan_deal(const struct lane_plan *plan, unsigned lane,
		    uint64_t capacity, struct lane_batch *batches);

#endif /* LANE_PLAN_H */
