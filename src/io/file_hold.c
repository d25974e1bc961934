/*
 * file_hold.c - holds files by an io_uring, so that a killed process ends
 * before their room is free
 */
#include "io/file_hold.h"

#include <liburing.h>
#include <stdlib.h>

void file_hold_open(struct file_hold *hold, const int *fds, unsigned count)
{
	struct io_uring *ring = calloc(1, sizeof(*ring));

	hold->ring = NULL;
	if (!ring)
		return;
	if (io_uring_queue_init(1, ring, 0) == 0) {
		if (io_uring_register_files(ring, fds, count) == 0) {
			hold->ring = ring;
			return;
		}
		io_uring_queue_exit(ring);
	}
	free(ring);
}

void file_hold_close(struct file_hold *hold)
{
	if (!hold->ring)
		return;
	io_uring_unregister_files(hold->ring);
	io_uring_queue_exit(hold->ring);
	free(hold->ring);
	hold->ring = NULL;
}
