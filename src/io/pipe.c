/* pipe.c - reads and writes a pipe, whether or not its descriptor blocks */
#include "io/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"

/* The default of /proc/sys/fs/pipe-max-size. */
#define PIPE_BYTES MIB

bool pipe_is_word(const char *path)
{
	return strcmp(path, PIPE_WORD) == 0;
}

int pipe_check(int fd, const char *name, const char *use,
	       struct failure *failure)
{
	if (fcntl(fd, F_GETFL) < 0)
		return failure_set(failure, EXIT_FILE, name, errno, "%s", use);
	if (isatty(fd))
		return failure_set(failure, EXIT_FILE, name, 0,
				   "is a terminal: a pipe or a file is "
				   "expected");
	return 0;
}

void pipe_widen(int fd)
{
	int size_bytes = fcntl(fd, F_GETPIPE_SZ);

	if (size_bytes >= 0 && (size_t)size_bytes < PIPE_BYTES)
		(void)fcntl(fd, F_SETPIPE_SZ, (int)PIPE_BYTES);
}

/* Call it after a call has failed: true if the call is to be repeated, at once
 * after a signal, or now that the descriptor is ready. */
static bool try_again(int fd, short events)
{
	struct pollfd ready = { .fd = fd, .events = events };

	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		return false;
	return poll(&ready, 1, -1) >= 0 || errno == EINTR;
}

ssize_t pipe_read(int fd, uint8_t *bytes, size_t length_bytes)
{
	size_t done = 0;

	while (done < length_bytes) {
		ssize_t n = read(fd, bytes + done, length_bytes - done);

		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (!try_again(fd, POLLIN))
			return -errno;
	}
	return (ssize_t)done;
}

int pipe_write(int fd, const uint8_t *bytes, size_t length_bytes)
{
	size_t done = 0;

	while (done < length_bytes) {
		ssize_t n = write(fd, bytes + done, length_bytes - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || !try_again(fd, POLLOUT))
			return n == 0 ? -EIO : -errno;
	}
	return 0;
}
