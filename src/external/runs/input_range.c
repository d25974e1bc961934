/*
 * input_range.c - appends to, shortens and orders lists of ranges
 */
#include "external/runs/input_range.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

unsigned input_range_append(struct input_range *ranges, unsigned count,
			    struct input_range range)
{
	struct input_range *end = &ranges[count];

	if (range.record_count == 0)
		return count;
	if (count > 0 &&
	    end[-1].first_record + end[-1].record_count == range.first_record) {
		end[-1].record_count += range.record_count;
		return count;
	}
	*end = range;
	return count + 1;
}

unsigned input_range_drop_front(struct input_range *ranges, unsigned count,
				uint64_t record_count)
{
	struct input_range *first = &ranges[0];

	assert(count > 0 && record_count <= first->record_count);
	first->first_record += record_count;
	first->record_count -= record_count;
	if (first->record_count > 0)
		return count;
	memmove(first, first + 1, (count - 1) * sizeof(*first));
	return count - 1;
}

static int compare(const void *a, const void *b)
{
	const struct input_range *first = a, *second = b;

	return (first->first_record > second->first_record) -
	       (first->first_record < second->first_record);
}

unsigned input_range_order(struct input_range *ranges, unsigned count)
{
	unsigned ordered = 0;

	qsort(ranges, count, sizeof(*ranges), compare);
	for (unsigned i = 0; i < count; i++)
		ordered = input_range_append(ranges, ordered, ranges[i]);
	return ordered;
}
