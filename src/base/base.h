/*
 * base.h - integers as bytes, and the few macros that every file needs
 */
#ifndef BASE_H
#define BASE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define ROUND_UP(n, multiple) (DIV_ROUND_UP(n, multiple) * (multiple))
#define ROUND_DOWN(n, multiple) ((n) / (multiple) * (multiple))

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* The size of the kernel's pages.  Only arm64 has other sizes; blinksort
 * refuses to run with them.  Code that merely counts pages calls sysconf(). */
#define PAGE_BYTES 4096
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* Data that two threads write are kept CACHE_PAIR_BYTES apart: two lines, since
 * the prefetchers of today's CPUs fetch lines in pairs. */
#define CACHE_LINE_BYTES 64
#define CACHE_PAIR_BYTES 128

/* a - b, or 0 if b is more */
static inline uint64_t less_or_none(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Zeroed memory for `count` structs of data that threads write, apart from all
 * else; the caller frees it.  NULL: there is none. */
static inline void *alloc_apart(size_t count, size_t struct_bytes)
{
	size_t bytes = ROUND_UP(count * struct_bytes, CACHE_PAIR_BYTES);
	void *memory = aligned_alloc(CACHE_PAIR_BYTES, bytes);

	return memory ? memset(memory, 0, bytes) : NULL;
}

/* x86-64 and arm64 are; the kernels, the wire and the lists of permissions
 * count on it. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "numbers in memory are little endian");

static inline uint64_t load_be64(const void *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return __builtin_bswap64(value);
}

static inline void store_be64(void *bytes, uint64_t value)
{
	value = __builtin_bswap64(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline uint32_t load_le32(const void *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static inline void store_le32(void *bytes, uint32_t value)
{
	memcpy(bytes, &value, sizeof(value));
}

static inline uint64_t load_le64(const void *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static inline void store_le64(void *bytes, uint64_t value)
{
	memcpy(bytes, &value, sizeof(value));
}

#endif /* BASE_H */
