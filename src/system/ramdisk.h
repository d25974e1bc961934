/*
 * ramdisk.h - files that are memory
 */
#ifndef RAMDISK_H
#define RAMDISK_H

#include <stdbool.h>

struct statfs;

/* True if what files of this file system hold takes memory: it is a tmpfs or a
 * ramfs. */
bool ramdisk_is(const struct statfs *fs);

/* The same of what a file at this path, or in this folder, holds, or will hold
 * if it is not there yet.  Not for device nodes, which lie on a tmpfs and hold
 * nothing there. */
bool ramdisk_has(const char *path);

#endif /* RAMDISK_H */
