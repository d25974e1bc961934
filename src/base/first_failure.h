/*
 * first_failure.h - of several threads that may fail, the first one's reason
 *
 * Each thread of a run may note a failure.  The first one is kept, and the
 * other threads stop at the next place where they ask, and any of them
 * may read the reason then.
 *
 * A note wakes no thread.  So whoever waits must be woken whatever fails, and
 * whenever: by workers of its own team, each of which is counted also if it
 * leaves early; or by the thread that it waits for, which looks for a failure
 * before it waits for something itself, and on its way out wakes the others.
 */
#ifndef FIRST_FAILURE_H
#define FIRST_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/failure.h"

struct first_failure {
	/* Any thread sets it; the thread that finds it unset fills failure. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic bool failing;
	/* The thread that fills failure sets it afterwards, for all threads to
	 * read. */
	_Atomic bool stop;
	struct failure failure;
};

/* Note that the run has failed for this reason.  A later reason is dropped.
 * Any thread may call it. */
static inline void first_failure_note(struct first_failure *first,
				      const struct failure *failure)
{
	if (atomic_exchange_explicit(&first->failing, true,
				     memory_order_relaxed))
		return;
	first->failure = *failure;
	atomic_store_explicit(&first->stop, true, memory_order_release);
}

/* True if the run has failed; first->failure may be read then.  Any thread may
 * call it. */
static inline bool first_failure_stops(const struct first_failure *first)
{
	return atomic_load_explicit(&first->stop, memory_order_acquire);
}

/* Returns 0, or -EIO with *failure filled if the run has failed.  Any thread
 * may call it. */
static inline int first_failure_get(const struct first_failure *first,
				    struct failure *failure)
{
	if (!first_failure_stops(first))
		return 0;
	*failure = first->failure;
	return -EIO;
}

#endif /* FIRST_FAILURE_H */
