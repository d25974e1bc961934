/*
 * chunk_range.h - the sink's chunks that hold a range of the sorted whole
 *
 * A sink divides each of its parts into chunks (sink.h).  The range's first and
 * last records may lie anywhere: then it fills the first and the last chunk
 * that it touches in part, as it does with the chunks of a part where it begins
 * or ends.  The functions are pure arithmetic.
 */
#ifndef CHUNK_RANGE_H
#define CHUNK_RANGE_H

#include "io/output/sink.h"

struct chunk_range {
	const struct sink *sink;
	uint32_t record_size; /* each part is a multiple of it */
	/* Records of the whole that are in the range. */
	uint64_t first_record, end_record;
	uint64_t chunk_count; /* chunks that it touches */
};

/* Of a chunk, what is in the range. */
struct chunk {
	unsigned part;	     /* of the sink */
	uint64_t begin_byte; /* in the part */
	uint64_t end_byte;
	/* Records that lie there, if only with some bytes; they are numbered in
	 * the range. */
	uint64_t first_record;
	uint64_t end_record;
};

/* record_count records from first_record on, or as many as the sink holds from
 * there on, if these are fewer.  The sink's geometry must be set. */
struct chunk_range chunk_range_of(const struct sink *sink, uint32_t record_size,
				  uint64_t first_record, uint64_t record_count);

/* number: below chunk_count. */
struct chunk chunk_range_at(const struct chunk_range *range, uint64_t number);

#endif /* CHUNK_RANGE_H */
