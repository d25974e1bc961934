/*
 * guarded_page.h - a page whose neighbours may not be touched: a read beyond a
 * record at either of its ends is a signal
 *
 * Included by one file of a program.
 */
#ifndef GUARDED_PAGE_H
#define GUARDED_PAGE_H

#include <stdint.h>
#include <sys/mman.h>

#include "base/base.h"

static uint8_t *first_byte, *end_byte; /* of the page */

/* Returns 0, or not 0: there is no memory. */
static inline int guarded_map(void)
{
	uint8_t *map = mmap(NULL, 3 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -1;
	first_byte = map + PAGE_BYTES;
	end_byte = first_byte + PAGE_BYTES;
	return mprotect(map, PAGE_BYTES, PROT_NONE) ||
	       mprotect(end_byte, PAGE_BYTES, PROT_NONE);
}

#endif /* GUARDED_PAGE_H */
