/* stream.c - what a job writes to a pipe: all is counted, the end is kept */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "shell/stream.h"

/* The two ends have separate flags. */
int stream_make_pipe(int pipe[2])
{
	int error;

	if (pipe2(pipe, O_CLOEXEC) == 0) {
		if (fcntl(pipe[0], F_SETFL, O_NONBLOCK) == 0)
			return 0;
		error = errno;
		close(pipe[0]);
		close(pipe[1]);
	} else {
		error = errno;
	}
	pipe[0] = pipe[1] = -1;
	return -error;
}

void stream_open(struct stream *stream, const int pipe[2])
{
	stream->fd = pipe[0];
	stream->write_fd = pipe[1];
	stream->total_bytes = 0;
}

void stream_close(struct stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	if (stream->write_fd >= 0)
		close(stream->write_fd);
	stream->fd = stream->write_fd = -1;
}

bool stream_read(struct stream *stream)
{
	size_t at = stream->total_bytes % STREAM_RING_BYTES;
	struct iovec parts[2] = {
		{ stream->ring + at, STREAM_RING_BYTES - at },
		{ stream->ring, at },
	};
	ssize_t bytes;

	if (stream->fd < 0)
		return false;
	bytes = readv(stream->fd, parts, at > 0 ? 2 : 1);
	if (bytes > 0) {
		stream->total_bytes += (uint64_t)bytes;
		return true;
	}
	if (bytes < 0 && errno == EINTR)
		return true;
	if (bytes == 0 || errno != EAGAIN)
		stream_close(stream);
	return false;
}

uint64_t stream_begin(const struct stream *stream)
{
	return stream->total_bytes -
	       MIN(stream->total_bytes, (uint64_t)STREAM_RING_BYTES);
}

size_t stream_copy(const struct stream *stream, uint64_t offset, uint8_t *to,
		   size_t room)
{
	size_t at = offset % STREAM_RING_BYTES;
	size_t bytes, first;

	if (offset < stream_begin(stream) || offset >= stream->total_bytes)
		return 0;
	bytes = (size_t)MIN(stream->total_bytes - offset, (uint64_t)room);
	first = MIN(bytes, STREAM_RING_BYTES - at);
	memcpy(to, stream->ring + at, first);
	memcpy(to + first, stream->ring, bytes - first);
	return bytes;
}
