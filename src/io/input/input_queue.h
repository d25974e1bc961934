/*
 * input_queue.h - a share of the input read past the page cache, many reads at
 * a time
 *
 * INPUT_QUEUE_DEPTH reads of INPUT_QUEUE_PIECE_BYTES are always under way, by
 * io_uring from descriptors opened with O_DIRECT, each straight into the place
 * where its bytes belong.  They land in any order and are handed out in order.
 * What a direct read does not bring - refused, cut short, failed - is read
 * plainly when its turn comes, so only the plain read's error is ever reported.
 * One thread's.
 */
#ifndef INPUT_QUEUE_H
#define INPUT_QUEUE_H

#include <stdint.h>

struct failure;
struct input;
struct input_queue;

/*
 * A queue for these records, or NULL: out of memory, no io_uring, no direct
 * descriptor, or a share that does not begin and end at a page boundary or a
 * file's end, so that a whole last page would reach into another's.
 */
struct input_queue *input_queue_new(const struct input *input,
				    uint64_t first_record, uint64_t end_record);

/*
 * Wait for the next piece.  1: all of file *file below its byte *end_bytes is
 * in memory, as far as it belongs to the share; 0: that was all; -errno with
 * *failure filled.
 */
int input_queue_next(struct input_queue *queue, unsigned *file,
		     uint64_t *end_bytes, struct failure *failure);

/* Waits for the reads under way: they write to memory.  NULL is allowed. */
void input_queue_free(struct input_queue *queue);

#endif /* INPUT_QUEUE_H */
