#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/format.h"

struct text_case {
	uint64_t value;
	const char *text;
};

static void format_u128__edges(void **state)
{
	char buffer[FORMAT_U128_BYTES];

	(void)state;
	assert_string_equal(format_u128(buffer, 0), "0");
	assert_string_equal(format_u128(buffer, 10), "10");
	assert_string_equal(format_u128(buffer, (unsigned __int128)1 << 64),
			    "18446744073709551616");
	assert_string_equal(format_u128(buffer, ~(unsigned __int128)0),
			    "340282366920938463463374607431768211455");
}

static void format_u128_hex__edges(void **state)
{
	char buffer[FORMAT_U128_BYTES];

	(void)state;
	assert_string_equal(format_u128_hex(buffer, 0), "0");
	assert_string_equal(format_u128_hex(buffer, 0xabc), "abc");
	assert_string_equal(format_u128_hex(buffer, (unsigned __int128)1 << 64),
			    "10000000000000000");
	assert_string_equal(format_u128_hex(buffer, ~(unsigned __int128)0),
			    "ffffffffffffffffffffffffffffffff");
}

static void format_hex__bytes(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x0f, 0xa0, 0xff };
	char buffer[] = "? ? ? ? ?";

	(void)state;
	assert_string_equal(format_hex(buffer, bytes, sizeof(bytes)),
			    "000fa0ff");
	assert_string_equal(format_hex(buffer, bytes, 0), "");
}

static void format_size__edges(void **state)
{
	static const struct text_case cases[] = {
		{ 0, "0 B" },
		{ 812, "812 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 100000000, "95.4 MiB" },
		/* One byte to either side of where the tenth turns over. */
		{ 1048524, "1023.9 KiB" },
		{ 1048525, "1.0 MiB" },
		{ 1 << 20, "1.0 MiB" },
		{ 1ULL << 40, "1.0 TiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};
	char buffer[FORMAT_SIZE_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(format_size(buffer, cases[i].value),
				    cases[i].text);
}

/* The larger one of two sizes in one message goes up. */
static void format_size__up_and_down(void **state)
{
	char buffer[FORMAT_SIZE_BYTES];

	(void)state;
	assert_string_equal(format_size_up(buffer, 4 * MIB), "4.0 MiB");
	assert_string_equal(format_size_down(buffer, 4 * MIB), "4.0 MiB");
	assert_string_equal(format_size_up(buffer, 4 * MIB + 1), "4.1 MiB");
	assert_string_equal(format_size_down(buffer, 4 * MIB - 1), "3.9 MiB");
	assert_string_equal(format_size_up(buffer, MIB - 1), "1.0 MiB");
	assert_string_equal(format_size_down(buffer, MIB - 1), "1023.9 KiB");
	assert_string_equal(format_size_up(buffer, UINT64_MAX), "16.0 EiB");
	assert_string_equal(format_size_down(buffer, 1023), "1023 B");
}

static void format_duration__edges(void **state)
{
	static const struct text_case cases[] = {
		{ 0, "0 ns" },
		{ 812, "812 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 us" },
		{ 9994, "9.99 us" },
		{ 9995, "10.0 us" },
		{ 45100, "45.1 us" },
		{ 99949, "99.9 us" },
		{ 99950, "100 us" },
		{ 999499, "999 us" },
		{ 999500, "1.00 ms" },
		{ 28300000, "28.3 ms" },
		{ 1020000000, "1.02 s" },
		{ 999999999, "1.00 s" },
		{ 3600000000000, "3600 s" },
		{ UINT64_MAX, "18446744074 s" },
	};
	char buffer[FORMAT_DURATION_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(format_duration(buffer, cases[i].value),
				    cases[i].text);
}

static void assert_json(const char *text, const char *want)
{
	char *got = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&got, &length);

	assert_non_null(stream);
	format_json_string(stream, text);
	assert_int_equal(fclose(stream), 0);
	assert_string_equal(got, want);
	free(got);
}

static void format_json_string__escapes(void **state)
{
	(void)state;
	assert_json("", "\"\"");
	assert_json("plain /", "\"plain /\"");
	assert_json("\"\\", "\"\\\"\\\\\"");
	assert_json("\n\x01\x1f\x7f", "\"\\n\\u0001\\u001f\x7f\"");
}

static void assert_shortened(size_t room, const char *text, const char *want)
{
	char got[32];

	assert_ptr_equal(format_shortened(got, room, text, strlen(text)), got);
	assert_string_equal(got, want);
}

static void format_shortened__edges(void **state)
{
	(void)state;
	assert_shortened(16, "", "");
	assert_shortened(16, "0123456789abcde", "0123456789abcde");
	assert_shortened(16, "0123456789abcdef", "012345...abcdef");
	assert_shortened(17, "0123456789abcdefg", "012345...bcdefg");
}

/* No character is cut, and bytes that are none take no more than three. */
static void format_shortened__utf8(void **state)
{
	(void)state;
	assert_shortened(16, "01234\xc3\xa4-----\xc3\xa4vwxyz",
			 "01234...vwxyz");
	assert_shortened(16, "012\xf0\x9f\x98\x80--\xf0\x9f\x98\x80xyz",
			 "012...xyz");
	assert_shortened(16,
			 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
			 "\x80\x80\x80\x80\x80",
			 "\x80\x80\x80...\x80\x80\x80");
}

static void format_json_bytes__nul(void **state)
{
	char got[32];
	FILE *stream = fmemopen(got, sizeof(got), "w");

	(void)state;
	assert_non_null(stream);
	format_json_bytes(stream, "a\0\xe2", 3);
	fclose(stream);
	assert_string_equal(got, "\"a\\u0000\\ufffd\"");
}

static void format_json_string__utf8(void **state)
{
	(void)state;
	assert_json("\xc3\xa4\xf0\x9f\x98\x80", "\"\xc3\xa4\xf0\x9f\x98\x80\"");
	/* Each byte that begins nothing is one U+FFFD. */
	assert_json("a\xff\xc3", "\"a\\ufffd\\ufffd\"");
	assert_json("\xe2\x82x", "\"\\ufffd\\ufffdx\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(format_u128__edges),
		cmocka_unit_test(format_u128_hex__edges),
		cmocka_unit_test(format_hex__bytes),
		cmocka_unit_test(format_size__edges),
		cmocka_unit_test(format_size__up_and_down),
		cmocka_unit_test(format_duration__edges),
		cmocka_unit_test(format_json_string__escapes),
		cmocka_unit_test(format_shortened__edges),
		cmocka_unit_test(format_shortened__utf8),
		cmocka_unit_test(format_json_bytes__nul),
		cmocka_unit_test(format_json_string__utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
