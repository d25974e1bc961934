/*
 * sigbus.h - end cleanly when a mapped file is cut short under us
 *
 * Touching a mapped page that the file no longer has, or that the disk cannot
 * read, raises SIGBUS.  There is nothing to return to, so the handler prints
 * the one line that a failed read would have led to, removes hidden output
 * files and ends the process with EXIT_FILE.  Any other SIGBUS takes the way it
 * would have taken.
 */
#ifndef SIGBUS_H
#define SIGBUS_H

#include <stddef.h>
#include <stdint.h>

/* Reasons that a reader and the handler both give for such a file. */
#define SIGBUS_SHRANK "shrank while it was read"
#define SIGBUS_IO_ERROR "cannot read: Input/output error"

/* Watch a mapping of so many bytes of the file fd, from offset_bytes on.  The
 * descriptor must stay open until the mapping is forgotten.  Any thread.  0 or
 * -errno. */
int sigbus_watch(const void *base, size_t bytes, int fd, uint64_t offset_bytes,
		 const char *path);

/* Forget all mappings that begin in this range; the handler stays. */
void sigbus_forget(const void *base, size_t bytes);

#endif /* SIGBUS_H */
