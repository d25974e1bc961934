/* history.c - the ids of the last HISTORY_JOBS jobs that were added */
#include <string.h>

#include "base/base.h"
#include "shell/history.h"

/* Honest clients draw ids at random.  A client that has the key and does not
 * can make a chain long; to follow that costs no more than to walk over all
 * ids. */
static uint32_t hash_of(const uint8_t *id)
{
	return (uint32_t)(load_le64(id) ^ load_le64(id + 8)) % HISTORY_JOBS;
}

bool history_has(const struct history *history,
		 const uint8_t id[WIRE_JOB_BYTES])
{
	uint32_t link = history->heads[hash_of(id)];

	while (link != 0 &&
	       memcmp(history->ids[link - 1], id, WIRE_JOB_BYTES) != 0)
		link = history->next[link - 1];
	return link != 0;
}

/* Cuts off the oldest id of all, which is the last of its chain. */
static void cut_last(struct history *history, const uint8_t *id)
{
	uint32_t *link = &history->heads[hash_of(id)];

	while (history->next[*link - 1] != 0)
		link = &history->next[*link - 1];
	*link = 0;
}

void history_add(struct history *history, const uint8_t id[WIRE_JOB_BYTES])
{
	uint32_t place = (uint32_t)(history->count % HISTORY_JOBS);
	uint32_t *head;

	if (history->count >= HISTORY_JOBS)
		cut_last(history, history->ids[place]);
	memcpy(history->ids[place], id, WIRE_JOB_BYTES);
	head = &history->heads[hash_of(id)];
	history->next[place] = *head;
	*head = place + 1;
	history->count++;
}
