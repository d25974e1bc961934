/*
 * hostlist.h - "node[01-16]", "10.0.0.[1-4]:7300", "^file": lists of hosts
 *
 * What pdsh and ClusterShell users write:
 *
 *     a,b c             separated by commas or blanks
 *     n[1-3,7]x[0-1]    numbers and ranges, in any number of brackets; the
 *                       last one counts fastest
 *     n[0-12/4]         in steps: n0 n4 n8 n12
 *     n[01-10]          zero padding is kept: n01 ... n10
 *     [2001:db8::[1-4]]:7300   an IPv6 address keeps its own brackets
 *     ^FILE             from a file ("-": stdin), a list by itself: lines are
 *                       blanks, # begins a comment, it may name other files;
 *                       its path ends at a comma or blank
 *     a[1-9]!a5         ! removes what the next item lists from all that stands
 *     a[1-9]&a[5-99]    before it; & keeps only that
 *     a[1-9],-a5        - removes from the whole list, wherever it stands
 *
 * A name without a port removes that host with any port.  Order is kept, since
 * it decides ranks; duplicates are dropped.
 *
 * Sizes are bounded while a list grows, not afterwards: n[1-1000000000] is
 * refused as fast as n[1-5000].
 */
#ifndef HOSTLIST_H
#define HOSTLIST_H

#include <stddef.h>

#include "base/failure.h"

#define HOSTLIST_MAX 4096	 /* hosts in a list, and in each item of it */
#define HOSTLIST_NAMES_MAX 65536 /* listed by one text, with duplicates */
#define HOSTLIST_NAME_BYTES 272	 /* with the NUL: a DNS name and a port */
#define HOSTLIST_FILE_BYTES ((size_t)1 << 20)
#define HOSTLIST_FILES_DEEP 8 /* files that name files */
#define HOSTLIST_FILES_MAX 64 /* of one text */

struct hostlist {
	char **hosts; /* owned, count of them */
	size_t count;
	/* The first host that was added twice, and is listed once; "": none. */
	char duplicate[HOSTLIST_NAME_BYTES];
};

/*
 * Append the hosts of text; *list is all zeros before the first call.  Returns
 * 0, or -errno with *failure filled and *list unchanged: -EINVAL (the text),
 * -E2BIG (too many hosts), -ELOOP (too many files), -ENOMEM, or a file's error.
 */
int hostlist_add(struct hostlist *list, const char *text,
		 struct failure *failure);

/* Remove the hosts of text.  Returns the same. */
int hostlist_exclude(struct hostlist *list, const char *text,
		     struct failure *failure);

void hostlist_free(struct hostlist *list);

#endif /* HOSTLIST_H */
