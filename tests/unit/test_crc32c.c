/*
 * test_crc32c.c - every kernel against the definition, a bit at a time
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/crc32c.h"
#include "skip.h"

#define LENGTH_MAX 600
#define ALIGNMENTS 64
#define LONG_BYTES 65507 /* of a datagram */
#define GUARDED_BYTES ROUND_UP(LONG_BYTES + ALIGNMENTS, PAGE_BYTES)

static uint64_t seed;
static uint8_t *guarded; /* [GUARDED_BYTES], and then an unmapped page */

static uint64_t random_next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 32;
}

/* So many bytes that a read past them crashes. */
static uint8_t *random_bytes(size_t byte_count)
{
	uint8_t *bytes = guarded + GUARDED_BYTES - byte_count;

	for (size_t i = 0; i < byte_count; i++)
		bytes[i] = (uint8_t)random_next();
	return bytes;
}

/* CRC-32C as it is defined; shares nothing with the kernels. */
static uint32_t reference(uint32_t crc, const uint8_t *bytes, size_t byte_count)
{
	for (size_t bit = 0; bit < 8 * byte_count; bit++) {
		uint32_t in = bytes[bit / 8] >> bit % 8 & 1;

		crc = (crc ^ in) & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
	}
	return crc;
}

/* --- the properties of one kernel ---------------------------------------- */

static void check_known_value(crc32c_fn *crc32c)
{
	/* The check value that every catalogue of CRCs gives for CRC-32C, and
	 * from RFC 3720, B.4: 32 bytes of zeros, of ones. */
	uint8_t bytes[32] = { 0 };

	assert_int_equal(~crc32c(UINT32_MAX, "123456789", 9), 0xe3069283);
	assert_int_equal(~crc32c(UINT32_MAX, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(~crc32c(UINT32_MAX, bytes, 32), 0x62a8ab43);
}

static void check_every_length(crc32c_fn *crc32c)
{
	for (size_t length = 0; length <= LENGTH_MAX; length++) {
		const uint8_t *bytes = random_bytes(length);
		uint32_t crc = (uint32_t)random_next();

		if (crc32c(crc, bytes, length) != reference(crc, bytes, length))
			fail_msg("%zu bytes", length);
	}
}

static void check_every_alignment(crc32c_fn *crc32c)
{
	for (size_t offset = 0; offset < ALIGNMENTS; offset++) {
		const uint8_t *bytes = random_bytes(LENGTH_MAX + offset);
		size_t length = LENGTH_MAX - random_next() % ALIGNMENTS;
		uint32_t crc = (uint32_t)random_next();

		assert_int_equal(crc32c(crc, bytes, length),
				 reference(crc, bytes, length));
	}
}

/* The parts' CRC-32C is the whole's, wherever it is cut. */
static void check_every_cut(crc32c_fn *crc32c)
{
	const uint8_t *bytes = random_bytes(LENGTH_MAX);
	uint32_t whole = reference(1, bytes, LENGTH_MAX);

	for (size_t cut = 0; cut <= LENGTH_MAX; cut++) {
		uint32_t crc = crc32c(1, bytes, cut);

		if (crc32c(crc, bytes + cut, LENGTH_MAX - cut) != whole)
			fail_msg("cut at %zu", cut);
	}
}

/* Each constant on its own, in each place. */
static void check_every_bit(crc32c_fn *crc32c)
{
	for (size_t bit = 0; bit < 8 * (size_t)LENGTH_MAX; bit++) {
		uint8_t bytes[LENGTH_MAX] = { 0 };

		bytes[bit / 8] = (uint8_t)(1u << bit % 8);
		if (crc32c(0, bytes, LENGTH_MAX) !=
		    reference(0, bytes, LENGTH_MAX))
			fail_msg("bit %zu", bit);
	}
	for (unsigned bit = 0; bit < 32; bit++) {
		static const uint8_t zeros[LENGTH_MAX];
		uint32_t crc = (uint32_t)1 << bit;

		assert_int_equal(crc32c(crc, zeros, LENGTH_MAX),
				 reference(crc, zeros, LENGTH_MAX));
	}
}

static void check_long_pieces(crc32c_fn *crc32c)
{
	static const size_t lengths[] = { 1440, 8940, 65536 - 96, LONG_BYTES };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const uint8_t *bytes = random_bytes(lengths[i]);

		assert_int_equal(crc32c(7, bytes, lengths[i]),
				 reference(7, bytes, lengths[i]));
	}
}

static void check_kernel(crc32c_fn *crc32c)
{
	check_known_value(crc32c);
	check_every_length(crc32c);
	check_every_alignment(crc32c);
	check_every_cut(crc32c);
	check_every_bit(crc32c);
	check_long_pieces(crc32c);
}

/* --- the kernels --------------------------------------------------------- */

static void scalar__as_defined(void **state)
{
	(void)state;
	check_kernel(crc32c_scalar);
}

static void pclmul__as_defined(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (cpu_level_detect() >= CPU_AVX2) {
		check_kernel(crc32c_pclmul);
		return;
	}
#endif
	skip_because("the CPU lacks the instructions");
}

static void vpclmul__as_defined(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (cpu_level_detect() >= CPU_AVX512) {
		check_kernel(crc32c_vpclmul);
		return;
	}
#endif
	skip_because("the CPU lacks the instructions");
}

static void kernel__level(void **state)
{
	(void)state;
	assert_ptr_equal(crc32c_kernel(CPU_SCALAR), crc32c_scalar);
#if defined(__x86_64__)
	assert_ptr_equal(crc32c_kernel(CPU_AVX2), crc32c_pclmul);
	assert_ptr_equal(crc32c_kernel(CPU_AVX512), crc32c_vpclmul);
#endif
}

static int map_guarded(void **state)
{
	void *map =
		mmap(NULL, GUARDED_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (map == MAP_FAILED)
		return -1;
	guarded = map;
	return mprotect(guarded + GUARDED_BYTES, PAGE_BYTES, PROT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalar__as_defined),
		cmocka_unit_test(pclmul__as_defined),
		cmocka_unit_test(vpclmul__as_defined),
		cmocka_unit_test(kernel__level),
	};
	const char *given = getenv("SEED");

	seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	print_message("SEED=%llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests_name("crc32c", tests, map_guarded, NULL);
}
