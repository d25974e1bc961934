/* hostset.c - a list of hosts that finds its names fast */
#include "net/hostset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* FNV-1a */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

/* The name's entry of the table, or the empty one where it belongs. */
static uint16_t *slot_of(const struct hostset *set, const char *name)
{
	uint32_t slot = hash_of(name) % HOSTSET_SLOTS;

	while (set->slots[slot] != 0 &&
	       strcmp(set->list.hosts[set->slots[slot] - 1], name) != 0)
		slot = (slot + 1) % HOSTSET_SLOTS;
	return &set->slots[slot];
}

static bool has(const struct hostset *set, const char *name)
{
	if (set->slots)
		return *slot_of(set, name) != 0;
	for (size_t i = 0; i < set->list.count; i++)
		if (strcmp(set->list.hosts[i], name) == 0)
			return true;
	return false;
}

void hostset_free(struct hostset *set)
{
	hostlist_free(&set->list);
	free(set->slots);
	set->slots = NULL;
}

int hostset_index(struct hostset *set)
{
	if (!set->slots && set->list.count <= HOSTSET_FEW)
		return 0;
	if (!set->slots)
		set->slots = malloc(HOSTSET_SLOTS * sizeof(*set->slots));
	if (!set->slots)
		return -ENOMEM;
	memset(set->slots, 0, HOSTSET_SLOTS * sizeof(*set->slots));
	for (size_t i = 0; i < set->list.count; i++)
		*slot_of(set, set->list.hosts[i]) = (uint16_t)(i + 1);
	return 0;
}

/* Make room for one more name: the capacity is the count's next power of two.
 */
static int list_reserve(struct hostlist *list)
{
	size_t count = list->count;
	char **hosts;

	if (count & (count - 1))
		return 0;
	hosts = realloc(list->hosts, MAX(2 * count, 1) * sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	list->hosts = hosts;
	return 0;
}

static void note_duplicate(struct hostlist *list, const char *name)
{
	if (list->duplicate[0] == '\0')
		snprintf(list->duplicate, sizeof(list->duplicate), "%s", name);
}

int hostset_add(struct hostset *set, const char *name)
{
	char *copy;

	if (has(set, name)) {
		note_duplicate(&set->list, name);
		return 0;
	}
	if (set->list.count == HOSTLIST_MAX)
		return -E2BIG;
	if (list_reserve(&set->list) < 0)
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	set->list.hosts[set->list.count++] = copy;
	if (!set->slots)
		return hostset_index(set);
	*slot_of(set, name) = (uint16_t)set->list.count;
	return 0;
}

int hostset_add_all(struct hostset *set, const struct hostlist *list)
{
	int error = 0;

	note_duplicate(&set->list, list->duplicate);
	for (size_t i = 0; i < list->count && !error; i++)
		error = hostset_add(set, list->hosts[i]);
	return error;
}

/* Cut off the port of "host:1" and "[::1]:1", and nothing of "::1". */
static bool without_port(const char *name, char host[HOSTLIST_NAME_BYTES])
{
	const char *colon = strrchr(name, ':');

	if (!colon || (strchr(name, ':') != colon && colon[-1] != ']'))
		return false;
	snprintf(host, HOSTLIST_NAME_BYTES, "%.*s", (int)(colon - name), name);
	return true;
}

static bool lists(struct hostset *set, const char *name)
{
	char host[HOSTLIST_NAME_BYTES];

	return has(set, name) || (without_port(name, host) && has(set, host));
}

void hostset_filter(struct hostset *set, struct hostlist *list, bool listed)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (lists(set, list->hosts[i]) == listed)
			list->hosts[kept++] = list->hosts[i];
		else
			free(list->hosts[i]);
	}
	list->count = kept;
}
