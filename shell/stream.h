/*
 * stream.h - what a job writes to a pipe: all is counted, the last is kept
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_RING_BYTES 65536 /* of each stream: the last */

struct stream {
	int fd;	      /* the pipe's end to read, non-blocking; -1: closed */
	int write_fd; /* the other end: while we have it too, the pipe has no
		       * end, of which poll() would tell before the process
		       * that ended can be reaped; or -1 */
	uint64_t total_bytes;
	uint8_t *ring; /* STREAM_RING_BYTES, borrowed; byte i of the stream is
			* at i % STREAM_RING_BYTES */
};

/* A pipe for a stream: both ends are close-on-exec, and only the end to read is
 * non-blocking.  0, or -errno and pipe is { -1, -1 }. */
int stream_make_pipe(int pipe[2]);

/* Begin anew with this pipe, which becomes the stream's; or with { -1, -1 }. */
void stream_open(struct stream *stream, const int pipe[2]);

/* Read once, at most STREAM_RING_BYTES.  True if there may be more; at the end
 * of the stream, or if it fails, it is closed. */
bool stream_read(struct stream *stream);

void stream_close(struct stream *stream);

/* The offset of the first byte that is still kept. */
uint64_t stream_begin(const struct stream *stream);

/* Copy bytes from offset on; returns how many, 0 if offset is not kept. */
size_t stream_copy(const struct stream *stream, uint64_t offset, uint8_t *to,
		   size_t room);

#endif /* STREAM_H */
