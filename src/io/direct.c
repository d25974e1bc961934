/*
 * direct.c - reads and writes past the page cache: which files are worth it,
 * and memory
 */
#include "io/direct.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"
#include "system/allowance.h"
#include "system/residency.h"

/* A smaller file goes through the page cache however little memory there is:
 * to ask for it takes longer than such a file can lose. */
#define LARGE_BYTES_MIN (256 * MIB)

bool direct_is_large(uint64_t size_bytes)
{
	return size_bytes >= LARGE_BYTES_MIN &&
	       size_bytes > allowance_memory_bytes() / 2;
}

bool direct_suits(int fd, uint64_t size_bytes)
{
	return direct_is_large(size_bytes) &&
	       residency_estimate(fd, size_bytes) < size_bytes / 2;
}

uint8_t *direct_memory(size_t size_bytes)
{
	size_t room_bytes = ROUND_UP(size_bytes, HUGE_PAGE_BYTES);
	uint8_t *memory = aligned_alloc(HUGE_PAGE_BYTES, room_bytes);

	if (memory)
		(void)madvise(memory, room_bytes, MADV_HUGEPAGE);
	return memory;
}
