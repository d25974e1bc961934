/*
 * rank_paths.h - put a rank's number into the names of its files
 */
#ifndef RANK_PATHS_H
#define RANK_PATHS_H

#include "base/failure.h"
#include "net/rank.h"

/* Replace each path that has a '%' by what template_fill() makes of it, in
 * memory that is kept until the process ends.  The host's name is what
 * gethostname(2) tells.  0, or -errno with *failure filled. */
int rank_paths_fill(const struct rank *rank, const char **paths, unsigned count,
		    struct failure *failure);

#endif /* RANK_PATHS_H */
