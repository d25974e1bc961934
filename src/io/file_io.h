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

struct failure;
struct stat;

/* Returns the count, less than length_bytes only where the file ends, or
 * -errno. */
ssize_t file_read_at(int fd, uint8_t *bytes, size_t length_bytes,
		     uint64_t offset_bytes);

/* Write all.  0 or -errno; -EIO: nothing more is taken, without a reason. */
int file_write_at(int fd, const uint8_t *bytes, size_t length_bytes,
		  uint64_t offset_bytes);

/*
 * Has the file the size that it says?  Files that the kernel or a program makes
 * when they are read (procfs, sysfs, FUSE) often say that they are empty, and
 * yet have contents.  fd is open for reading, and status is what fstat(2) says
 * of it; path is for the message.  A regular file of size 0 from which a byte
 * can be read is refused.  Costs nothing if the size is not 0; moves no file
 * offset.  0, or -errno with *failure filled.
 */
int file_check_size(int fd, const struct stat *status, const char *path,
		    struct failure *failure);

#endif /* FILE_IO_H */
