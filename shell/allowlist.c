/* allowlist.c - the folders below which a program may be run */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shell/allowlist.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

int allowlist_add(struct allowlist *list, const char *folder)
{
	struct stat status;
	char *real;

	if (list->count == ALLOWLIST_MAX)
		return -ENOSPC;
	real = realpath(folder, NULL);
	if (!real)
		return -errno;
	if (stat(real, &status) < 0 || !S_ISDIR(status.st_mode)) {
		free(real);
		return -ENOTDIR;
	}
	if (strcmp(real, "/") == 0)
		real[0] = '\0';
	list->folders[list->count] = real;
	list->bytes[list->count++] = strlen(real);
	return 0;
}

static bool is_inside(const struct allowlist *list, const char *real)
{
	for (unsigned i = 0; i < list->count; i++)
		if (strncmp(real, list->folders[i], list->bytes[i]) == 0 &&
		    real[list->bytes[i]] == '/')
			return true;
	return false;
}

/* Is the path its own real path?  That is the usual case, and to find out takes
 * a third of what follow_path() takes.  False on a kernel that cannot tell. */
static bool is_real(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	int fd;

	if (strstr(path, "//") || strstr(path, "/.") ||
	    path[strlen(path) - 1] == '/')
		return false;
	fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Finds the real path by 3 system calls, where realpath(3) makes one for each
 * component of the path. */
static int follow_path(const char *path, char real[PATH_MAX])
{
	char link[40];
	int fd = open(path, O_PATH | O_CLOEXEC);
	ssize_t bytes;
	int ret = 0;

	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	bytes = readlink(link, real, PATH_MAX);
	if (bytes < 0)
		ret = -errno;
	else if (bytes == PATH_MAX)
		ret = -ENAMETOOLONG;
	else
		real[bytes] = '\0';
	close(fd);
	return ret;
}

int allowlist_resolve(const struct allowlist *list, const char *path,
		      char real[PATH_MAX])
{
	int ret;

	if (path[0] != '/')
		return -EINVAL;
	if (is_real(path)) {
		strcpy(real, path); /* the kernel opens no longer one */
	} else {
		ret = follow_path(path, real);
		if (ret < 0)
			return ret;
	}
	return is_inside(list, real) ? 0 : -EPERM;
}

void allowlist_free(struct allowlist *list)
{
	while (list->count > 0)
		free(list->folders[--list->count]);
}
