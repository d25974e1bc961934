/*
 * ramdisk.h - files that are memory
 */
#ifndef RAMDISK_H
#define RAMDISK_H

#include <stdbool.h>

/* True if what a file at this path, or in this folder, holds takes memory: it
 * lies on a tmpfs or a ramfs, or will, if it is not there yet.  Not for device
 * nodes, which lie on a tmpfs and hold nothing there. */
bool ramdisk_has(const char *path);

#endif /* RAMDISK_H */
