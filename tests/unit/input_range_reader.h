/*
 * input_range_reader.h - a reader of a range of an input's records, by the
 * operations of its source
 *
 * Included behind cmocka.h.
 */
#ifndef INPUT_RANGE_READER_H
#define INPUT_RANGE_READER_H

#include "io/input/input_reader.h"

struct range_reader {
	struct source source;
	struct source_reader reader;
};

static inline int range_open(struct range_reader *range,
			     const struct input *input, uint64_t first_record,
			     uint64_t record_count, bool resident,
			     struct failure *failure)
{
	range->source = input_source(input);
	range->reader.source = &range->source;
	return range->source.ops->open(&range->reader, first_record,
				       record_count, resident, failure);
}

static inline int range_next(struct range_reader *range, struct source_run *run,
			     struct failure *failure)
{
	return range->source.ops->next(&range->reader, run, failure);
}

static inline void range_close(struct range_reader *range)
{
	range->source.ops->close(&range->reader);
}

#endif /* INPUT_RANGE_READER_H */
