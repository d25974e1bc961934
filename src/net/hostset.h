/*
 * hostset.h - a list of hosts that finds its names fast
 *
 * Private to hostlist.c and hostitem.c.
 */
#ifndef HOSTSET_H
#define HOSTSET_H

#include <stdbool.h>
#include <stdint.h>

#include "net/hostlist.h"

#define HOSTSET_SLOTS (4 * HOSTLIST_MAX)
/* Up to this many names are compared one by one, without a hash table: most
 * sets have no more, and each start of a job makes several sets. */
#define HOSTSET_FEW 64

struct hostset {
	struct hostlist list;
	/* The hash table, owned: an index into the list + 1; 0: empty.  NULL
	 * while there are at most HOSTSET_FEW names. */
	uint16_t *slots;
};

/* Give back what the set holds.  A set of zeros is empty, and so is one that
 * was freed. */
void hostset_free(struct hostset *set);

/* Rebuild the table after the caller has changed the list itself.  Returns 0;
 * or -ENOMEM, but only if the list has become longer. */
int hostset_index(struct hostset *set);

/* Append the name, unless the set has it.  Returns 0, -E2BIG or -ENOMEM. */
int hostset_add(struct hostset *set, const char *name);

/* Append all names, up to the first error, which it returns. */
int hostset_add_all(struct hostset *set, const struct hostlist *list);

/* Keep in list only the names that the set has (listed), or only the others.  A
 * name in the set that has no port stands for that host with any port. */
void hostset_filter(struct hostset *set, struct hostlist *list, bool listed);

#endif /* HOSTSET_H */
