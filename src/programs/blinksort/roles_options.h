/*
 * roles_options.h - the value of --roles, a list or a file
 */
#ifndef ROLES_OPTIONS_H
#define ROLES_OPTIONS_H

#include "base/options.h"
#include "cluster/agreement/cluster_roles.h"

/* The value of the option just returned: with a ':' it is a list, else "auto"
 * or the name of a file with an entry a line.  0, or -errno with *failure
 * filled. */
int roles_options_take(struct options_reader *reader,
		       struct cluster_roles *roles, struct failure *failure);

/* The lines of such a file: byte_count bytes, with a NUL behind them.
 * Behind '#' a line has a comment, and lines without an entry do not count.
 * Returns 0 or -errno, as cluster_roles_add() does, with the *line. */
int roles_options_read(struct cluster_roles *roles, const char *text,
		       size_t byte_count, unsigned *line);

#endif /* ROLES_OPTIONS_H */
