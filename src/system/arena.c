/* arena.c - one block of zeroed memory on huge pages, cut up by the plan */
#include "system/arena.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"

/* Small pages come faster than a huge one if an arena has at most this many
 * bytes. */
#define SMALL_BYTES (512 * KIB)

static int map_small(struct arena *arena, size_t size_bytes)
{
	size_bytes = ROUND_UP(MAX(size_bytes, 1), PAGE_BYTES);
	arena->base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena->base == MAP_FAILED) {
		arena->base = NULL;
		return -errno;
	}
	arena->size_bytes = size_bytes;
	return 0;
}

uint8_t *arena_reserve(size_t size_bytes, int protection)
{
	/* Wherever a page begins, a huge page begins within this. */
	size_t room_bytes = size_bytes + HUGE_PAGE_BYTES - PAGE_BYTES;
	uint8_t *room =
		mmap(NULL, room_bytes, protection,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before_bytes, after_bytes;

	if (room == MAP_FAILED)
		return NULL;
	/* The kernel aligns to 4 KiB: cut off what lies around the block. */
	before_bytes = -(uintptr_t)room % HUGE_PAGE_BYTES;
	after_bytes = room_bytes - before_bytes - size_bytes;
	if (before_bytes)
		munmap(room, before_bytes);
	if (after_bytes)
		munmap(room + before_bytes + size_bytes, after_bytes);
	return room + before_bytes;
}

int arena_map(struct arena *arena, size_t size_bytes)
{
	memset(arena, 0, sizeof(*arena));
	if (size_bytes > SIZE_MAX / 2)
		return -ENOMEM;
	if (size_bytes < SMALL_BYTES)
		return map_small(arena, size_bytes);
	/* Whole huge pages, so that the last bytes lie on one too. */
	size_bytes = ROUND_UP(size_bytes, HUGE_PAGE_BYTES);
	arena->base = arena_reserve(size_bytes, PROT_READ | PROT_WRITE);
	if (!arena->base)
		return -errno;
	arena->size_bytes = size_bytes;
	/* A kernel built without huge pages refuses; small ones will do. */
	(void)madvise(arena->base, size_bytes, MADV_HUGEPAGE);
	return 0;
}

void *arena_take(struct arena *arena, size_t bytes, size_t align_bytes)
{
	size_t begin = ROUND_UP(arena->used_bytes, align_bytes);

	assert(align_bytes > 0 && (align_bytes & (align_bytes - 1)) == 0);
	/* The base is no better aligned than that; and as the size is a
	 * multiple of it, begin is at most the size. */
	assert(align_bytes <= HUGE_PAGE_BYTES);
	assert(bytes <= arena->size_bytes - begin);
	arena->used_bytes = begin + bytes;
	return arena->base + begin;
}

void *arena_take_used(struct arena *arena, struct arena *used, size_t bytes,
		      size_t align_bytes)
{
	if (used) {
		size_t begin = ROUND_UP(used->used_bytes, align_bytes);

		if (begin <= used->size_bytes &&
		    bytes <= used->size_bytes - begin)
			arena = used;
	}
	return arena_take(arena, bytes, align_bytes);
}

void arena_unmap(struct arena *arena)
{
	if (arena->base)
		munmap(arena->base, arena->size_bytes);
	memset(arena, 0, sizeof(*arena));
}
