/*
 * allowlist.h - the folders below which a program may be run
 *
 * A program counts by where it really lies: symbolic links and ".." are
 * followed first, and the path that results is the one to execute.
 */
#ifndef ALLOWLIST_H
#define ALLOWLIST_H

#include <limits.h>
#include <stddef.h>

#define ALLOWLIST_MAX 64

struct allowlist {
	char *folders[ALLOWLIST_MAX]; /* owned; real paths; "" for the root */
	size_t bytes[ALLOWLIST_MAX];
	unsigned count;
};

/* Adds a folder.  0 or -errno: -ENOTDIR, -ENOSPC (there are ALLOWLIST_MAX), or
 * an error of realpath(3). */
int allowlist_add(struct allowlist *list, const char *folder);

/* Finds the real path of an absolute path.  0; -EPERM: it lies below none of
 * the folders; -EINVAL: the path is not absolute; -ENOENT and so on. */
int allowlist_resolve(const struct allowlist *list, const char *path,
		      char real[PATH_MAX]);

void allowlist_free(struct allowlist *list);

#endif /* ALLOWLIST_H */
