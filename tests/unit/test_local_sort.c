/*
 * test_local_sort.c - every kernel this CPU has against qsort()
 *
 * Entries are sorted in a page framed by pages that may not be touched, once
 * right after the one in front, once right before the one behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/local_sort.h"
#include "random.h"
#include "skip.h"

#define COUNT_ALL_MAX 600 /* every count up to here */
#define COUNT_MAX 100000

struct guarded {
	uint8_t *start; /* right behind a page that may not be touched */
	uint8_t *end;	/* right before another */
};

static struct guarded guarded;
static uint64_t *input, *expected;

static int compare_entries(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

typedef uint64_t pattern_fn(size_t i, size_t count);

static uint64_t pattern_random(size_t i, size_t count)
{
	(void)i, (void)count;
	return random_next();
}

/* As in use: key bits above, the index below. */
static uint64_t pattern_entry(size_t i, size_t count)
{
	(void)count;
	return (random_next() & 0xffff) << 20 | i;
}

static uint64_t pattern_sorted(size_t i, size_t count)
{
	(void)count;
	return i * 3;
}

static uint64_t pattern_reversed(size_t i, size_t count)
{
	return (count - i) * 3;
}

static uint64_t pattern_equal(size_t i, size_t count)
{
	(void)i, (void)count;
	return 42;
}

static uint64_t pattern_all_max(size_t i, size_t count)
{
	(void)i, (void)count;
	return UINT64_MAX;
}

static uint64_t pattern_few(size_t i, size_t count)
{
	(void)i, (void)count;
	return random_next() % 4 * 0x5555555555555555;
}

static uint64_t pattern_bits(size_t i, size_t count)
{
	(void)i, (void)count;
	return random_next() & 1 ? UINT64_MAX : 0;
}

/* Around the sign bit, and both ends of the range. */
static uint64_t pattern_edges(size_t i, size_t count)
{
	static const uint64_t edges[] = { 0,
					  1,
					  INT64_MAX,
					  (uint64_t)INT64_MAX + 1,
					  UINT64_MAX - 1,
					  UINT64_MAX };

	(void)i, (void)count;
	return edges[random_next() % ARRAY_LEN(edges)];
}

static uint64_t pattern_organ_pipe(size_t i, size_t count)
{
	return MIN(i, count - i);
}

static uint64_t pattern_sawtooth(size_t i, size_t count)
{
	(void)count;
	return i % 17 << 32 | i;
}

/* Small entries where a median of evenly spaced samples looks. */
static uint64_t pattern_low_samples(size_t i, size_t count)
{
	size_t step5 = MAX(count / 5, 1), step15 = MAX(count / 15, 1);
	size_t step31 = MAX(count / 31, 1);

	if (i % step5 == 0 || i % step15 == 0 || i % step31 == 0)
		return i;
	return random_next() | (uint64_t)1 << 63;
}

static uint64_t pattern_one_smaller(size_t i, size_t count)
{
	return i == count / 2 ? 6 : 7;
}

static const struct {
	const char *name;
	pattern_fn *entry;
} patterns[] = {
	{ "random", pattern_random },
	{ "entry", pattern_entry },
	{ "sorted", pattern_sorted },
	{ "reversed", pattern_reversed },
	{ "equal", pattern_equal },
	{ "all max", pattern_all_max },
	{ "few", pattern_few },
	{ "bits", pattern_bits },
	{ "edges", pattern_edges },
	{ "organ pipe", pattern_organ_pipe },
	{ "sawtooth", pattern_sawtooth },
	{ "low samples", pattern_low_samples },
	{ "one smaller", pattern_one_smaller },
};

static void input_fill(size_t pattern, size_t count)
{
	for (size_t i = 0; i < count; i++)
		input[i] = patterns[pattern].entry(i, count);
	memcpy(expected, input, count * sizeof(*input));
	qsort(expected, count, sizeof(*expected), compare_entries);
}

/* The kernel takes entries of any alignment; C does not. */
static uint64_t *entries_at(uint8_t *bytes)
{
	return (uint64_t *)(void *)bytes;
}

static void check_sort_at(local_sort_fn *sort, uint8_t *bytes, size_t pattern,
			  size_t count)
{
	if (count > 0)
		memcpy(bytes, input, count * sizeof(*input));
	sort(entries_at(bytes), count);
	for (size_t i = 0; i < count; i++) {
		uint64_t entry;

		memcpy(&entry, bytes + i * sizeof(entry), sizeof(entry));
		if (entry != expected[i])
			fail_msg("%s, count %zu: entry %zu is %#llx, not %#llx "
				 "(SEED=%llu)",
				 patterns[pattern].name, count, i,
				 (unsigned long long)entry,
				 (unsigned long long)expected[i],
				 (unsigned long long)seed);
	}
}

static void check_sort(local_sort_fn *sort, size_t pattern, size_t count)
{
	check_sort_at(sort, guarded.start, pattern, count);
	check_sort_at(sort, guarded.end - count * sizeof(*input), pattern,
		      count);
}

static void check_every_count(local_sort_fn *sort)
{
	for (size_t pattern = 0; pattern < ARRAY_LEN(patterns); pattern++) {
		for (size_t count = 0; count <= COUNT_ALL_MAX; count++) {
			input_fill(pattern, count);
			check_sort(sort, pattern, count);
		}
	}
}

static void check_large_counts(local_sort_fn *sort)
{
	static const size_t counts[] = { 1000, 4095, 4097, 20011, COUNT_MAX };

	for (size_t pattern = 0; pattern < ARRAY_LEN(patterns); pattern++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			input_fill(pattern, counts[i]);
			check_sort(sort, pattern, counts[i]);
		}
	}
}

/* A network that sorts all zeros and ones sorts everything: every number of
 * rows, each row all zeros or all ones. */
static void check_zeros_and_ones(local_sort_fn *sort)
{
	for (size_t rows = 1; rows <= 16; rows++) {
		for (uint32_t bits = 0; bits < 1U << rows; bits++) {
			uint64_t *entries = entries_at(guarded.start);
			size_t ones = 0;

			for (size_t i = 0; i < rows * 8; i++) {
				entries[i] = bits >> i / 8 & 1;
				ones += entries[i];
			}
			sort(entries, rows * 8);
			for (size_t i = 0; i < rows * 8; i++)
				if (entries[i] != (i >= rows * 8 - ones))
					fail_msg("%zu rows, bits %#x", rows,
						 bits);
		}
	}
}

static void check_neighbours(local_sort_fn *sort)
{
	for (size_t count = 0; count <= COUNT_ALL_MAX; count++) {
		uint64_t *entries = entries_at(guarded.start);

		input_fill(0, count);
		memset(entries, 0xa5, (count + 32) * sizeof(*entries));
		check_sort_at(sort, guarded.start + 16 * sizeof(*entries), 0,
			      count);
		for (size_t i = 0; i < 16; i++) {
			assert_int_equal(entries[i], 0xa5a5a5a5a5a5a5a5);
			assert_int_equal(entries[count + 16 + i],
					 0xa5a5a5a5a5a5a5a5);
		}
	}
}

static void check_kernel(local_sort_fn *sort)
{
	check_every_count(sort);
	check_large_counts(sort);
	check_zeros_and_ones(sort);
	check_neighbours(sort);
}

static void local_sort_scalar__every_pattern(void **state)
{
	(void)state;
	check_kernel(local_sort_scalar);
}

static void local_sort_kernel__scalar_is_scalar(void **state)
{
	(void)state;
	assert_ptr_equal(local_sort_kernel(CPU_SCALAR), local_sort_scalar);
}

#if defined(__x86_64__)
static void local_sort_avx2__every_pattern(void **state)
{
	(void)state;
	if (cpu_level_detect() < CPU_AVX2)
		skip_because("the CPU lacks the instructions");
	check_kernel(local_sort_avx2);
}

static void local_sort_avx512__every_pattern(void **state)
{
	(void)state;
	if (cpu_level_detect() < CPU_AVX512)
		skip_because("the CPU lacks the instructions");
	check_kernel(local_sort_avx512);
}

/* Entries that straddle every boundary.  C knows no such integers, and UBSan
 * says so; vector loads do, so only counts that need nothing else are tried. */
static void local_sort_kernel__unaligned_entries(void **state)
{
	(void)state;
	for (int level = CPU_AVX2; level <= (int)cpu_level_detect(); level++) {
		for (size_t count = 0; count <= 128; count++) {
			input_fill(0, count);
			for (size_t shift = 1; shift < 8; shift += 3)
				check_sort_at(local_sort_kernel(level),
					      guarded.start + shift, 0, count);
		}
	}
}

static void local_sort_kernel__vector_levels(void **state)
{
	(void)state;
	assert_ptr_equal(local_sort_kernel(CPU_AVX2), local_sort_avx2);
	assert_ptr_equal(local_sort_kernel(CPU_AVX512), local_sort_avx512);
}
#endif

/*
 * The driver on its own, with the first entry as the pivot: sorted input splits
 * as badly as can be.
 */
#define LEAF_COUNT_MAX 2
#define SAMPLE_COUNT 1

static size_t entries_partitioned;

static void sort_leaf(uint64_t *entries, size_t count)
{
	qsort(entries, count, sizeof(*entries), compare_entries);
}

static size_t partition_below(uint64_t *entries, size_t count, uint64_t pivot)
{
	size_t below = 0;

	entries_partitioned += count;
	for (size_t i = 0; i < count; i++) {
		uint64_t entry = entries[i];

		entries[i] = entries[below];
		entries[below] = entry;
		below += entry < pivot;
	}
	return below;
}

#include "kernels/local_sort_quick.h"

static void quick_sort__bad_splits_end_in_heap_sort(void **state)
{
	(void)state;
	for (size_t count = 0; count <= 5000; count += 1 + count / 7) {
		unsigned splits = quick_sort_splits_max(count);

		for (size_t i = 0; i < count; i++)
			input[i] = i;
		entries_partitioned = 0;
		quick_sort(input, count, splits);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(input[i], i);
		/* Each split may look at all entries twice. */
		assert_true(entries_partitioned <= 2 * splits * count);
	}
}

/* A pivot that is the minimum takes all its equals out of play. */
static void quick_sort__equal_entries_take_two_passes(void **state)
{
	static const uint64_t equals[] = { 0, 42, UINT64_MAX - 1, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(equals); i++) {
		for (size_t at = 0; at < 1000; at++)
			input[at] = equals[i];
		entries_partitioned = 0;
		quick_sort(input, 1000, quick_sort_splits_max(1000));
		assert_true(entries_partitioned <= 2 * 1000);
	}
}

static void heap_sort__every_pattern(void **state)
{
	(void)state;
	for (size_t pattern = 0; pattern < ARRAY_LEN(patterns); pattern++) {
		for (size_t count = 0; count <= 300; count++) {
			input_fill(pattern, count);
			heap_sort(input, count);
			assert_memory_equal(input, expected,
					    count * sizeof(*input));
		}
	}
}

static int guarded_map(size_t bytes)
{
	size_t inside = ROUND_UP(bytes, PAGE_BYTES);
	uint8_t *map =
		mmap(NULL, inside + 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -1;
	guarded.start = map + PAGE_BYTES;
	guarded.end = guarded.start + inside;
	return mprotect(map, PAGE_BYTES, PROT_NONE) ||
	       mprotect(guarded.end, PAGE_BYTES, PROT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local_sort_kernel__scalar_is_scalar),
		cmocka_unit_test(heap_sort__every_pattern),
		cmocka_unit_test(quick_sort__equal_entries_take_two_passes),
		cmocka_unit_test(quick_sort__bad_splits_end_in_heap_sort),
		cmocka_unit_test(local_sort_scalar__every_pattern),
#if defined(__x86_64__)
		cmocka_unit_test(local_sort_kernel__vector_levels),
		cmocka_unit_test(local_sort_avx2__every_pattern),
		cmocka_unit_test(local_sort_avx512__every_pattern),
		cmocka_unit_test(local_sort_kernel__unaligned_entries),
#endif
	};

	random_begin();
	input = malloc(COUNT_MAX * sizeof(*input));
	expected = malloc(COUNT_MAX * sizeof(*expected));
	if (!input || !expected || guarded_map(COUNT_MAX * sizeof(*input)))
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
