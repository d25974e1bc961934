/*
 * read_ahead.h - reads of one thread, several under way, in a given order
 *
 * A callback names the extents of files that are wanted, one after the other.
 * They are read by io_uring into slots, or where the callback wants them, as
 * whole pages around each extent so that O_DIRECT can be used, and are handed
 * out in the order in which they were named.  Where an extent has no direct
 * descriptor, the ring reads it through the page cache.  What the ring does not
 * bring - refused, cut short, failed, no io_uring at all - is read by pread(2)
 * when its turn comes, so only the plain read's error is ever reported.
 *
 * All functions belong to one thread at a time.
 */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stage.h"

struct failure;

/* No device needs as many reads at once: a virtual disk reads as fast by 4 as
 * by 32. */
#define READ_AHEAD_DEPTH_MAX 64

/* Bytes of a slot, for extents of so many. */
#define READ_AHEAD_SLOT_BYTES(extent_bytes)                                    \
	(ROUND_UP(extent_bytes, PAGE_BYTES) + 2 * PAGE_BYTES)

struct read_extent {
	int direct_fd;	       /* opened with O_DIRECT, or -1 */
	int plain_fd;	       /* the same file without O_DIRECT */
	uint64_t offset_bytes; /* any alignment */
	uint32_t length_bytes; /* 1 .. slot_bytes - 2 * PAGE_BYTES */
	const char *path;      /* borrowed: for the failure */
	/* NULL: it is read into a slot, and handed out until the next one is
	 * taken.  Else it is read there: with direct_fd whole pages, and both
	 * offset_bytes and the target begin one; without it, the extent alone.
	 */
	uint8_t *target;
};

/*
 * The next extent: true with *extent filled, or false: there is none for now.
 * Then it is asked again by the next read_ahead_take(), so a callback that has
 * come to its end says false each time.  The descriptors must stay open, and
 * the bytes must have been written, until the extent has been handed out.
 */
typedef bool read_ahead_next_fn(void *context, struct read_extent *extent);

struct read_ahead_slot {
	struct read_extent extent;
	uint8_t *memory;
	uint64_t begin_bytes; /* of what is read: the extent's first page */
	uint32_t got_bytes;   /* from begin_bytes on */
	bool landed;
	uint64_t begin_ns; /* as stage_queue_begin() says */
};

struct read_ahead {
	struct stage_queue queue;
	struct stage_clock *clock; /* of the thread; NULL: it has none */
	struct io_uring ring;
	bool has_ring; /* else all reads are plain; the caller may look */
	bool refused;  /* the kernel takes no more reads through the ring */
	read_ahead_next_fn *next;
	void *context;
	unsigned depth;
	uint32_t length_bytes_max; /* of an extent */
	/* Slots [head, tail) are under way or landed; modulo the depth. */
	uint64_t head, tail;
	bool lent; /* the slot at head is the caller's */
	/* What read_ahead_bytes() has not handed out of its extent. */
	const uint8_t *left;
	uint32_t left_bytes;
	unsigned prepared; /* in the ring but not with the kernel yet */
	unsigned in_flight;
	struct read_ahead_slot slots[READ_AHEAD_DEPTH_MAX];
};

/*
 * memory is the caller's, page aligned, depth * slot_bytes; NULL: all extents
 * have targets.  slot_bytes is a multiple of PAGE_BYTES, and at least three.
 * depth - 1 extents are being read while the caller looks at another.  Nothing
 * is read, and the callback is not called, before the first read_ahead_take().
 * depth: from 1 to READ_AHEAD_DEPTH_MAX.  Where there is no io_uring all reads
 * are plain ones.
 */
void read_ahead_init(struct read_ahead *ahead, unsigned depth, uint8_t *memory,
		     uint32_t slot_bytes, read_ahead_next_fn *next,
		     void *context);

/* The thread goes on, measured by that clock, or by none if that is NULL.  What
 * is read counts there, with what pages have beside. */
void read_ahead_resume(struct read_ahead *ahead, struct stage_clock *clock);

/* Look whether anything has come, so that the time of its end is known.  The
 * next call that takes an extent looks, too. */
void read_ahead_look(struct read_ahead *ahead);

/*
 * Take the next extent, and wait for it.  1: *extent, and its bytes at *bytes,
 * in a slot: they are valid until the next call.  0: the callback has none for
 * now, and nothing is under way.  -errno with *failure filled: a read failed,
 * or the file ends within the extent; then nothing is under way any more, and
 * only read_ahead_close() may follow.
 */
int read_ahead_take(struct read_ahead *ahead, struct read_extent *extent,
		    const uint8_t **bytes, struct failure *failure);

/*
 * The next byte_count bytes of all extents, none of which may have its end
 * between: they are valid until the next call.  NULL: *failure is filled; the
 * callback must have named an extent.
 */
const uint8_t *read_ahead_bytes(struct read_ahead *ahead, uint32_t byte_count,
				struct failure *failure);

/* Wait for the reads under way, which write to the slots, and forget them.
 * Safe on a zeroed struct. */
void read_ahead_close(struct read_ahead *ahead);

#endif /* READ_AHEAD_H */
