/*
 * test_gather.c - every kernel this CPU has, between pages that may not be
 * touched
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/gather.h"
#include "random.h"
#include "skip.h"

#define SIZE_MAX_TESTED 300
#define COUNT_MAX_TESTED 700
#define RECORDS_MAX 500
#define INDEX_BITS 9
#define INDEX_MASK (((uint64_t)1 << INDEX_BITS) - 1)

struct guarded {
	uint8_t *start; /* right behind a page that may not be touched */
	uint8_t *end;	/* right before another */
};

static struct guarded source, target, names;

static int guarded_map(struct guarded *guarded, size_t bytes)
{
	size_t inside = ROUND_UP(bytes, PAGE_BYTES);
	uint8_t *map =
		mmap(NULL, inside + 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return -1;
	guarded->start = map + PAGE_BYTES;
	guarded->end = guarded->start + inside;
	return mprotect(map, PAGE_BYTES, PROT_NONE) ||
	       mprotect(guarded->end, PAGE_BYTES, PROT_NONE);
}

/* They end where nothing may be read. */
static uint64_t *entries_of(size_t count)
{
	return (uint64_t *)(void *)names.end - count;
}

/* Key bits above the index, as in use. */
static void fill_entries(size_t count, size_t record_count)
{
	uint64_t *entries = entries_of(count);

	for (size_t i = 0; i < count; i++)
		entries[i] = random_next() << INDEX_BITS |
			     random_next() % record_count;
}

static void check_at(gather_fn *gather, uint8_t *to, const uint8_t *records,
		     size_t record_size, size_t count)
{
	const uint64_t *entries = entries_of(count);

	gather(to, records, record_size, entries, count, INDEX_MASK);
	for (size_t i = 0; i < count; i++) {
		size_t index = entries[i] & INDEX_MASK;

		if (memcmp(to + i * record_size, records + index * record_size,
			   record_size) != 0)
			fail_msg("size %zu, count %zu: record %zu is not "
				 "number %zu (SEED=%llu)",
				 record_size, count, i, index,
				 (unsigned long long)seed);
	}
}

/* Both ends of source and target; what lies beside the target stays. */
static void check_gather(gather_fn *gather, size_t record_size, size_t count,
			 size_t record_count)
{
	size_t target_bytes = count * record_size;
	uint8_t *late_target = target.end - target_bytes;
	uint8_t *late_records = source.end - record_count * record_size;

	memset(target.start, 0xa5, (size_t)(target.end - target.start));
	check_at(gather, target.start, source.start, record_size, count);
	for (size_t i = 0; i < 128; i++)
		assert_int_equal(target.start[target_bytes + i], 0xa5);
	memset(target.start, 0x5a, (size_t)(target.end - target.start));
	check_at(gather, late_target, late_records, record_size, count);
	for (size_t i = 1; i <= 128; i++)
		assert_int_equal(*(late_target - i), 0x5a);
}

static void check_100(gather_fn *gather)
{
	uint64_t *entries = entries_of(COUNT_MAX_TESTED);

	for (size_t count = 0; count <= COUNT_MAX_TESTED; count++) {
		size_t record_count = 1 + random_next() % RECORDS_MAX;

		fill_entries(count, record_count);
		check_gather(gather, 100, count, record_count);
	}
	/* The first record and the last, again and again. */
	for (size_t i = 0; i < COUNT_MAX_TESTED; i++)
		entries[i] = i % 3 ? RECORDS_MAX - 1 : 0;
	check_gather(gather, 100, COUNT_MAX_TESTED, RECORDS_MAX);
}

static void gather_scalar__record_sizes(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 7, 8, 9, 96, 97, 300 };

	(void)state;
	for (size_t size = 1; size <= SIZE_MAX_TESTED; size++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			fill_entries(counts[i], RECORDS_MAX);
			check_gather(gather_scalar, size, counts[i],
				     RECORDS_MAX);
		}
	}
}

static void gather_scalar__100_bytes(void **state)
{
	(void)state;
	check_100(gather_scalar);
}

/* All 64 bits may be the index. */
static void gather_scalar__full_mask(void **state)
{
	uint64_t index = 3;

	(void)state;
	gather_scalar(target.start, source.start, 100, &index, 1, UINT64_MAX);
	assert_memory_equal(target.start, source.start + 300, 100);
}

/* Any part of the whole, of which it writes no byte more. */
static void check_part(gather_fn *gather, uint32_t size, size_t count)
{
	uint64_t total = count * size, begin = random_next() % total;
	uint64_t length = random_next() % (total - begin + 1);
	uint8_t *part = target.end - length;

	memset(target.start, 0x5a, (size_t)(target.end - target.start));
	gather_bytes(gather, part, length, source.start, size,
		     entries_of(count) + begin / size, (uint32_t)(begin % size),
		     INDEX_MASK);
	for (uint64_t i = 0; i < length; i++) {
		uint64_t from = begin + i;
		uint64_t index = entries_of(count)[from / size] & INDEX_MASK;

		assert_int_equal(part[i],
				 source.start[index * size + from % size]);
	}
	for (size_t i = 1; i <= 128; i++)
		assert_int_equal(*(part - i), 0x5a);
}

static void gather_bytes__any_part(void **state)
{
	static const uint32_t sizes[] = { 1, 3, 16, 100, 299 };

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		uint32_t size = sizes[round % ARRAY_LEN(sizes)];
		size_t count = 1 + random_next() % 40;

		fill_entries(count, RECORDS_MAX);
		check_part(gather_kernel(cpu_level_detect(), size), size,
			   count);
	}
}

static void gather_kernel__other_sizes_are_scalar(void **state)
{
	(void)state;
	for (size_t size = 1; size <= SIZE_MAX_TESTED; size++)
		for (int level = 0; level < CPU_LEVELS; level++)
			if (size != 100 || level == CPU_SCALAR)
				assert_ptr_equal(gather_kernel(level, size),
						 gather_scalar);
}

#if defined(__x86_64__)
static void gather_kernel__levels_of_100_bytes(void **state)
{
	(void)state;
	assert_ptr_equal(gather_kernel(CPU_AVX2, 100), gather_100_avx2);
	assert_ptr_equal(gather_kernel(CPU_AVX512, 100), gather_100_avx512);
}

static void gather_100_avx2__every_count(void **state)
{
	(void)state;
	if (cpu_level_detect() < CPU_AVX2)
		skip_because("the CPU lacks the instructions");
	check_100(gather_100_avx2);
}

static void gather_100_avx512__every_count(void **state)
{
	(void)state;
	if (cpu_level_detect() < CPU_AVX512)
		skip_because("the CPU lacks the instructions");
	check_100(gather_100_avx512);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gather_kernel__other_sizes_are_scalar),
		cmocka_unit_test(gather_scalar__record_sizes),
		cmocka_unit_test(gather_scalar__100_bytes),
		cmocka_unit_test(gather_scalar__full_mask),
		cmocka_unit_test(gather_bytes__any_part),
#if defined(__x86_64__)
		cmocka_unit_test(gather_kernel__levels_of_100_bytes),
		cmocka_unit_test(gather_100_avx2__every_count),
		cmocka_unit_test(gather_100_avx512__every_count),
#endif
	};

	random_begin();
	if (guarded_map(&names, COUNT_MAX_TESTED * sizeof(uint64_t)) ||
	    guarded_map(&source, RECORDS_MAX * SIZE_MAX_TESTED) ||
	    guarded_map(&target, COUNT_MAX_TESTED * SIZE_MAX_TESTED))
		return EXIT_FAILURE;
	for (uint8_t *byte = source.start; byte < source.end; byte++)
		*byte = (uint8_t)random_next();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
