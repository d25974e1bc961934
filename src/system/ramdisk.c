/* ramdisk.c - files that are memory */
#include "system/ramdisk.h"

#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

bool ramdisk_is(const struct statfs *fs)
{
	return fs->f_type == TMPFS_MAGIC || fs->f_type == RAMFS_MAGIC;
}

bool ramdisk_has(const char *path)
{
	char folder[PATH_MAX];
	struct stat status;
	struct statfs fs;

	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) &&
	    !S_ISDIR(status.st_mode))
		return false;
	if (statfs(path, &fs) < 0) {
		snprintf(folder, sizeof(folder), "%s", path);
		if (statfs(dirname(folder), &fs) < 0)
			return false;
	}
	return ramdisk_is(&fs);
}
