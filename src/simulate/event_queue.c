/*
 * event_queue.c - keep events in a binary heap
 */
#include "simulate/event_queue.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define CAPACITY_MIN 1024

static bool is_before(const struct event_entry *a, const struct event_entry *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns
				    : a->serial < b->serial;
}

static int grow(struct event_queue *queue)
{
	size_t capacity = queue->capacity ? 2 * queue->capacity : CAPACITY_MIN;
	struct event_entry *entries =
		realloc(queue->entries, capacity * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	queue->entries = entries;
	queue->capacity = capacity;
	return 0;
}

int event_queue_add(struct event_queue *queue, struct event *event,
		    uint64_t at_ns)
{
	struct event_entry entry = { at_ns, ++queue->last_serial, event };
	size_t hole;

	if (queue->count == queue->capacity && grow(queue) < 0)
		return -ENOMEM;
	event->serial = entry.serial;
	for (hole = queue->count++; hole > 0; hole = (hole - 1) / 2) {
		const struct event_entry *above =
			&queue->entries[(hole - 1) / 2];

		if (!is_before(&entry, above))
			break;
		queue->entries[hole] = *above;
	}
	queue->entries[hole] = entry;
	return 0;
}

static void remove_top(struct event_queue *queue)
{
	struct event_entry *entries = queue->entries;
	struct event_entry last = entries[--queue->count];
	size_t hole = 0;

	for (;;) {
		size_t below = 2 * hole + 1;

		if (below >= queue->count)
			break;
		if (below + 1 < queue->count &&
		    is_before(&entries[below + 1], &entries[below]))
			below++;
		if (!is_before(&entries[below], &last))
			break;
		entries[hole] = entries[below];
		hole = below;
	}
	entries[hole] = last;
}

void event_queue_cancel(struct event *event)
{
	event->serial = 0; /* no entry has this */
}

uint64_t event_queue_next_ns(struct event_queue *queue)
{
	while (queue->count > 0 &&
	       queue->entries[0].event->serial != queue->entries[0].serial)
		remove_top(queue);
	return queue->count > 0 ? queue->entries[0].at_ns : UINT64_MAX;
}

struct event *event_queue_take(struct event_queue *queue)
{
	struct event *event;

	event_queue_next_ns(queue);
	event = queue->entries[0].event;
	remove_top(queue);
	event->serial = 0;
	return event;
}

void event_queue_fini(struct event_queue *queue)
{
	free(queue->entries);
	*queue = (struct event_queue){ 0 };
}
