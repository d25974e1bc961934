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

/* True if what a file at this path, or in this folder, holds, or will hold if
 * it is not there yet, takes memory.  False for devices and FIFOs: their names
 * may lie on a tmpfs, as in /dev, but they hold nothing there. */
bool ramdisk_has(const char *path);

#endif /* RAMDISK_H */
