/*
 * filesize.h - whether a file has the size that it says
 *
 * Files that the kernel or a program makes when they are read (procfs, sysfs,
 * FUSE) often say that they are empty, and yet have contents.
 */
#ifndef FILESIZE_H
#define FILESIZE_H

struct failure;
struct stat;

/*
 * fd is open for reading, and status is what fstat(2) says of it; path is for
 * the message.  A regular file of size 0 from which a byte can be read is
 * refused.  Costs nothing if the size is not 0; moves no file offset.  0, or
 * -errno with *failure filled.
 */
int filesize_check(int fd, const struct stat *status, const char *path,
		   struct failure *failure);

#endif /* FILESIZE_H */
