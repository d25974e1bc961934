/*
 * hugefile.h - a new file of a tmpfs of small pages gets huge ones
 *
 * Most of what a write to tmpfs costs is the making of its pages: 34 ms for 100
 * MB, of which 11 are the copy.  madvise(MADV_COLLAPSE) makes 2 MiB at once in
 * a twentieth of a millisecond, holds no lock that a write needs, and asks
 * nobody how the file system was mounted (Linux 6.1).  It wants one page of the
 * 2 MiB to be there, so the first of each is written when the file is opened;
 * and it gives up when somebody writes to the others meanwhile, so it is done
 * ahead of the writers.  Where it cannot be, small pages come as ever.
 *
 * A last huge page that the file does not fill takes the room of a whole one:
 * it is made if three quarters of it are used and the file system has plenty
 * left.
 */
#ifndef HUGEFILE_H
#define HUGEFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hugefile {
	uint8_t *map; /* the file, readable and writable; NULL: not mapped */
	uint64_t page_count; /* huge pages that are wanted */
	_Atomic uint64_t next_page;
	_Atomic bool refused; /* the kernel makes none */
	void *room;	      /* the address space it lies in */
	size_t room_bytes;
};

/* Whether fd is a file of a tmpfs whose pages are small. */
bool hugefile_is_for(int fd);

/* Map the file, which has got its size but no content: bytes of it are written
 * here.  Where it cannot be mapped, map is NULL and the rest does nothing. */
void hugefile_open(struct hugefile *file, int fd, uint64_t size_bytes);

/* Before bytes up to end_bytes are written, by any thread: make what pages of
 * them nobody has begun to make. */
void hugefile_make(struct hugefile *file, uint64_t end_bytes);

/* Safe on a zeroed struct; the descriptor is the caller's. */
void hugefile_close(struct hugefile *file);

#endif /* HUGEFILE_H */
