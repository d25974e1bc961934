/*
 * hostitem.h - one item of a list of hosts: "n[01-16]x[0-12/4]"
 *
 * Private to hostlist.c, as are what it and hostlist.c say of a text that is
 * wrong.
 */
#ifndef HOSTITEM_H
#define HOSTITEM_H

#include "net/hostset.h"

/* Bytes in memory that no NUL need end. */
struct span {
	const char *begin, *end;
};

/* What the whole text may yet cost, with the files that it names. */
struct host_budget {
	size_t names_left; /* of HOSTLIST_NAMES_MAX */
	unsigned files_left;
};

/* A list as text, and what its limits and messages need. */
struct host_source {
	struct failure *failure;
	const char *file; /* NULL: what the caller gave */
	struct span text;
	unsigned depth;
	struct host_budget *budget;
};

/* Fill the source's failure: "FILE:LINE: 'ITEM': WHY".  Returns -error. */
int host_source_complain(const struct host_source *source, struct span item,
			 int error, const char *why);

/* The same for what became of an operation on a set: 0, -E2BIG or -ENOMEM. */
int host_source_check(const struct host_source *source, struct span item,
		      int error);

/* All that item stands for, to the set's end; item lies in the source's text
 * and is not empty. */
int hostitem_expand(const struct host_source *source, struct span item,
		    struct hostset *set);

#endif /* HOSTITEM_H */
