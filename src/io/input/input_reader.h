/*
 * input_reader.h - the input as a source: shares, readers, runs
 *
 * A reader brings in some of the records, run by run and in order.  It belongs
 * to one thread.  Several readers may read one input, which does not change
 * meanwhile.
 */
#ifndef INPUT_READER_H
#define INPUT_READER_H

#include "io/input/input.h"
#include "io/input/source.h"

/* How a reader gets its records. */
enum input_way {
	INPUT_WALK,  /* they are in memory */
	INPUT_TOUCH, /* mapped: the kernel brings them when they are touched */
	INPUT_READ,  /* by plain reads */
	INPUT_QUEUE, /* by direct reads, many at a time (read_ahead.h) */
};

struct input_reader {
	const struct input *input;
	uint64_t next_record;
	uint64_t end_record;
	unsigned file; /* that next_record lies in */
	enum input_way way;
	/* INPUT_QUEUE: the share is in memory up to there, counted from the
	 * input's base. */
	uint64_t landed_bytes;
	struct input_queue *queue; /* owned, or NULL */
};

/* Returns our state in a source's reader. */
static inline struct input_reader *input_reader_of(struct source_reader *reader)
{
	return (struct input_reader *)reader->state;
}

/* The input as a source, whose pieces may be read in any order if it is mapped.
 * Shares begin at a multiple of align_records within a file if there is more
 * than one worker, so that no page belongs to two workers.  Call it after
 * input_map(); the input must stay where it is. */
struct source input_source(const struct input *input);

#endif /* INPUT_READER_H */
