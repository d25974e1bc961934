/*
 * sink.h - where sorted bytes go, chunk by chunk
 *
 * A sink has one or several parts, the first of which takes the first bytes of
 * the sorted whole.  A part is divided into chunks of chunk_bytes, of which the
 * first one may lack some at its beginning; its last chunk holds the rest.  The
 * worker threads fill the chunks in any order, each chunk once.  A worker asks
 * where the chunk lies (place) and fills it there; or it takes a staging slot
 * (take), fills it and hands it over (put).  Where a sink allows it, a chunk
 * may come in parts, each in a call or a slot of its own.
 *
 * The operations may be called by several workers at a time, but for finish():
 * when all workers have ended, the sink's owner calls it, waits there until all
 * is written, and learns of a failure.
 */
#ifndef SINK_H
#define SINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/stage.h"

struct sink;

/* A staging slot.  From take() to put() it belongs to the worker that took it.
 */
struct sink_slot {
	uint8_t *data; /* chunk_bytes of them; the sink sets it once */
	/* The sink alone uses these three. */
	int state;
	int node;	   /* NUMA node of the worker that has filled it */
	uint64_t begin_ns; /* of its write */
	/* The worker sets these before put(): where the bytes go, and what the
	 * worker is measured by, or NULL. */
	struct stage_clock *clock;
	unsigned part;
	uint64_t offset_bytes; /* from the part's beginning */
	size_t length_bytes;
};

struct sink_ops {
	/* Returns the address where this chunk, or this part of one, is to be
	 * filled, and nothing else is to be done; or NULL: take a slot for it.
	 * A sink that is written in order may wait here until the chunk's turn
	 * is near; so chunks are begun in ascending order.  A sink without
	 * place() takes all by slots. */
	uint8_t *(*place)(struct sink *sink, unsigned part,
			  uint64_t offset_bytes, size_t length_bytes);
	/* A slot to fill.  Waits for one, and may write others' slots
	 * meanwhile.  NULL: the sink has failed, and keeps the reason. */
	struct sink_slot *(*take)(struct sink *sink);
	/* The slot is filled. */
	void (*put)(struct sink *sink, struct sink_slot *slot);
	/* Write what is ready: for a worker that has nothing left to fill.
	 * When all workers have returned from it, all is written or under way.
	 * A sink has no help() if put() leaves nothing. */
	void (*help)(struct sink *sink);
	/* Wait until all is written; all workers have returned from help().  0
	 * or -errno with *failure filled. */
	int (*finish)(struct sink *sink, struct failure *failure);
};

/* Members other than ops and writes may change until the first chunk; then
 * nothing does until all workers have ended. */
struct sink {
	const struct sink_ops *ops;
	size_t chunk_bytes;
	/* The first chunk of each part is shorter by this: below chunk_bytes */
	size_t lead_bytes;
	unsigned part_count;
	const uint64_t *part_bytes; /* [part_count], each maybe 0 */
	struct stage_queue writes;  /* changed with the sink's lock held */
};

static inline uint8_t *sink_place(struct sink *sink, unsigned part,
				  uint64_t offset_bytes, size_t length_bytes)
{
	return sink->ops->place ? sink->ops->place(sink, part, offset_bytes,
						   length_bytes)
				: NULL;
}

static inline struct sink_slot *sink_take(struct sink *sink)
{
	return sink->ops->take(sink);
}

static inline void sink_put(struct sink *sink, struct sink_slot *slot)
{
	sink->ops->put(sink, slot);
}

/* For put(): take the lock, which another worker may hold while that waits for
 * a write. */
static inline void sink_lock(pthread_mutex_t *lock,
			     const struct sink_slot *slot)
{
	if (pthread_mutex_trylock(lock) == 0)
		return;
	stage_pause(slot->clock);
	pthread_mutex_lock(lock);
	stage_wait(slot->clock, STAGE_FOR_WRITE);
}

static inline void sink_help(struct sink *sink)
{
	if (sink->ops->help)
		sink->ops->help(sink);
}

static inline int sink_finish(struct sink *sink, struct failure *failure)
{
	return sink->ops->finish(sink, failure);
}

/* What all its parts have. */
static inline uint64_t sink_bytes(const struct sink *sink)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < sink->part_count; i++)
		bytes += sink->part_bytes[i];
	return bytes;
}

#endif /* SINK_H */
