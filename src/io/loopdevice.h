/*
 * loopdevice.h - loop devices, which show what lies in a file, or on another
 * device, as a device
 *
 * The kernel does not count a loop device as a user of what it shows: O_EXCL is
 * granted for a device that another one shows, and for two that show one file.
 */
#ifndef LOOPDEVICE_H
#define LOOPDEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* True if fd is a loop device, or a partition of one, that shows this file or
 * device, whichever part of it. */
bool loopdevice_shows(int fd, const struct stat *shown);

/* True if fd is a loop device that shows a device. */
bool loopdevice_shows_device(int fd);

/* True if other_fd is a loop device that shows the device fd, the disk that it
 * is a partition of, or the file that fd shows.  False if the two are one loop
 * device, or partitions of one. */
bool loopdevice_is_twin(int fd, int other_fd);

/* Find such a one in /dev.  One that this process may not open is passed over.
 * False: there is none; path is cut to path_bytes. */
bool loopdevice_find_twin(int fd, char *path, size_t path_bytes);

#endif /* LOOPDEVICE_H */
