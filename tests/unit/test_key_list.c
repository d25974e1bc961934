/*
 * test_key_list.c - encoded keys against comparisons of the numbers themselves
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "field_order.h"
#include "guarded_page.h"
#include "random.h"
#include "record/key_list.h"
#include "record/key_text.h"

#define SIZE_MAX_TESTED 40
#define TEXTS_MAX 8

static bool is_prepared(const struct key_word *word)
{
	return word->part_count > 0 || word->folded_count > 0;
}

static uint64_t read_prepared(const struct key_word *word,
			      const uint8_t *record)
{
	return word->folded_count > 0 ? key_word_read_folded(word, record)
				      : key_word_read(word, record);
}

static struct key_field field_of(const char *text)
{
	struct key_field field;
	const char *why = key_text_parse(text, &field);

	if (why)
		fail_msg("%s: %s", text, why);
	return field;
}

/* texts ends with NULL. */
static struct key_list list_of(const char *const *texts, uint32_t record_size)
{
	struct key_list keys = { 0 };

	while (*texts)
		keys.fields[keys.field_count++] = field_of(*texts++);
	key_list_complete(&keys, record_size);
	return keys;
}

/* --- the tests --------------------------------------------------------------
 */

static const char *const types[] = {
	"u8",	  "u16",   "u32",    "u64",    "u128",	"i8",	 "i16",
	"i32",	  "i64",   "i128",   "f16",    "bf16",	"f32",	 "f64",
	"u16be",  "u32be", "u64be",  "u128be", "i16be", "i32be", "i64be",
	"i128be", "f16be", "bf16be", "f32be",  "f64be",
};

static const char *random_nans(void)
{
	static const char *const nans[] = { "", ":nanlast", ":nanfirst" };

	return nans[random_next() % ARRAY_LEN(nans)];
}

/* A field of any type at any place, as text, where it fits. */
static struct key_field random_field(uint32_t size)
{
	char text[2 * KEY_TEXT_BYTES], formatted[KEY_TEXT_BYTES];
	const char *end = random_next() % 3 ? "" : ":desc";
	struct key_field field;

	do {
		uint32_t offset = (uint32_t)(random_next() % size);
		const char *type = types[random_next() % ARRAY_LEN(types)];

		if (random_next() % 4 == 0)
			snprintf(text, sizeof(text), "%u:%u%s", offset,
				 1 + (uint32_t)(random_next() % 20), end);
		else
			snprintf(text, sizeof(text), "%u:%s%s%s", offset, type,
				 end, strchr(type, 'f') ? random_nans() : "");
		field = field_of(text);
	} while (key_field_end(&field) > size);
	assert_string_equal(key_text_format(&field, formatted), text);
	assert_true(key_field_is_good(&field));
	return field;
}

static void fill(uint8_t *record, uint32_t size)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0x7c, 0x7f,
					 0x80, 0xf0, 0xff };
	bool any = random_next() % 2;

	for (uint32_t i = 0; i < size; i++)
		record[i] = any ? (uint8_t)random_next()
				: bytes[random_next() % ARRAY_LEN(bytes)];
}

static void check_words(const struct key_list *keys, const uint8_t *record,
			uint32_t size)
{
	uint8_t encoded[KEY_FIELDS_MAX * SIZE_MAX_TESTED + 8] = { 0 };

	key_list_encode(keys, record, encoded);
	memset(encoded + keys->length, 0, 8);
	for (uint32_t skip = 0; skip <= keys->length; skip++) {
		uint64_t want = load_be64(encoded + skip);
		struct key_word word;

		assert_true(key_list_word(keys, record, skip) == want);
		if (skip == keys->length)
			break;
		key_word_prepare(&word, keys, size, skip);
		assert_true(is_prepared(&word) || size < 8);
		if (is_prepared(&word))
			assert_true(read_prepared(&word, record) == want);
	}
}

/* Records at the two ends of what may be read. */
static void key_list__orders_as_its_fields(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint32_t size = 1 + (uint32_t)(random_next() % SIZE_MAX_TESTED);
		uint8_t *a = first_byte, *b = end_byte - size;
		uint8_t x[KEY_FIELDS_MAX * SIZE_MAX_TESTED];
		uint8_t y[KEY_FIELDS_MAX * SIZE_MAX_TESTED];
		struct key_list keys = { 0 }, complete;
		int want = 0, found;

		keys.field_count = 1 + (unsigned)(random_next() % 3);
		if (random_next() % 16 == 0)
			keys.field_count = KEY_FIELDS_MAX;
		for (unsigned k = 0; k < keys.field_count; k++)
			keys.fields[k] = random_field(size);
		fill(a, size);
		fill(b, size);
		if (random_next() % 2)
			memcpy(b, a, random_next() % (size + 1));
		for (unsigned k = 0; k < keys.field_count && want == 0; k++)
			want = field_compare(&keys.fields[k], a, b);
		complete = keys;
		key_list_complete(&complete, size);
		check_words(&complete, a, size);
		check_words(&complete, b, size);
		key_list_encode(&complete, a, x);
		key_list_encode(&complete, b, y);
		found = memcmp(x, y, complete.length);
		if ((found > 0) - (found < 0) != (want > 0) - (want < 0))
			fail_msg("round %d: %d, not %d (SEED=%llu)", i, found,
				 want, (unsigned long long)seed);
	}
}

/* --- floats -----------------------------------------------------------------
 */

/* Calls check for each kind of field that a float of this length can be. */
static void each_float(uint32_t length,
		       void (*check)(const struct key_field *field))
{
	for (unsigned i = 0; i < 24; i++) {
		struct key_field field = {
			.length = length,
			.type = KEY_FLOAT,
			.is_big_endian = i & 1,
			.is_descending = i & 2,
			.is_bfloat = i & 4,
			.nans = (enum key_nans)(i / 8),
		};

		if (key_field_is_good(&field))
			check(&field);
	}
}

static uint64_t encoded_float(const struct key_field *field, uint64_t bits,
			      uint8_t record[8])
{
	struct key_list keys = { .field_count = 1, .fields = { *field } };
	uint32_t length = field->length;
	uint64_t word;

	for (uint32_t i = 0; i < length; i++)
		record[field->is_big_endian ? length - 1 - i : i] =
			(uint8_t)(bits >> 8 * i);
	key_list_complete(&keys, 8);
	word = key_list_word(&keys, record, 0);
	assert_true(read_prepared(&keys.head, record) == word);
	assert_true((word & ~(UINT64_MAX << (64 - 8 * length))) == 0);
	return word;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* In the order of the encoded keys, each of all numbers is right beside the one
 * before it. */
static void check_all_of_16_bits(const struct key_field *field)
{
	static uint64_t sorted[65536];
	uint8_t record[8] = { 0 }, before[8];

	for (uint64_t bits = 0; bits < 65536; bits++)
		sorted[bits] = encoded_float(field, bits, record) | bits;
	qsort(sorted, 65536, sizeof(sorted[0]), by_number);
	for (size_t i = 0; i < 65536; i++) {
		bool same = i > 0 && sorted[i] >> 48 == sorted[i - 1] >> 48;
		int order;

		encoded_float(field, sorted[i] & 65535, record);
		order = i > 0 ? field_compare(field, before, record) : -1;
		if (same ? order != 0 : order >= 0)
			fail_msg("%llx, bfloat %d, nans %d: not behind %llx",
				 (unsigned long long)sorted[i],
				 field->is_bfloat, field->nans,
				 (unsigned long long)sorted[i - 1]);
		memcpy(before, record, sizeof(before));
	}
}

/* Numbers around which the order has its corners, of both signs. */
static void check_corners(const struct key_field *field)
{
	unsigned fraction = field->length == 8 ? 52 : 23;
	uint64_t sign = (uint64_t)1 << (8 * field->length - 1);
	uint64_t one = (uint64_t)1 << fraction, infinity = sign - one;
	const uint64_t corners[] = {
		0,
		1,
		one - 1,
		one,
		one + 1,
		sign / 2,
		infinity - one,
		infinity - 1,
		infinity,
		infinity + 1,
		infinity + one / 2 - 1,
		infinity + one / 2,
		sign - 1,
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(corners); i++) {
		for (size_t k = 0; k < 2 * ARRAY_LEN(corners); k++) {
			uint8_t a[8] = { 0 }, b[8] = { 0 };
			uint64_t x = encoded_float(
				field, corners[i / 2] | (i & 1) * sign, a);
			uint64_t y = encoded_float(
				field, corners[k / 2] | (k & 1) * sign, b);
			int order = field_compare(field, a, b);

			assert_int_equal((order > 0) - (order < 0),
					 (x > y) - (x < y));
		}
	}
}

static void key_list__all_floats_of_16_bits(void **state)
{
	(void)state;
	each_float(2, check_all_of_16_bits);
}

static void key_list__corners_of_floats(void **state)
{
	(void)state;
	each_float(4, check_corners);
	each_float(8, check_corners);
}

/* NaNs stay where they are when the order is reversed. */
static void key_list__reverse_keeps_nans(void **state)
{
	const char *const texts[] = { "0:f16:nanlast", NULL };
	const char *const descending[] = { "0:f16:desc:nanlast", NULL };
	struct key_list keys = list_of(texts, 8);
	struct key_list want = list_of(descending, 8);

	(void)state;
	key_list_reverse(&keys);
	key_list_complete(&keys, 8);
	assert_true(key_list_equal(&keys, &want));
}

static void key_list__floats_ascend(void **state)
{
	const double numbers[] = {
		-INFINITY,    -DBL_MAX,	     -1.5, -1,
		-DBL_MIN,     -DBL_TRUE_MIN, -0.0, 0.0,
		DBL_TRUE_MIN, DBL_MIN,	     1,	   1.5,
		DBL_MAX,      INFINITY,
	};
	const char *const texts[] = { "0:f64", NULL };
	struct key_list keys = list_of(texts, 8);
	uint8_t record[8];
	uint64_t before = 0;

	(void)state;
	/* A negative NaN is the least of all, a positive one the greatest. */
	store_le64(record, 0xfff8000000000001);
	assert_true(key_list_word(&keys, record, 0) <
		    ~(uint64_t)0xfff0000000000000);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		memcpy(record, &numbers[i], 8);
		assert_true(key_list_word(&keys, record, 0) > before);
		before = key_list_word(&keys, record, 0);
	}
	store_le64(record, 0x7ff8000000000001);
	assert_true(key_list_word(&keys, record, 0) > before);
}

/* Lists that order alike are the same list. */
static void key_list__same_order_same_list(void **state)
{
	static const struct {
		const char *a[TEXTS_MAX], *b[TEXTS_MAX];
		bool same;
	} cases[] = {
		{ { "0:4", "4:4" }, { "0:8" }, true },
		{ { "0:u32be", "4:4" }, { "0:u64be" }, true },
		{ { "0:1", "1:1", "2:1" }, { "0:u8", "1:u16be" }, true },
		{ { "3:u8:desc" }, { "3:1:desc" }, true },
		{ { "0:4:desc", "4:4:desc" }, { "0:8:desc" }, true },
		{ { "0:4:desc", "4:4" }, { "0:8" }, false },
		{ { "4:4", "0:4" }, { "0:8" }, false },
		{ { "0:u32" }, { "0:u32be" }, false },
		{ { "0:u32" }, { "0:i32" }, false },
		{ { "0:i8" }, { "0:u8" }, false },
		{ { "0:f32" }, { "0:i32" }, false },
		{ { "0:f16" }, { "0:bf16" }, false },
		{ { "0:f32" }, { "0:f32:nanlast" }, false },
		{ { "0:f32:nanfirst" }, { "0:f32:nanlast" }, false },
		{ { "0:u64" }, { "0:u64", "8:1" }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct key_list a = list_of(cases[i].a, 16);
		struct key_list b = list_of(cases[i].b, 16);

		assert_true(key_list_equal(&a, &b) == cases[i].same);
		assert_true(key_list_equal(&b, &a) == cases[i].same);
	}
}

static void key_list__plain_is_one_ascending_slice(void **state)
{
	static const struct {
		const char *texts[TEXTS_MAX];
		bool is_plain;
		uint32_t begin, end;
	} cases[] = {
		{ { "3:7" }, true, 3, 10 },
		{ { "3:2", "5:u64be" }, true, 3, 13 },
		{ { "3:7:desc" }, false, 3, 10 },
		{ { "9:2", "1:2" }, false, 1, 11 },
		{ { "8:u64" }, false, 8, 16 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct key_list keys = list_of(cases[i].texts, 16);

		assert_true(keys.is_plain == cases[i].is_plain);
		assert_int_equal(keys.begin, cases[i].begin);
		assert_int_equal(keys.end, cases[i].end);
	}
}

static void key_list__reversed_twice_is_itself(void **state)
{
	const char *const texts[] = { "0:u16", "2:f32:desc", "6:3", NULL };
	struct key_list keys = list_of(texts, 16), reversed = keys;
	uint8_t a[16], b[16];

	(void)state;
	key_list_reverse(&reversed);
	key_list_complete(&reversed, 16);
	for (int i = 0; i < 1000; i++) {
		fill(a, sizeof(a));
		fill(b, sizeof(b));
		for (uint32_t skip = 0; skip + 8 <= keys.length; skip++)
			assert_true(key_list_word(&keys, a, skip) ==
				    ~key_list_word(&reversed, a, skip));
	}
	key_list_reverse(&reversed);
	key_list_complete(&reversed, 16);
	assert_true(key_list_equal(&keys, &reversed));
}

static void key_field__lengths_of_numbers(void **state)
{
	(void)state;
	for (uint32_t length = 0; length < 40; length++) {
		struct key_field field = { .length = length };
		bool is_power = length == 1 || length == 2 || length == 4 ||
				length == 8 || length == 16;

		assert_true(key_field_is_good(&field) == (length > 0));
		field.type = KEY_UNSIGNED;
		assert_true(key_field_is_good(&field) == is_power);
		field.type = KEY_SIGNED;
		assert_true(key_field_is_good(&field) == is_power);
		field.type = KEY_FLOAT;
		assert_true(key_field_is_good(&field) ==
			    (length == 2 || length == 4 || length == 8));
		field.nans = KEY_NANS_FIRST;
		assert_true(key_field_is_good(&field) ==
			    (length == 2 || length == 4 || length == 8));
		field.is_bfloat = true;
		assert_true(key_field_is_good(&field) == (length == 2));
		field.type = KEY_SIGNED;
		assert_false(key_field_is_good(&field));
		field.is_bfloat = false;
		assert_false(key_field_is_good(&field));
		field.nans = KEY_NANS_IN_ORDER;
		field.type = KEY_BYTES;
		field.is_big_endian = true;
		assert_false(key_field_is_good(&field));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_list__orders_as_its_fields),
		cmocka_unit_test(key_list__all_floats_of_16_bits),
		cmocka_unit_test(key_list__corners_of_floats),
		cmocka_unit_test(key_list__reverse_keeps_nans),
		cmocka_unit_test(key_list__floats_ascend),
		cmocka_unit_test(key_list__same_order_same_list),
		cmocka_unit_test(key_list__plain_is_one_ascending_slice),
		cmocka_unit_test(key_list__reversed_twice_is_itself),
		cmocka_unit_test(key_field__lengths_of_numbers),
	};

	random_begin();
	if (guarded_map() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
