/*
 * direct.c - opens descriptors and rings for reads and writes past the page
 * cache
 */
#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>

int direct_reopen(int fd, int flags)
{
	char self[32];
	int again;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	again = open(self, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/* A flag tells io_uring_peek_cqe() that something has come.  Older kernels
 * refuse that. */
int direct_open_ring(struct io_uring *ring, unsigned depth)
{
	int error = io_uring_queue_init(depth, ring,
					IORING_SETUP_COOP_TASKRUN |
						IORING_SETUP_TASKRUN_FLAG);

	return error ? io_uring_queue_init(depth, ring, 0) : 0;
}
