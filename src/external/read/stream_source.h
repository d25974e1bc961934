/*
 * stream_source.h - what comes in order, as a source, batch after batch
 *
 * Pipes, sockets and devices, and files among them, are read one after the
 * other, each to its end.  One worker at a time reads, a unit of whole records,
 * straight into the batch; meanwhile the others put into buckets what they have
 * read before.  So a worker's units ascend, but those of all workers are in no
 * order: where a bucket needs entries in record order, a pass over resident
 * records makes them.
 *
 * How many records a batch gets is known when the workers have come to its end.
 * Only the memory of what has come is touched.
 */
#ifndef STREAM_SOURCE_H
#define STREAM_SOURCE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/first_failure.h"
#include "base/stage.h"
#include "external/runs/batch.h"
#include "io/input/input.h"
#include "io/input/source.h"
#include "record/widening.h"

struct stream_source {
	struct source source; /* of the current batch's records */
	const char *const *paths;
	unsigned path_count;
	struct input_layout layout; /* of each */
	uint8_t *header; /* owned: of the first; NULL: it is not kept */
	const struct widening *widening; /* what is appended to records */
	uint64_t unit_records;
	/* The run has failed elsewhere: reading ends. */
	const struct first_failure *failure;
	/* Written between batches, or with the lock held. */
	pthread_mutex_t lock;
	unsigned next_path;
	int fd;			/* the one that is read; -1: none is open */
	const char *name;	/* of it, for messages */
	uint64_t bytes;		/* of its records, so far */
	uint64_t batch_records; /* that the current batch has */
	/* The first of these, which no worker has taken. */
	uint64_t peeked_records;
	uint64_t record_count;	  /* of all batches */
	bool has_ended;		  /* nothing more comes, or reading failed */
	struct stage_queue reads; /* with waiting for what they bring */
	/* What all streams have brought so far; any thread may load it. */
	_Atomic uint64_t read_bytes;
};

/* True if one of the inputs is a stream: "-", a FIFO, a pipe, a socket or a
 * character device. */
bool stream_source_suits(const char *const *paths, unsigned path_count);

/*
 * Check that all inputs are there.  Each is opened when those before it have
 * ended, as cat(1) does: a FIFO may get its writer only then.  "-" is standard
 * input, from where it stands.  The layout's header is skipped in each.
 * Pointers are borrowed, but for the layout.  0 or -errno with *failure filled.
 */
int stream_source_open(struct stream_source *streams, const char *const *paths,
		       unsigned path_count, const struct input_layout *layout,
		       const struct widening *widening,
		       const struct first_failure *run_failure,
		       struct failure *failure);

/* The reading team's leader, before the workers come: what is read from now on
 * goes to this batch, which is told its first record.  The source's number of
 * records is what the batch has memory for.  The first unit is read at once, to
 * look at it: returns how many records it has; 0: none is left; -errno with
 * *failure filled. */
int64_t stream_source_begin(struct stream_source *streams, struct batch *batch,
			    struct failure *failure);

/* All workers have come to the batch's end: its records are the source's from
 * now on. */
void stream_source_end(struct stream_source *streams);

/* Safe on a zeroed one. */
void stream_source_close(struct stream_source *streams);

#endif /* STREAM_SOURCE_H */
