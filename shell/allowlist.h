/*
 * allowlist.h - the folders below which a program may be run
 *
 * What counts is where a program really lies: symbolic links and ".." are
 * followed first, and the path that comes out is the one to execute.
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

/* 0 or -errno: -ENOTDIR, -ENOSPC (ALLOWLIST_MAX), what realpath(3) says. */
int allowlist_add(struct allowlist *list, const char *folder);

/* The real path of an absolute path.  0; -EACCES: in none of the folders;
 * -EINVAL: not absolute; -ENOENT and so on. */
int allowlist_resolve(const struct allowlist *list, const char *path,
		      char real[PATH_MAX]);

void allowlist_free(struct allowlist *list);

#endif /* ALLOWLIST_H */
