/*
 * residency.c - asks the kernel how much of a file is in memory
 */
#include "system/residency.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

/* The number is one on all architectures; the headers of Debian 12 lack it. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* struct cachestat_range and struct cachestat of linux/mman.h */
struct cachestat_range {
	uint64_t offset;
	uint64_t bytes; /* 0: to the end of the file */
};

struct cachestat_pages {
	uint64_t cached;
	uint64_t dirty;
	uint64_t writeback;
	uint64_t evicted;
	uint64_t recently_evicted;
};

/* Address space that mincore looks at in one call: a byte a page, on the
 * stack. */
#define MINCORE_PAGES 4096

/* An estimate looks at 1 MiB of a longer file; up to there looking at all of it
 * is faster: 32 calls cost 20 us. */
#define ESTIMATE_FROM_BYTES (8 * MIB)
#define ESTIMATE_PLACES 32
#define ESTIMATE_PLACE_BYTES (32 * KIB)

/* Returns the page size of the running kernel. */
static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns 0 if mincore(2) can't tell either. */
static uint64_t bytes_by_mincore(int fd, uint64_t size_bytes)
{
	const uint64_t page = page_bytes(), step = MINCORE_PAGES * page;
	unsigned char pages[MINCORE_PAGES];
	uint64_t resident = 0;
	uint8_t *map;

	map = mmap(NULL, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 0;
	for (uint64_t offset = 0; offset < size_bytes; offset += step) {
		uint64_t bytes = MIN(size_bytes - offset, step);

		if (mincore(map + offset, bytes, pages))
			break;
		for (uint64_t i = 0; i < DIV_ROUND_UP(bytes, page); i++)
			resident += pages[i] & 1;
	}
	munmap(map, size_bytes);
	return resident * page;
}

/* Resident bytes in whole pages, or -1. */
static int64_t cached_bytes(int fd, uint64_t offset, uint64_t bytes)
{
	struct cachestat_range range = { .offset = offset, .bytes = bytes };
	struct cachestat_pages pages;

	if (syscall(SYS_cachestat, fd, &range, &pages, 0) < 0)
		return -1;
	return (int64_t)(pages.cached * page_bytes());
}

/* The kernel counts whole pages, so the result may be up to a page more than
 * the file has. */
static uint64_t bytes_of_all(int fd, uint64_t size_bytes)
{
	int64_t cached;

	if (size_bytes == 0)
		return 0;
	cached = cached_bytes(fd, 0, size_bytes);
	if (cached >= 0)
		return (uint64_t)cached;
	return bytes_by_mincore(fd, size_bytes);
}

uint64_t residency_estimate(int fd, uint64_t size_bytes)
{
	uint64_t step = ROUND_DOWN(size_bytes / ESTIMATE_PLACES, PAGE_BYTES);
	uint64_t resident = 0;

	if (size_bytes <= ESTIMATE_FROM_BYTES)
		return bytes_of_all(fd, size_bytes);
	for (unsigned i = 0; i < ESTIMATE_PLACES; i++) {
		int64_t cached =
			cached_bytes(fd, i * step, ESTIMATE_PLACE_BYTES);

		if (cached < 0)
			return bytes_by_mincore(fd, size_bytes);
		resident += (uint64_t)cached;
	}
	return resident / PAGE_BYTES * size_bytes /
	       (ESTIMATE_PLACES * ESTIMATE_PLACE_BYTES / PAGE_BYTES);
}
