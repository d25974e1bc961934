/*
 * test_tied.c - one tie anywhere, or none, between guard pages
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/equal_keys.h"

#define COUNT_MAX 140
#define INDEX_BITS 20

/* A page between two that may not be touched. */
static uint8_t *page;

/* Ascending, without ties, up to the end of the page or from its beginning. */
static uint64_t *make_entries(size_t count, bool at_end)
{
	uint64_t *entries =
		(void *)(at_end ? page + PAGE_BYTES - count * 8 : page);

	for (size_t i = 0; i < count; i++)
		entries[i] = (i + 1) << INDEX_BITS |
			     (0x5deece66d * i & ((1 << INDEX_BITS) - 1));
	return entries;
}

static void check(enum cpu_level level, size_t count, bool at_end)
{
	uint64_t *entries = make_entries(count, at_end);
	equal_keys_fn *any = equal_keys_kernel(level);

	if (any(entries, count, INDEX_BITS))
		fail_msg("%s: %zu without ties", cpu_level_names[level], count);
	for (size_t i = 1; i < count; i++) {
		uint64_t kept = entries[i];

		/* The lowest bit above the index still tells them apart. */
		entries[i] = entries[i - 1] ^ (uint64_t)1 << INDEX_BITS;
		assert_false(any(entries + i - 1, 2, INDEX_BITS));
		/* The highest below does not. */
		entries[i] = entries[i - 1] ^ (uint64_t)1 << (INDEX_BITS - 1);
		if (!any(entries, count, INDEX_BITS))
			fail_msg("%s: %zu entries, a tie at %zu",
				 cpu_level_names[level], count, i);
		entries[i] = kept;
	}
}

static void tied__one_tie_at_every_place(void **state)
{
	(void)state;
	for (int level = 0; level <= (int)cpu_level_detect(); level++)
		for (size_t count = 0; count <= COUNT_MAX; count++) {
			check((enum cpu_level)level, count, true);
			check((enum cpu_level)level, count, false);
		}
}

static void tied_kernel__is_of_its_level(void **state)
{
	(void)state;
	assert_ptr_equal(equal_keys_kernel(CPU_SCALAR), equal_keys_scalar);
#if defined(__x86_64__)
	assert_ptr_equal(equal_keys_kernel(CPU_AVX2), equal_keys_avx2);
	assert_ptr_equal(equal_keys_kernel(CPU_AVX512), equal_keys_avx512);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tied__one_tie_at_every_place),
		cmocka_unit_test(tied_kernel__is_of_its_level),
	};
	uint8_t *map = mmap(NULL, 3 * PAGE_BYTES, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return EXIT_FAILURE;
	page = map + PAGE_BYTES;
	if (mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE) < 0)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
