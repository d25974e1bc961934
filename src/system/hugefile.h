/*
 * hugefile.h - a new file on tmpfs, made of huge pages and filled where it lies
 *
 * Most of what a write to tmpfs costs is the making of small pages: 34 ms for
 * 100 MB, of which 11 are the copy.  madvise(MADV_COLLAPSE) makes 2 MiB of them
 * at once in a twentieth of a millisecond, holds no lock that a write needs,
 * and works however the file system was mounted (Linux 6.1).  The call needs
 * one of the 2 MiB's small pages, so the first one of each is written when the
 * file is opened.  The call fails when another thread writes to the small pages
 * meanwhile, so huge pages are made ahead of the threads that fill them.  A
 * tmpfs that makes huge pages by itself needs none of that.
 *
 * Bytes that lie on huge pages are best stored right there by all threads:
 * there is no lock, and no copy.  Where there are no huge pages, the file is to
 * be written.
 *
 * With several NUMA nodes a huge page comes from the node of that small page,
 * whichever thread makes or fills the huge one.  That is the node of the thread
 * that opened the file, unless hugefile_spread() takes all nodes in turn.  A
 * tmpfs that makes huge pages by itself takes each from the node of the thread
 * that fills it.
 *
 * A last huge page that the file does not fill takes the room of a full one.
 * It is made if three quarters of it are used and the file system has plenty
 * left.
 */
#ifndef HUGEFILE_H
#define HUGEFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Linux 5.14; not in the headers of musl and of older C libraries. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct hugefile {
	uint8_t *map; /* the file, readable and writable; NULL: not mapped */
	size_t map_bytes;
	bool huge_anyway;    /* the file system makes huge pages itself */
	uint64_t page_count; /* otherwise: huge pages to be made */
	_Atomic uint64_t next_page; /* any thread raises it */
	_Atomic bool refused;	    /* any thread sets it: there are none */
};

/* Map the file if it lies on a tmpfs and is large enough.  The file has its
 * size already, but no content: some bytes are written here.  If the file is
 * not mapped, the functions below do nothing. */
void hugefile_open(struct hugefile *file, int fd, uint64_t size_bytes);

/* Take the file's pages from these nodes in turn; call it before any page is
 * filled (numa.h). */
void hugefile_spread(struct hugefile *file, int fd, uint64_t nodes);

/* Returns where these bytes of the file lie in memory, on huge pages that have
 * been made, for the caller to fill.  NULL: the bytes are better written, or
 * must be.  Pages of the next ahead_bytes are made, too, since other threads
 * may begin to fill them.  Any thread may call it. */
uint8_t *hugefile_place(struct hugefile *file, uint64_t begin_bytes,
			size_t length_bytes, uint64_t ahead_bytes);

/* Safe on a zeroed struct; the descriptor is the caller's. */
void hugefile_close(struct hugefile *file);

#endif /* HUGEFILE_H */
