/*
 * stream_sink.h - the sink that is a pipe, or anything else that is written in
 * order
 *
 * The workers fill staging slots with chunks in any order, and a worker that
 * hands over the chunk that comes next writes it, and goes on writing while
 * chunks are ready.  Meanwhile the others fill their slots.
 *
 * A chunk may come at most slot_count - 1 chunks ahead of what is written:
 * sink_place() waits until that is so.  Thus a worker that takes a slot finds
 * one that is free, and the chunk that comes next always gets one.
 *
 * The stream has one part.  How long it gets need not be known until the
 * finish: what has been handed over is what is written.  It is a reader's
 * decision to see only the beginning: when the reader has gone, the failure has
 * no reason to print.
 */
#ifndef STREAM_SINK_H
#define STREAM_SINK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/first_failure.h"
#include "io/output/sink.h"

#define STREAM_SINK_SLOTS_MAX 512

struct stream_sink {
	struct sink sink; /* the first member */
	const char *path; /* as the user gave it, borrowed */
	const char *name; /* for messages, borrowed */
	int fd;		  /* -1: not open */
	uint64_t part_bytes;
	unsigned slot_count;
	/* The workers write what follows, with the lock held. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sink_slot slots[STREAM_SINK_SLOTS_MAX];
	uint64_t written_bytes;
	bool is_writing; /* a worker is in write(2) */
	struct first_failure failure;
};

/* True if the path leads to a stream: "-", which is standard output, a FIFO, or
 * /dev/null. */
bool stream_sink_suits(const char *path);

/* Slots over memory of slot_count * chunk_bytes; slot_count is at least 2. */
void stream_sink_init(struct stream_sink *sink, const char *path,
		      uint8_t *memory, unsigned slot_count, size_t chunk_bytes);

/* Open the stream before the first chunk, and write the header; at most
 * size_bytes will come behind it.  The open of a FIFO waits for its reader.  0
 * or -errno with *failure filled. */
int stream_sink_open(struct stream_sink *sink, uint64_t size_bytes,
		     const uint8_t *header, uint64_t header_bytes,
		     struct failure *failure);

/* Finish the sink and close the stream, which may tell of one more failure; all
 * workers have ended.  0 or -errno with *failure filled. */
int stream_sink_commit(struct stream_sink *sink, struct failure *failure);

/* Safe on a zeroed one. */
void stream_sink_close(struct stream_sink *sink);

#endif /* STREAM_SINK_H */
