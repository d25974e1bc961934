/*
 * hugefile.h - a new file on tmpfs, made of huge pages and filled where it lies
 *
 * Most of what a write to tmpfs costs is the making of small pages: 34 ms for
 * 100 MB, of which 11 are the copy.  madvise(MADV_COLLAPSE) makes 2 MiB of them
 * at once in a twentieth of a millisecond, holds no lock that a write needs,
 * and asks nobody how the file system was mounted (Linux 6.1).  It wants one
 * page of the 2 MiB to be there, so the first of each is written when the file
 * is opened; and it gives up when somebody writes to the others meanwhile, so
 * it is done ahead of who needs them.  A tmpfs that has huge pages of itself
 * needs none of that.
 *
 * What lies on huge pages is best stored right there by all threads: there is
 * no lock, and no copy.  Where there are none, the file is to be written.
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
	bool huge_anyway;    /* the file system makes huge pages of itself */
	uint64_t page_count; /* else, huge pages that are wanted */
	_Atomic uint64_t next_page;
	_Atomic bool refused; /* there are none */
	void *room;	      /* the address space it lies in */
	size_t room_bytes;
};

/* Map the file if it is one of a tmpfs and large enough.  It has got its size
 * but no content: bytes of it are written here.  Where it is not mapped, all
 * below does nothing. */
void hugefile_open(struct hugefile *file, int fd, uint64_t size_bytes);

/* Where these bytes of the file are in memory, on huge pages that are there,
 * for the caller to fill; NULL: they are better written, or must be.  Pages of
 * the next ahead_bytes are made, too, since other threads may begin to write
 * there.  By any thread. */
uint8_t *hugefile_place(struct hugefile *file, uint64_t begin_bytes,
			size_t length_bytes, uint64_t ahead_bytes);

/* Safe on a zeroed struct; the descriptor is the caller's. */
void hugefile_close(struct hugefile *file);

#endif /* HUGEFILE_H */
