/*
 * hostitem.h - one item of a list of hosts: "n[01-16]x[0-12/4]"
 *
 * Private to hostlist.c, which also reports wrong texts by the functions below.
 */
#ifndef HOSTITEM_H
#define HOSTITEM_H

#include "net/hostset.h"

/* Bytes in memory; a NUL need not follow. */
struct span {
	const char *begin, *end;
};

/* How much more the whole text may list, with the files that it names. */
struct host_budget {
	size_t names_left; /* of HOSTLIST_NAMES_MAX */
	unsigned files_left;
};

/* A list as text, and what its limits and messages need. */
struct host_source {
	struct failure *failure;
	const char *file; /* NULL: the caller's text */
	struct span text;
	unsigned depth;
	struct host_budget *budget;
};

/* Fill the source's failure: "FILE:LINE: 'ITEM': WHY".  Returns -error. */
int host_source_complain(const struct host_source *source, struct span item,
			 int error, const char *why);

/* The same for the result of an operation on a set: 0, -E2BIG or -ENOMEM. */
int host_source_check(const struct host_source *source, struct span item,
		      int error);

/* Append all names that item stands for to the set; item lies in the source's
 * text and is not empty.  Returns 0 or -errno. */
int hostitem_expand(const struct host_source *source, struct span item,
		    struct hostset *set);

#endif /* HOSTITEM_H */
