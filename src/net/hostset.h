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
/* So many are compared one by one; most sets never have more, and each start of
 * a job makes several. */
#define HOSTSET_FEW 64

struct hostset {
	struct hostlist list;
	/* Owned; index + 1, 0: empty.  NULL: there have been few only. */
	uint16_t *slots;
};

/* Empty; NULL: no memory. */
struct hostset *hostset_new(void);
void hostset_free(struct hostset *set);

/* Find again what is in the list, after that was changed by others.  0; or, if
 * it has become longer, -ENOMEM. */
int hostset_index(struct hostset *set);

/* At the end, unless it is there already.  0, -E2BIG or -ENOMEM. */
int hostset_add(struct hostset *set, const char *name);

/* Up to the first that fails. */
int hostset_add_all(struct hostset *set, const struct hostlist *list);

/* Leave in list only what the set lists (listed), or only what it does not.  A
 * name in the set that has no port stands for itself with any port. */
void hostset_filter(struct hostset *set, struct hostlist *list, bool listed);

#endif /* HOSTSET_H */
