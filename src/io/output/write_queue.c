/* write_queue.c - keeps writes under way by io_uring */
#include "io/output/write_queue.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

/*
 * Room for the results of as many writes as any sink has slots.  A result
 * without room waits in memory that the kernel takes for it, and is lost if a
 * memory control group is at its limit.
 */
#define RESULTS 512

void write_queue_open(struct write_queue *queue, unsigned depth)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = RESULTS,
	};

	*queue =
		(struct write_queue){ .ring = calloc(1, sizeof(*queue->ring)) };
	if (queue->ring &&
	    io_uring_queue_init_params(depth, queue->ring, &params) == 0)
		return;
	free(queue->ring);
	queue->ring = NULL;
}

bool write_queue_submit(struct write_queue *queue, int fd, const uint8_t *bytes,
			uint32_t length_bytes, uint64_t offset_bytes, void *tag)
{
	struct io_uring_sqe *sqe;
	int taken;

	/* The ring always has a place: each write is submitted at once. */
	sqe = queue->ring && !queue->refuses && queue->in_flight < RESULTS
		      ? io_uring_get_sqe(queue->ring)
		      : NULL;
	if (!sqe)
		return false;
	io_uring_prep_write(sqe, fd, bytes, length_bytes, offset_bytes);
	io_uring_sqe_set_data(sqe, tag);
	do
		taken = io_uring_submit(queue->ring);
	while (taken == -EINTR);
	if (taken == 1)
		queue->in_flight++;
	else
		queue->refuses = true;
	return taken == 1;
}

void *write_queue_reap(struct write_queue *queue, int *result)
{
	struct io_uring_cqe *cqe;
	void *tag;
	int error;

	do
		error = io_uring_wait_cqe(queue->ring, &cqe);
	while (error == -EINTR || error == -EAGAIN);
	if (error) {
		queue->refuses = true;
		queue->in_flight = 0;
		*result = error;
		return NULL;
	}
	tag = io_uring_cqe_get_data(cqe);
	*result = cqe->res;
	io_uring_cqe_seen(queue->ring, cqe);
	queue->in_flight--;
	return tag;
}

bool write_queue_has_ended(const struct write_queue *queue)
{
	return queue->ring && io_uring_cq_ready(queue->ring) > 0;
}

void write_queue_close(struct write_queue *queue)
{
	int result;

	while (queue->in_flight > 0)
		write_queue_reap(queue, &result);
	if (queue->ring)
		io_uring_queue_exit(queue->ring);
	free(queue->ring);
	memset(queue, 0, sizeof(*queue));
}
