/*
 * test_search.c - every kernel against counting
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random.h"
#include "kernels/search.h"

static struct search_tree tree;
static uint64_t planted[SEARCH_COUNT_MAX];

/* Ascending, over all of the range or crowded at an end of it; some equal. */
static void plant(uint32_t count)
{
	uint64_t random = random_next();
	uint64_t step = random % 2 ? UINT64_MAX / (count + 1) : 3;
	uint64_t key = random % 4 < 2 ? 0 : UINT64_MAX - step * count;

	for (uint32_t i = 0; i < count; i++) {
		planted[i] = key;
		key += random_next() % 4 ? 1 + random_next() % step : 0;
	}
	if (random % 8 == 2 && count > 0)
		planted[count - 1] = UINT64_MAX;
	search_build(&tree, planted, count);
}

static uint32_t count_below(uint32_t count, uint64_t key)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (planted[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void check(uint32_t count, const uint64_t *keys)
{
	for (int level = 0; level <= (int)cpu_level_detect(); level++) {
		uint32_t below[SEARCH_BATCH];

		search_kernel((enum cpu_level)level)(&tree, keys, below);
		for (unsigned k = 0; k < SEARCH_BATCH; k++) {
			uint32_t expected = count_below(count, keys[k]);

			if (below[k] != expected)
				fail_msg("%s, %u planted: %u are below "
					 "%016llx, not %u (SEED=%llu)",
					 cpu_level_names[level], count,
					 expected, (unsigned long long)keys[k],
					 below[k], (unsigned long long)seed);
		}
	}
}

/* Each planted key, its neighbours, and any. */
static void check_count(uint32_t count)
{
	uint64_t keys[SEARCH_BATCH] = { 0,
					1,
					UINT64_MAX,
					UINT64_MAX - 1,
					(uint64_t)1 << 63,
					((uint64_t)1 << 63) - 1 };
	unsigned have = 6;

	plant(count);
	for (uint32_t i = 0; i < count; i++) {
		if (have + 4 > SEARCH_BATCH) {
			check(count, keys);
			have = 0;
		}
		keys[have++] = planted[i] - 1;
		keys[have++] = planted[i];
		keys[have++] = planted[i] + 1;
		keys[have++] = random_next();
	}
	check(count, keys);
}

static void search__every_small_count(void **state)
{
	(void)state;
	for (uint32_t count = 0; count <= 1000; count++)
		check_count(count);
}

/* Where a level more begins, and what is most. */
static void search__large_counts(void **state)
{
	static const uint32_t counts[] = {
		6559, 6560, 6561, 6562, 7777, 8190, SEARCH_COUNT_MAX
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		for (unsigned round = 0; round < 8; round++)
			check_count(counts[i]);
}

static void search_kernel__is_of_its_level(void **state)
{
	(void)state;
	assert_ptr_equal(search_kernel(CPU_SCALAR), search_scalar);
#if defined(__x86_64__)
	assert_ptr_equal(search_kernel(CPU_AVX2), search_avx2);
	assert_ptr_equal(search_kernel(CPU_AVX512), search_avx512);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(search__every_small_count),
		cmocka_unit_test(search__large_counts),
		cmocka_unit_test(search_kernel__is_of_its_level),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
