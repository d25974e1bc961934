#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/format.h"
#include "base/parse.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL

struct number_case {
	const char *text;
	int error;
	uint64_t value;
};

static void parse_u64__forms(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "7", 0, 7 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999999999999999999", -ERANGE, 0 },
		{ "340282366920938463463374607431768211457", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1\n", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
		{ "\xd9\xa3", -EINVAL, 0 }, /* an Arabic digit */
		/* Not of this form comes before too large. */
		{ "99999999999999999999999999999999999999999x", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t value = UNTOUCHED;
		int error = parse_u64(cases[i].text, 0, UINT64_MAX, &value);

		if (error != cases[i].error ||
		    value != (error ? UNTOUCHED : cases[i].value))
			fail_msg("\"%s\": %d", cases[i].text, error);
	}
}

static void parse_u64__range(void **state)
{
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_u64("4", 5, 9, &value), -ERANGE);
	assert_int_equal(parse_u64("10", 5, 9, &value), -ERANGE);
	assert_true(value == UNTOUCHED);
	assert_int_equal(parse_u64("5", 5, 9, &value), 0);
	assert_int_equal(value, 5);
	assert_int_equal(parse_u64("9", 5, 9, &value), 0);
	assert_int_equal(value, 9);
}

static void parse_u128__edges(void **state)
{
	const unsigned __int128 max = ~(unsigned __int128)0;
	unsigned __int128 value = 42;

	(void)state;
	assert_int_equal(
		parse_u128("340282366920938463463374607431768211456", &value),
		-ERANGE);
	assert_int_equal(
		parse_u128("340282366920938463463374607431768211460", &value),
		-ERANGE);
	assert_int_equal(parse_u128("1x", &value), -EINVAL);
	assert_int_equal(parse_u128("", &value), -EINVAL);
	assert_true(value == 42);
	assert_int_equal(
		parse_u128("340282366920938463463374607431768211455", &value),
		0);
	assert_true(value == max);
	assert_int_equal(parse_u128("18446744073709551616", &value), 0);
	assert_true(value == (unsigned __int128)1 << 64);
}

static void parse_size__forms(void **state)
{
	static const struct number_case cases[] = {
		{ "0", 0, 0 },
		{ "512", 0, 512 },
		{ "1K", 0, 1 << 10 },
		{ "1k", 0, 1 << 10 },
		{ "64M", 0, 64 << 20 },
		{ "64MB", 0, 64 << 20 },
		{ "64MiB", 0, 64 << 20 },
		{ "64miB", 0, 64 << 20 },
		{ "2g", 0, 2ULL << 30 },
		{ "3T", 0, 3ULL << 40 },
		{ "16777215T", 0, 16777215ULL << 40 },
		{ "16777216T", -ERANGE, 0 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		/* 2^118 K is 2^128, which would wrap to 0 */
		{ "332306998946228968225951765070086144K", -ERANGE, 0 },
		/* 2^128 and some: the digits alone overflow */
		{ "340282366920938463463374607431768211457K", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "K", -EINVAL, 0 },
		{ "B", -EINVAL, 0 },
		{ "1B", -EINVAL, 0 },
		{ "1i", -EINVAL, 0 },
		{ "1Ki", -EINVAL, 0 },
		{ "1KBB", -EINVAL, 0 },
		{ "1KK", -EINVAL, 0 },
		{ "1P", -EINVAL, 0 },
		{ "1 K", -EINVAL, 0 },
		{ "1K ", -EINVAL, 0 },
		{ "1.5K", -EINVAL, 0 },
		{ "-1K", -EINVAL, 0 },
		{ "340282366920938463463374607431768211457X", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t value = UNTOUCHED;
		int error = parse_size(cases[i].text, 0, UINT64_MAX, &value);

		if (error != cases[i].error ||
		    value != (error ? UNTOUCHED : cases[i].value))
			fail_msg("\"%s\": %d", cases[i].text, error);
	}
}

static void parse_bits__forms(void **state)
{
	static const struct {
		const char *text;
		int error;
		uint64_t bits;
	} cases[] = {
		{ "1", 0, 1 },
		{ "10G", 0, UINT64_C(10000000000) },
		{ "25Gbit", 0, UINT64_C(25000000000) },
		{ "300Mbit", 0, 300000000 },
		{ "9kbit", 0, 9000 },
		{ "9K", 0, 9000 },
		{ "1T", 0, UINT64_C(1000000000000) },
		{ "8bit", 0, 8 },
		{ "1001G", -ERANGE, 0 },
		{ "0", -ERANGE, 0 },
		{ "99999999999999999999999999999999999999999G", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "G", -EINVAL, 0 },
		{ "bit", -EINVAL, 0 },
		{ "1.5G", -EINVAL, 0 },
		{ "1Gbits", -EINVAL, 0 },
		{ "1GB", -EINVAL, 0 },
		{ "1GG", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bits = 0;

		assert_int_equal(parse_bits(cases[i].text,
					    UINT64_C(1000000000000), &bits),
				 cases[i].error);
		assert_int_equal(bits, cases[i].bits);
	}
}

static void parse_count__forms(void **state)
{
	uint64_t count = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_count("1bit", 4000000, &count), -EINVAL);
	assert_int_equal(parse_count("5M", 4000000, &count), -ERANGE);
	assert_true(count == UNTOUCHED);
	assert_int_equal(parse_count("4M", 4000000, &count), 0);
	assert_int_equal(count, 4000000);
}

static void parse_size__range(void **state)
{
	uint64_t value = UNTOUCHED;

	(void)state;
	assert_int_equal(parse_size("1K", 1025, 4096, &value), -ERANGE);
	assert_int_equal(parse_size("5K", 1025, 4096, &value), -ERANGE);
	assert_true(value == UNTOUCHED);
	assert_int_equal(parse_size("4K", 1025, 4096, &value), 0);
	assert_int_equal(value, 4096);
}

static void parse_range__forms(void **state)
{
	static const struct {
		const char *text;
		int error;
		uint64_t first, last;
		const char *rest;
	} cases[] = {
		{ "3", 0, 3, 3, "" },
		{ "3-5", 0, 3, 5, "" },
		{ "0,7", 0, 0, 0, "7" },
		{ "0-63,x", 0, 0, 63, "x" },
		{ "63-63", 0, 63, 63, "" },
		{ "64", -ERANGE, 0, 0, "64" },
		{ "5-3", -ERANGE, 0, 0, "5-3" },
		{ "0-340282366920938463463374607431768211456", -ERANGE, 0, 0,
		  "0-340282366920938463463374607431768211456" },
		{ "", -EINVAL, 0, 0, "" },
		{ ",1", -EINVAL, 0, 0, ",1" },
		{ "1,", -EINVAL, 0, 0, "1," },
		{ "1-", -EINVAL, 0, 0, "1-" },
		{ "-1", -EINVAL, 0, 0, "-1" },
		{ "1-2-3", -EINVAL, 0, 0, "1-2-3" },
		{ "1 ", -EINVAL, 0, 0, "1 " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *text = cases[i].text;
		uint64_t first = 0, last = 0;
		int error = parse_range(&text, 63, &first, &last);

		if (error != cases[i].error || first != cases[i].first ||
		    last != cases[i].last || strcmp(text, cases[i].rest) != 0)
			fail_msg("\"%s\": %d", cases[i].text, error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_u64__forms),
		cmocka_unit_test(parse_u64__range),
		cmocka_unit_test(parse_u128__edges),
		cmocka_unit_test(parse_size__forms),
		cmocka_unit_test(parse_size__range),
		cmocka_unit_test(parse_bits__forms),
		cmocka_unit_test(parse_count__forms),
		cmocka_unit_test(parse_range__forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
