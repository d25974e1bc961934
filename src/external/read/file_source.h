/*
 * file_source.h - the input files as a source, batch after batch
 *
 * The records of all files, or of those of a lane, are dealt out to batches
 * (input_range.h); within a batch each worker reads its share
 * in units of whole records.  A unit is read into a staging slot and copied to
 * its place in the batch, so that files of any size and number can be read past
 * the page cache.  A worker's reads go on into the next batch while it waits
 * for the batch's memory.
 */
#ifndef FILE_SOURCE_H
#define FILE_SOURCE_H

#include "external/runs/batch.h"
#include "external/runs/input_range.h"
#include "io/input/input.h"
#include "io/input/read_ahead.h"
#include "io/input/source.h"
#include "record/widening.h"

/* One worker's, but for what is said. */
struct file_reader {
	_Alignas(CACHE_PAIR_BYTES) struct read_ahead reads;
	struct file_source *source;
	unsigned worker;
	/* The records that are to be read next, counted over all files, and
	 * the end of the share that they lie in. */
	uint64_t ahead_record, ahead_end;
	uint64_t ahead_batch;  /* the number of the batch after that share's */
	const uint8_t *bytes;  /* of the unit at hand */
	uint64_t unit_records; /* that are left of it */
};

struct file_source {
	/* The owner sets these before file_source_open(). */
	const struct input *input; /* open; read directly if it is so chosen */
	batch_deal_fn *deal;
	void *deal_context;
	unsigned worker_count;
	/* Which bytes of each record are read; 0 and record_size: all. */
	uint32_t span_offset, span_bytes;
	/* What is appended to them, and the number of the input's first
	 * record. */
	const struct widening *widening;
	uint64_t first_number;

	struct source source;	     /* of the current batch's records */
	uint64_t batch_number;	     /* of the first of them */
	uint64_t unit_records;	     /* 1 if only a span of each is read */
	uint64_t next_batch;	     /* after the current one */
	struct file_reader *readers; /* [worker_count], owned */
};

/* memory has depth slots for each worker.  0 or -errno with *failure filled. */
int file_source_open(struct file_source *files, uint8_t *memory, unsigned depth,
		     uint32_t slot_bytes, struct failure *failure);

/* The next batch's records go to this one, which is told its
 * first; it may have to be waited for until they are decided.  Returns how many
 * there are; 0: no record is left. */
uint64_t file_source_begin(struct file_source *files, struct batch *batch);

/* Safe on a zeroed one. */
void file_source_close(struct file_source *files);

#endif /* FILE_SOURCE_H */
