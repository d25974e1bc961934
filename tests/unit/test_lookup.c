/*
 * test_lookup.c - every kernel against what the splitters say of each key
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/lookup.h"
#include "random.h"

#define ROUNDS 20000

/* Printable, or nearly, or anything; often at an end of the range. */
static uint64_t random_key_prefix(unsigned kind)
{
	static const uint8_t ends[] = { ' ',  '!', '}', '~',  0x1f,
					0x7f, 0,   1,	0x80, 0xff };
	uint64_t prefix = 0;

	if (kind == 0)
		return random_next();
	for (unsigned i = 0; i < 8; i++) {
		uint64_t random = random_next();
		uint8_t byte = (uint8_t)(' ' + random % 95);

		if (random >> 32 & 1)
			byte = ends[(random >> 40) % (kind == 1 ? 4 : 10)];
		prefix = prefix << 8 | byte;
	}
	return prefix;
}

static void check(enum cpu_level level, const struct splitters *splitters,
		  unsigned index_bits)
{
	_Alignas(CACHE_LINE_BYTES) uint64_t prefixes[LOOKUP_KEYS];
	_Alignas(CACHE_LINE_BYTES) uint64_t entries[LOOKUP_KEYS];
	_Alignas(CACHE_LINE_BYTES) uint32_t buckets[LOOKUP_KEYS];
	uint64_t slots = ((uint64_t)1 << index_bits) - LOOKUP_KEYS;
	uint64_t slot = random_next() % (slots + 1);
	unsigned kind = (unsigned)(random_next() % 3);

	for (unsigned i = 0; i < LOOKUP_KEYS; i++)
		prefixes[i] = random_key_prefix(kind);
	/* A single one that is out of range, anywhere. */
	if (kind == 1)
		prefixes[random_next() % LOOKUP_KEYS] = random_key_prefix(2);
	lookup_kernel(level, splitters)(splitters, index_bits, slot, prefixes,
					entries, buckets);
	for (unsigned i = 0; i < LOOKUP_KEYS; i++) {
		uint32_t bucket =
			splitters->kind == SPLITTERS_STATIC_95
				? splitters_bucket_95(splitters, prefixes[i])
				: splitters_bucket_256(splitters, prefixes[i]);
		uint64_t entry =
			(prefixes[i] >> index_bits << index_bits) | (slot + i);

		if (buckets[i] != bucket || entries[i] != entry)
			fail_msg("%s, %s, %u buckets: %016llx is %u, %016llx; "
				 "not %u, %016llx (SEED=%llu)",
				 splitters_kind_names[splitters->kind],
				 cpu_level_names[level],
				 splitters->bucket_count,
				 (unsigned long long)prefixes[i], buckets[i],
				 (unsigned long long)entries[i], bucket,
				 (unsigned long long)entry,
				 (unsigned long long)seed);
		assert_true(buckets[i] < splitters->bucket_count);
	}
}

static void check_kind(enum splitters_kind kind)
{
	/* 318166 is the last whose ascii_factor has 32 bits. */
	static const uint32_t counts[] = { 1,	  2,	  37,	  9615,
					   16384, 318166, 318167, 5000000 };
	static const unsigned bits[] = { 5, 16, 20, 32, 40, 63 };
	static struct splitters splitters;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t random = random_next();

		splitters_init_static(&splitters, kind,
				      counts[random % ARRAY_LEN(counts)]);
		for (int level = 0; level <= (int)cpu_level_detect(); level++)
			check((enum cpu_level)level, &splitters,
			      bits[(random >> 32) % ARRAY_LEN(bits)]);
	}
}

static void lookup_256__as_the_splitters_say(void **state)
{
	(void)state;
	check_kind(SPLITTERS_STATIC_256);
}

static void lookup_95__as_the_splitters_say(void **state)
{
	(void)state;
	check_kind(SPLITTERS_STATIC_95);
}

/* The test means something only if what it asks for is what runs. */
static void lookup_kernel__is_of_its_level(void **state)
{
	static struct splitters splitters;

	(void)state;
	splitters_init_static(&splitters, SPLITTERS_STATIC_95, 318166);
	assert_true(splitters.ascii_factor <= UINT32_MAX);
	assert_ptr_equal(lookup_kernel(CPU_SCALAR, &splitters),
			 lookup_95_scalar);
#if defined(__x86_64__)
	assert_ptr_equal(lookup_kernel(CPU_AVX2, &splitters), lookup_95_avx2);
	assert_ptr_equal(lookup_kernel(CPU_AVX512, &splitters),
			 lookup_95_avx512);
#endif
	splitters_init_static(&splitters, SPLITTERS_STATIC_95, 318167);
	assert_true(splitters.ascii_factor > UINT32_MAX);
	assert_ptr_equal(lookup_kernel(CPU_AVX512, &splitters),
			 lookup_95_scalar);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookup_256__as_the_splitters_say),
		cmocka_unit_test(lookup_95__as_the_splitters_say),
		cmocka_unit_test(lookup_kernel__is_of_its_level),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
