/*
 * input_range.h - parts of the input, and lists of them
 *
 * A list has no range without records.  Its owner sees to it that there is room
 * for one more before it appends.
 */
#ifndef INPUT_RANGE_H
#define INPUT_RANGE_H

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

#endif /* INPUT_RANGE_H */
