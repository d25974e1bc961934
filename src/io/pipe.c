#include "io/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/base.h"

/* The default of /proc/sys/fs/pipe-max-size. */
#define PIPE_BYTES MIB

void pipe_widen(int fd)
{
	int size_bytes = fcntl(fd, F_GETPIPE_SZ);

	if (size_bytes >= 0 && (size_t)size_bytes < PIPE_BYTES)
		(void)fcntl(fd, F_SETPIPE_SZ, (int)PIPE_BYTES);
}

/* After a call has failed: true if it is to be repeated, at once after a
 * signal, or now that the descriptor is ready. */
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
