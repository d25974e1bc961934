/*
 * part.h - the files that blinkval reads: parts of an output, and inputs
 *
 * A regular file or a block device is read in any order, by any thread; past
 * the page cache if it is too large for it (direct.h).  Anything else is a
 * stream: a pipe, a terminal, or standard input by the name "-".  Its pieces
 * are read in order, by one thread at a time.
 */
#ifndef PART_H
#define PART_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/failure.h"
#include "io/input/input.h"
#include "record/validator.h"

struct part {
	const char *path; /* as messages name it; borrowed */
	int fd;
	int direct_fd;	       /* past the page cache; -1: none */
	bool is_input;	       /* the order of its records means nothing */
	bool is_stream;	       /* its size is not known */
	bool is_device;	       /* a block device */
	uint64_t header_bytes; /* before the records */
	uint8_t *header;       /* a copy of them; NULL: none is kept */
	uint64_t record_count; /* whole ones; of a stream, those read so far */
	size_t fragment_bytes; /* what is left behind the last one */
	uint8_t *first, *last; /* copies of these records; NULL for an input */
	/* Of a stream: held by the thread that reads, and writes what is known
	 * of it. */
	pthread_mutex_t reading;
	bool is_at_end;
	/* The caller's. */
	uint64_t first_segment; /* its number, counted over all parts */
	struct tally tally;	/* of its records that have been checked */
};

/* Open it; the end of the process closes it and frees what it holds.  A header
 * that is kept of a stream is there when its records are.  Standard input can't
 * be cut to device_bytes.  0 or -errno with *failure filled. */
int part_open(struct part *part, const char *path, bool is_input,
	      const struct input_layout *layout, struct failure *failure);

/* What part_read() needs beside the bytes that it reads: pages at both ends. */
#define PART_WINDOW_EXTRA_BYTES ((size_t)2 * PAGE_BYTES)

/* Any thread: read these bytes of the records of what is no stream into the
 * window, which begins at a page and has PART_WINDOW_EXTRA_BYTES more.  Returns
 * where in it they lie; NULL with *failure filled. */
uint8_t *part_read(const struct part *part, uint64_t offset_bytes,
		   size_t length_bytes, uint8_t *window,
		   struct failure *failure);

/*
 * Any thread, with part->reading held: read the next piece of a stream.
 * Returns the count of whole records; 0 at the end; or -errno with *failure
 * filled.  *first is the number of the piece's first record.  before gets a
 * copy of the record before it unless that is number 0; part->last, of its last
 * record.
 */
int64_t part_read_stream(struct part *part, uint8_t *piece, size_t piece_bytes,
			 uint32_t record_size, uint64_t *first, uint8_t *before,
			 struct failure *failure);

#endif /* PART_H */
