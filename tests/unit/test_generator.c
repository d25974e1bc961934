/*
 * test_generator.c - known answers, a second generator written from the rules
 * alone, and the independence of every record from how it was asked for
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "record/checksum.h"
#include "record/generator.h"

typedef unsigned __int128 u128;

static const struct generator_kind kinds[] = {
	{ false, false },
	{ true, false },
	{ false, true },
	{ true, true },
};

#define POWER(bits) ((u128)1 << (bits))

/* --- the reference: one record at a time, nothing kept ----------------------
 */

static u128 reference_random(u128 n)
{
	const u128 a = (u128)0x2360ed051fc65da4 << 64 | 0x4385df649fccf645;
	const u128 c = (u128)0x4a696d4772617952 << 64 | 0x4950202020202001;
	u128 x = c;

	/* x(n + 1) = a^n c + (a^n - 1) / (a - 1) c, by binary digits of n from
	 * the top: unlike the generator, which begins at the bottom. */
	u128 factor = 1, addend = 0;

	for (int bit = 127; bit >= 0; bit--) {
		addend = factor * addend + addend;
		factor = factor * factor;
		if (n >> bit & 1) {
			addend = a * addend + c;
			factor = a * factor;
		}
	}
	x = factor * x + addend;
	return x;
}

static void reference_binary(uint8_t *record, u128 n)
{
	/* K1 to K7: the bytes with four bits set, descending. */
	uint8_t masks[100] = { 0 };
	static const uint8_t last[20] = {
		0xc8, 0xc4, 0xc2, 0xc1, 0x98, 0x94, 0x92, 0x91, 0x8c, 0xe0,
		0x17, 0x0f, 0x33, 0x2e, 0x2d, 0x2b, 0x27, 0x1e, 0x1d, 0x1b,
	};
	int at = 10;

	for (int byte = 255; byte >= 0; byte--) {
		if (__builtin_popcount((unsigned)byte) == 4)
			masks[at++] = (uint8_t)byte;
	}
	assert_int_equal(at, 80);
	memcpy(masks + 80, last, sizeof(last));
	for (int i = 0; i < 100; i++) {
		u128 random = reference_random(n + (u128)(i / 10));

		record[i] =
			(uint8_t)(random >> (120 - 8 * (i % 10))) ^ masks[i];
	}
}

static void reference_ascii(uint8_t *record, u128 n)
{
	static const char hex[] = "0123456789ABCDEF";
	u128 random = reference_random(n);
	uint64_t high = (uint64_t)(random >> 64);
	uint64_t low = (uint64_t)random;

	memset(record, ' ', 98);
	for (int i = 0; i < 8; i++, high /= 95)
		record[i] = (uint8_t)(32 + high % 95);
	record[8] = (uint8_t)(32 + low % 95);
	record[9] = (uint8_t)(32 + low / 95 % 95);
	for (int i = 0; i < 32; i++)
		record[12 + i] = (uint8_t)hex[n >> (124 - 4 * i) & 15];
	for (int i = 0; i < 52; i++)
		record[46 + i] = (uint8_t)hex[low >> (48 - 4 * (i / 4)) & 15];
	record[98] = '\r';
	record[99] = '\n';
}

static unsigned reference_skew_index(u128 n)
{
	unsigned bits = 0;

	if (n >= POWER(124))
		return 128;
	if (n >= POWER(60) && n < POWER(64))
		return 64;
	for (; n != 0; n >>= 1)
		bits++;
	return bits;
}

static void reference_skew(bool ascii, uint8_t *record, u128 n)
{
	unsigned drawn = (unsigned)((uint64_t)reference_random(n) >> 32);
	unsigned bits = ascii ? (drawn & 7) * 8 : drawn & 63;
	uint8_t other[100];

	if (bits > 48)
		bits = 0;
	if (ascii)
		reference_ascii(other, reference_skew_index(n));
	else
		reference_binary(other, reference_skew_index(n));
	for (unsigned bit = 0; bit < bits; bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		record[bit / 8] = (uint8_t)((record[bit / 8] & ~mask) |
					    (other[bit / 8] & mask));
	}
}

static void reference_record(const struct generator_kind *kind, uint8_t *record,
			     u128 n)
{
	if (kind->ascii)
		reference_ascii(record, n);
	else
		reference_binary(record, n);
	if (kind->skewed)
		reference_skew(kind->ascii, record, n);
}

/* --- known answers ----------------------------------------------------------
 */

static void check_hex(const struct generator_kind *kind, u128 n,
		      const char *hex)
{
	uint8_t record[100];
	char text[201];

	generator_fill(kind, n, record, 1);
	for (int i = 0; i < 100; i++)
		snprintf(text + 2 * i, 3, "%02x", record[i]);
	text[strlen(hex)] = '\0';
	assert_string_equal(text, hex);
}

static void fill__binary_known(void **state)
{
	(void)state;
	check_hex(&kinds[0], 0,
		  "4a696d4772617952495065080060836b392cd58b8f5e55961855e79b87f0"
		  "2283a466b6aab1f9e0cacf1e26b3292afd1064bb18b56ac07d6f656b1d2f"
		  "430d57bde7e47d81f36a6dd267948bbc2397bfe28c334e4ad82b8e701662"
		  "93cfaa0116bfda3bb1ab");
	check_hex(&kinds[0], 1000000,
		  "32c9af20bff42df02caad10b35214296ed308badc658d912b20521ea0875"
		  "b47d7760bb99b3c3de52fb257f7ba7255633286985def956746d3a50a022"
		  "1acea632be879a15ee9a20c5e3560118e4093602b4b166ccf3cd2ed6f6ef"
		  "741685271525355545a5");
	check_hex(&kinds[0], 1000000000000,
		  "2175d298a8b50fa9b6a50109d43bcb2b40ffbd99d7b4b8abe1ef0e480322"
		  "e60ca26aeea6f5322e92ea503192bfa9e3b04e531fa10f01d01a9091f310"
		  "9edccafce25289ab248b5ab480fdd4820a8c64460c15900f577c5f1d1f44"
		  "cbe06792a0e5dd540591");
	check_hex(&kinds[2], 1000000, "68d0cf20bff42df02caad10b3521");
	check_hex(&kinds[2], 1000000000000, "1e58396c59b50fa9b6a50109d43b");
}

static void check_text(const struct generator_kind *kind, u128 n,
		       const char *text)
{
	uint8_t record[100];

	generator_fill(kind, n, record, 1);
	assert_memory_equal(record, text, strlen(text));
}

static void fill__ascii_known(void **state)
{
	(void)state;
	check_text(&kinds[1], 0,
		   "AsfAGHM5om  00000000000000000000000000000000  "
		   "0000222200002222000022220000222200002222000000001111\r\n");
	check_text(&kinds[1], 1000000,
		   "}#GV9O0\\FG  000000000000000000000000000F4240  "
		   "AAAA3333000099994444BBBB11111111999944444444CCCC1111\r\n");
	check_text(&kinds[1], 1000000000000,
		   "4FlMX*kH0!  0000000000000000000000E8D4A51000  "
		   "5555000022222222888833334444BBBBAAAADDDD000000001111\r\n");
	check_text(&kinds[3], 1000000, "}[v>9O0\\FG  0000");
	check_text(&kinds[3], 1000000000000, "4FlMX*kH0!  0000");
}

static void fill__checksums_known(void **state)
{
	static const uint64_t sums[][5] = {
		{ 1, 0x9ea593a0, 0x3fcaea0a, 0x9ea593a0, 0x3fcaea0a },
		{ 10, 0x55fea8a1a, 0x469302dca, 0x5d95519b3, 0x46073c01c },
		{ 1000, 0x1ea6370b955, 0x1f5dfb3631a, 0x1e96301166b,
		  0x1eef17d1cac },
		{ 100000, 0xc3068574c6ff, 0xc34e19c81885, 0xc3480c053dda,
		  0xc30e6c1fe3e5 },
	};
	uint8_t *records = malloc(100000 * 100);

	(void)state;
	assert_non_null(records);
	for (unsigned row = 0; row < ARRAY_LEN(sums); row++) {
		for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
			generator_fill(&kinds[k], 0, records, sums[row][0]);
			assert_int_equal(
				checksum_scalar(records, 100, sums[row][0]),
				sums[row][k + 1]);
		}
	}
	free(records);
}

/* --- against the reference --------------------------------------------------
 */

static void check_range(const struct generator_kind *kind, u128 first,
			size_t count)
{
	uint8_t *records = malloc(count * 100 + 1);
	uint8_t expected[100];

	assert_non_null(records);
	records[count * 100] = 0x5a;
	generator_fill(kind, first, records, count);
	for (size_t i = 0; i < count; i++) {
		reference_record(kind, expected, first + i);
		assert_memory_equal(records + i * 100, expected, 100);
	}
	assert_int_equal(records[count * 100], 0x5a);
	free(records);
}

/* Where numbers carry, skew changes its prefix, or all wraps around. */
static void fill__at_the_borders(void **state)
{
	(void)state;
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		check_range(&kinds[k], 0, 70);
		check_range(&kinds[k], 0xfff0, 40);
		check_range(&kinds[k], 0xfffffff0, 40);
		for (unsigned bits = 57; bits < 70; bits++)
			check_range(&kinds[k], POWER(bits) - 20, 40);
		for (unsigned bits = 122; bits < 128; bits++)
			check_range(&kinds[k], POWER(bits) - 20, 40);
		check_range(&kinds[k], -(u128)3, 20);
		check_range(&kinds[k], -(u128)20, 40);
	}
}

static void fill__any_count(void **state)
{
	uint8_t whole[600 * 100], part[600 * 100];

	(void)state;
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		generator_fill(&kinds[k], 12345, whole, 600);
		for (size_t count = 0; count <= 600; count += 1) {
			memset(part, 0xee, sizeof(part));
			generator_fill(&kinds[k], 12345, part, count);
			assert_memory_equal(part, whole, count * 100);
			if (count < 600)
				assert_int_equal(part[count * 100], 0xee);
		}
	}
}

static void fill__parts_are_the_whole(void **state)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10)
			      : (unsigned)time(NULL);
	enum { COUNT = 3000 };
	uint8_t *whole = malloc(COUNT * 100), *parts = malloc(COUNT * 100);
	u128 first;

	(void)state;
	print_message("SEED=%u\n", seed);
	srandom(seed);
	first = (u128)random() << 97 | (u128)random() << 60 | (u128)random();
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		generator_fill(&kinds[k], first, whole, COUNT);
		for (size_t done = 0, now; done < COUNT; done += now) {
			now = (size_t)random() % 700 + 1;
			now = MIN(now, COUNT - done);
			generator_fill(&kinds[k], first + done,
				       parts + done * 100, now);
		}
		assert_memory_equal(parts, whole, COUNT * 100);
	}
	free(whole);
	free(parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fill__binary_known),
		cmocka_unit_test(fill__ascii_known),
		cmocka_unit_test(fill__checksums_known),
		cmocka_unit_test(fill__at_the_borders),
		cmocka_unit_test(fill__any_count),
		cmocka_unit_test(fill__parts_are_the_whole),
	};

	return cmocka_run_group_tests_name("generator", tests, NULL, NULL);
}
