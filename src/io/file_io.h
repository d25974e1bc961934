/*
 * file_io.h - read and write a part of a file by pread(2) and pwrite(2)
 *
 * A call that a signal interrupts is repeated, and one that moves fewer bytes
 * is continued.  Any thread may call the functions.
 */
#ifndef FILE_IO_H
#define FILE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the count, less than length_bytes only where the file ends, or
 * -errno. */
ssize_t file_read_at(int fd, uint8_t *bytes, size_t length_bytes,
		     uint64_t offset_bytes);

/* Write all.  0 or -errno; -EIO: nothing more is taken, without a reason. */
int file_write_at(int fd, const uint8_t *bytes, size_t length_bytes,
		  uint64_t offset_bytes);

#endif /* FILE_IO_H */
