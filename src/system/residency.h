/*
 * residency.h - how much of a file is in the page cache
 */
#ifndef RESIDENCY_H
#define RESIDENCY_H

#include <stdint.h>

/*
 * Bytes of the first size_bytes that are in memory: of up to 8 MiB, all whole
 * pages, so it may be up to a page more than the file has; of more, about as
 * many, from looks at a few places, since to count the pages of 100 MB takes
 * 0.8 ms where they are of 4 KiB.  By cachestat(2) where there is one (Linux
 * 6.5), else all of them by mincore(2).  Returns 0 when neither can tell.
 */
uint64_t residency_estimate(int fd, uint64_t size_bytes);

#endif /* RESIDENCY_H */
