/*
 * write_queue.h - writes that io_uring makes while the caller goes on
 *
 * For a sink that writes past the page cache: several writes are under way at a
 * time, each with a tag of the caller's.  Where the kernel refuses io_uring, or
 * takes no more writes, the queue refuses them, and the caller writes by
 * itself.  Only where the kernel does not tell any more which writes have
 * ended, the caller has to fail.
 *
 * Several threads may use a queue if the caller's lock guards each call.
 */
#ifndef WRITE_QUEUE_H
#define WRITE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct write_queue {
	struct io_uring *ring; /* owned; NULL: every write is refused */
	bool refuses; /* the kernel has refused a write, and gets no more */
	unsigned in_flight; /* writes that have not been reaped */
};

/* depth: writes that the kernel accepts at once, 1 to 256; more wait in it.
 * Without io_uring the queue is open all the same. */
void write_queue_open(struct write_queue *queue, unsigned depth);

/* Begin to write.  The bytes stay as they are until the write is reaped. False:
 * the write is refused.  The tag is not NULL. */
bool write_queue_submit(struct write_queue *queue, int fd, const uint8_t *bytes,
			uint32_t length_bytes, uint64_t offset_bytes,
			void *tag);

/* Wait for the end of one of the writes in flight, in any order; there is at
 * least one.  Returns its tag, and in *result how many bytes were written, or
 * -errno.  Returns NULL with -errno in *result if nothing can be waited for:
 * then the queue forgets the writes, which may go on until it is closed, and
 * refuses others. */
void *write_queue_reap(struct write_queue *queue, int *result);

/* Has one of the writes in flight ended? */
bool write_queue_has_ended(const struct write_queue *queue);

/* Wait for all that is in flight, and close.  Safe on a zeroed struct. */
void write_queue_close(struct write_queue *queue);

#endif /* WRITE_QUEUE_H */
