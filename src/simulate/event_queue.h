/*
 * event_queue.h - what happens next in simulated time
 *
 * A binary heap of events by time; of one time, in the order in which they were
 * added.  An event that is added again before it has occurred occurs at the new
 * time only: its old entry is passed over when it comes to the top.
 */
#ifndef EVENT_QUEUE_H
#define EVENT_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* Part of a caller's struct, which must stay until the event has occurred. */
struct event {
	void (*occur)(struct event *event);
	uint64_t serial; /* private */
};

struct event_entry {
	uint64_t at_ns;
	uint64_t serial;
	struct event *event;
};

struct event_queue {
	struct event_entry *entries; /* owned */
	size_t count, capacity;
	uint64_t last_serial;
};

/* Returns 0 or -ENOMEM. */
int event_queue_add(struct event_queue *queue, struct event *event,
		    uint64_t at_ns);
/* The event does not occur; until the queue has passed its time, or has ended,
 * the caller's struct must stay all the same. */
void event_queue_cancel(struct event *event);
/* When the next event occurs; UINT64_MAX: there is none. */
uint64_t event_queue_next_ns(struct event_queue *queue);
/* Take the next event, of which there must be one. */
struct event *event_queue_take(struct event_queue *queue);
void event_queue_fini(struct event_queue *queue);

#endif /* EVENT_QUEUE_H */
