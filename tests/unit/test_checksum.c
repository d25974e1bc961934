/*
 * test_checksum.c - every kernel against the definition, a bit at a time
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "record/checksum.h"
#include "skip.h"

#define SIZE_MAX_TESTED 300
#define COUNT_MAX_TESTED 67
#define RANDOM_RECORDS 1000

static uint64_t seed;

static uint8_t random_byte(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint8_t)(seed >> 56);
}

static void fill(uint8_t *bytes, size_t len_bytes)
{
	for (size_t i = 0; i < len_bytes; i++)
		bytes[i] = random_byte();
}

/* CRC-32 as it is defined; shares nothing with the kernels. */
static uint32_t reference(const uint8_t *bytes, size_t len_bytes)
{
	uint32_t crc = 0xffffffff;

	for (size_t bit = 0; bit < 8 * len_bytes; bit++) {
		uint32_t in = bytes[bit / 8] >> bit % 8 & 1;

		crc = (crc ^ in) & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

static uint64_t reference_sum(const uint8_t *records, size_t record_size,
			      size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += reference(records + i * record_size, record_size);
	return sum;
}

/* Memory that ends at an unmapped page, so that a read past it crashes. */
static uint8_t *guarded(size_t len_bytes, uint8_t **map, size_t *map_bytes)
{
	size_t body_bytes = ROUND_UP(len_bytes + 1, PAGE_BYTES);

	*map_bytes = body_bytes + PAGE_BYTES;
	*map = mmap(NULL, *map_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(*map, MAP_FAILED);
	assert_int_equal(mprotect(*map + body_bytes, PAGE_BYTES, PROT_NONE), 0);
	return *map + body_bytes - len_bytes;
}

static void scalar__check_value(void **state)
{
	(void)state;
	/* The check value that every catalogue of CRCs gives for CRC-32. */
	assert_int_equal(checksum_scalar((const uint8_t *)"123456789", 9, 1),
			 0xcbf43926);
	assert_int_equal(reference((const uint8_t *)"123456789", 9),
			 0xcbf43926);
}

static void scalar__every_length(void **state)
{
	uint8_t *map, *bytes;
	size_t map_bytes;

	(void)state;
	for (size_t size = 0; size <= SIZE_MAX_TESTED; size++) {
		bytes = guarded(size, &map, &map_bytes);
		fill(bytes, size);
		assert_int_equal(checksum_scalar(bytes, size, 1),
				 reference(bytes, size));
		munmap(map, map_bytes);
	}
}

static void scalar__many_records_add_up(void **state)
{
	uint8_t bytes[3 * 77];

	(void)state;
	fill(bytes, sizeof(bytes));
	assert_int_equal(checksum_scalar(bytes, 77, 3),
			 reference_sum(bytes, 77, 3));
	assert_int_equal(checksum_scalar(bytes, 77, 0), 0);
}

/* Sums far above 2^32 must not lose their carries. */
static void check_all_ones_sum(checksum_fn *kernel)
{
	static uint8_t records[RANDOM_RECORDS * 100];

	memset(records, 0xff, sizeof(records));
	assert_int_equal(kernel(records, 100, RANDOM_RECORDS),
			 (uint64_t)reference(records, 100) * RANDOM_RECORDS);
}

static void check_kernel(checksum_fn *kernel)
{
	uint8_t *map, *records;
	size_t map_bytes;

	for (size_t count = 0; count <= COUNT_MAX_TESTED; count++) {
		records = guarded(count * 100, &map, &map_bytes);
		fill(records, count * 100);
		assert_int_equal(kernel(records, 100, count),
				 reference_sum(records, 100, count));
		munmap(map, map_bytes);
	}
	/* One bit at a time: each word's constant on its own, in each of the
	 * four places of a group. */
	for (size_t bit = 0; bit < 4 * 800; bit++) {
		uint8_t group[400] = { 0 };

		group[bit / 8] = (uint8_t)(1 << bit % 8);
		assert_int_equal(kernel(group, 100, 4),
				 reference_sum(group, 100, 4));
	}
	check_all_ones_sum(kernel);
}

static void scalar__records_of_100(void **state)
{
	(void)state;
	check_kernel(checksum_scalar);
}

static void pclmul__records_of_100(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (cpu_level_detect() >= CPU_AVX2) {
		check_kernel(checksum_100_pclmul);
		return;
	}
#endif
	skip_because("the CPU lacks the instructions");
}

static void vpclmul__records_of_100(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (cpu_level_detect() >= CPU_AVX512) {
		check_kernel(checksum_100_vpclmul);
		return;
	}
#endif
	skip_because("the CPU lacks the instructions");
}

static void kernel__level_and_size(void **state)
{
	(void)state;
	assert_ptr_equal(checksum_kernel(CPU_SCALAR, 100), checksum_scalar);
	assert_ptr_equal(checksum_kernel(CPU_AVX512, 99), checksum_scalar);
	assert_ptr_equal(checksum_kernel(CPU_AVX2, 101), checksum_scalar);
#if defined(__x86_64__)
	assert_ptr_equal(checksum_kernel(CPU_AVX2, 100), checksum_100_pclmul);
	assert_ptr_equal(checksum_kernel(CPU_AVX512, 100),
			 checksum_100_vpclmul);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalar__check_value),
		cmocka_unit_test(scalar__every_length),
		cmocka_unit_test(scalar__many_records_add_up),
		cmocka_unit_test(scalar__records_of_100),
		cmocka_unit_test(pclmul__records_of_100),
		cmocka_unit_test(vpclmul__records_of_100),
		cmocka_unit_test(kernel__level_and_size),
	};
	const char *given = getenv("SEED");

	seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	print_message("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
