/*
 * stream.h - what a job writes to a pipe: all is counted, the end is kept
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This many of the last bytes of a stream are kept. */
#define STREAM_RING_BYTES 65536

struct stream {
	int fd;	      /* the pipe's end to read, non-blocking; -1: closed */
	int write_fd; /* the other end, or -1.  While we have it, the stream
		       * does not end: poll() would report the end before the
		       * process can be reaped */
	uint64_t total_bytes;
	uint8_t *ring; /* STREAM_RING_BYTES, borrowed; byte i of the stream is
			* at i % STREAM_RING_BYTES */
};

/* Makes a pipe for a stream: both ends are close-on-exec, and only the end to
 * read is non-blocking.  0, or -errno and pipe is { -1, -1 }. */
int stream_make_pipe(int pipe[2]);

/* Empties the stream and gives it this pipe, which it will close; { -1, -1 } is
 * no pipe. */
void stream_open(struct stream *stream, const int pipe[2]);

/* Reads once, at most STREAM_RING_BYTES.  Returns true if there may be more
 * bytes. Closes the stream at its end, or if reading fails. */
bool stream_read(struct stream *stream);

void stream_close(struct stream *stream);

/* Returns the offset of the first byte that is still kept. */
uint64_t stream_begin(const struct stream *stream);

/* Copies bytes from offset on.  Returns how many; 0 if offset is not kept. */
size_t stream_copy(const struct stream *stream, uint64_t offset, uint8_t *to,
		   size_t room);

#endif /* STREAM_H */
