/*
 * input_range.h - ranges of the input, and lists of them
 *
 * A list has no range without records.  Its owner sees to it that there is room
 * for one more before it appends.
 */
#ifndef INPUT_RANGE_H
#define INPUT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct input_range {
	uint64_t first_record; /* counted over all files */
	uint64_t record_count;
};

/* Append a range to a list of `count`: to its last range, if it begins where
 * that one ends; a range without records changes nothing.  Returns how many
 * there are then. */
unsigned input_range_append(struct input_range *ranges, unsigned count,
			    struct input_range range);

/* Remove so many records from the front of the list's first range, which has
 * them.  Returns how many ranges there are then. */
unsigned input_range_drop_front(struct input_range *ranges, unsigned count,
				uint64_t record_count);

/* Put ranges that do not overlap into the order of the input; those that touch
 * become one, and those without records, which may be among them, are dropped.
 * Returns how many are left. */
unsigned input_range_order(struct input_range *ranges, unsigned count);

/* Which records the batches of a lane get.  That is known before the pass, from
 * the files (reading.c); or only when a batch is to be filled, of an input that
 * several ranks share (reading_claims.h).
 *
 * The records of the batch with this number, from 0 on: true, with *batch
 * filled.  False: there is no such batch, or, unless the caller waits for that
 * to be decided, it is not known yet.  The leader of the lane waits, for one
 * batch after the other.  Its workers do not; they ask for the leader's last
 * batch and those behind it. */
typedef bool batch_deal_fn(void *context, uint64_t number, bool waits,
			   struct input_range *batch);

#endif /* INPUT_RANGE_H */
