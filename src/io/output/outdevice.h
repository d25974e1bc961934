/*
 * outdevice.h - a block device that takes the output from its first byte on
 *
 * A file of the output is made anew and appears whole or not at all; a device
 * is there already, and each write replaces what it held.  So outdevice_open()
 * refuses a device that holds an input of the sort, or that another program
 * uses:
 *
 * - O_EXCL: the kernel refuses a device that is mounted, swapped to, a member
 *   of an array or of a volume, or that another program has opened so; and a
 *   disk of which that is true of a partition.  Until the device is closed, the
 *   kernel refuses the same to others.
 * - A disk with partitions is refused, since its table lies in front.
 * - No loop device may show the device, its disk, or the file that it shows,
 *   and it may not show a device itself (loopdevice.h).
 * - No input may lie on the device, or be the file that it shows.
 * - Programs that read a device as an input (input.h) hold a shared lock of it
 *   (flock(2)), and so does udev while it looks at one; outdevice_open() takes
 *   the exclusive lock.
 *
 * A program that has opened the device without O_EXCL and takes no lock is not
 * seen.
 */
#ifndef OUTDEVICE_H
#define OUTDEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct failure;

/* Open the device to read and to write it; nothing is written.  "-" among the
 * inputs is standard input; one that cannot be looked at is passed over.
 * Returns the descriptor, or -errno with *failure filled. */
int outdevice_open(const char *path, const char *const *input_paths,
		   unsigned input_count, struct failure *failure);

/* Refuse more bytes than the device has.  0 or -errno with *failure filled. */
int outdevice_check_size(int fd, const char *path, uint64_t bytes,
			 struct failure *failure);

/* Wait until the device has taken all that was written through the page cache;
 * with sync, until it is on the medium.  0 or -errno with *failure filled. */
int outdevice_finish(int fd, const char *path, bool sync,
		     struct failure *failure);

#endif /* OUTDEVICE_H */
