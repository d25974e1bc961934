/*
 * test_splitters.c - prefixes and buckets never decrease with the key, whatever
 * the keys and whatever was sampled
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random.h"
#include "kernels/splitters.h"

#define COUNT_MAX 20000
#define SIZE 24

static uint8_t *records;
static const uint8_t **sorted, **sample;
static uint64_t *prefixes;
static struct splitters splitters;

/* ------------------------------------------------------------------ ascii */

/* Digit by digit: once a character lies outside, all after it count as the
 * lowest or the highest. */
static uint32_t expected_ascii_value(uint32_t characters)
{
	uint32_t value = 0;
	int outside = 0;

	for (int shift = 24; shift >= 0; shift -= 8) {
		uint32_t character = characters >> shift & 0xff;
		uint32_t digit = character - 32;

		if (outside == 0 && character < 32)
			outside = -1;
		if (outside == 0 && character > 126)
			outside = 1;
		if (outside != 0)
			digit = outside < 0 ? 0 : 94;
		value = value * 95 + digit;
	}
	return value;
}

static void splitters_ascii_value__all_edges_in_order(void **state)
{
	static const uint8_t edges[] = { 0,    1,    0x1f, 0x20, 0x21,
					 0x40, 0x5f, 0x60, 0x7d, 0x7e,
					 0x7f, 0x80, 0x81, 0xa0, 0xff };
	const uint32_t n = ARRAY_LEN(edges);
	uint32_t before = 0;

	(void)state;
	for (uint32_t i = 0; i < n * n * n * n; i++) {
		uint32_t characters = (uint32_t)edges[i / n / n / n] << 24 |
				      (uint32_t)edges[i / n / n % n] << 16 |
				      (uint32_t)edges[i / n % n] << 8 |
				      edges[i % n];
		uint32_t value = splitters_ascii_value(characters);

		assert_int_equal(value, expected_ascii_value(characters));
		assert_int_equal(splitters_ascii_value_any(characters), value);
		assert_in_range(value, before, SPLITTERS_ASCII_VALUES - 1);
		before = value;
	}
}

static void splitters_ascii_value__random_characters(void **state)
{
	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint32_t characters = (uint32_t)random_next();

		/* Every other time printable ones only. */
		for (int shift = 0; i % 2 && shift < 32; shift += 8) {
			characters &= ~(0xffu << shift);
			characters |= (32 + (uint32_t)(random_next() % 95))
				      << shift;
		}
		assert_int_equal(splitters_ascii_value(characters),
				 expected_ascii_value(characters));
	}
}

/* ----------------------------------------------------------- static kinds */

static const uint32_t static_counts[] = { 1,  2,    3,	  7,	 16,
					  95, 8333, 8191, 16383, 16384 };

static void splitters_bucket_256__equal_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(static_counts); i++) {
		uint32_t count = static_counts[i];
		uint32_t *in_bucket = calloc(count, sizeof(*in_bucket));
		uint32_t before = 0;

		assert_non_null(in_bucket);
		splitters_init_static(&splitters, SPLITTERS_STATIC_256, count);
		assert_int_equal(splitters.kind, SPLITTERS_STATIC_256);
		assert_int_equal(splitters.bucket_count, count);
		for (uint64_t top = 0; top < 1 << 20; top++) {
			uint32_t bucket = splitters_bucket_256(
				&splitters, top << 44 | (top & 0xfff));

			assert_in_range(bucket, before, count - 1);
			before = bucket;
			in_bucket[bucket]++;
		}
		for (uint32_t b = 0; b < count; b++)
			assert_in_range(in_bucket[b], (1 << 20) / count,
					(1 << 20) / count + 1);
		assert_int_equal(splitters_bucket_256(&splitters, UINT64_MAX),
				 count - 1);
		free(in_bucket);
	}
}

/* The prefix of a value of 4 printable characters. */
static uint64_t ascii_key_prefix(uint32_t value)
{
	uint64_t prefix = 0;

	for (int shift = 32; shift <= 56; shift += 8) {
		prefix |= (uint64_t)(32 + value % 95) << shift;
		value /= 95;
	}
	return prefix;
}

static void splitters_bucket_95__equal_ranges(void **state)
{
	const uint32_t step = 601, values = SPLITTERS_ASCII_VALUES / 601;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(static_counts); i++) {
		uint32_t count = static_counts[i];
		uint32_t *in_bucket = calloc(count, sizeof(*in_bucket));
		uint32_t before = 0;

		assert_non_null(in_bucket);
		splitters_init_static(&splitters, SPLITTERS_STATIC_95, count);
		for (uint32_t v = 0; v < values; v++) {
			uint32_t bucket = splitters_bucket_95(
				&splitters, ascii_key_prefix(v * step));

			assert_in_range(bucket, before, count - 1);
			before = bucket;
			in_bucket[bucket]++;
		}
		for (uint32_t b = 0; b + 1 < count; b++)
			/* A step may fall on either side of both borders. */
			assert_in_range(in_bucket[b] + 1, values / count,
					values / count + 3);
		assert_int_equal(splitters_bucket_95(&splitters, 0), 0);
		assert_int_equal(
			splitters_bucket_95(
				&splitters,
				ascii_key_prefix(SPLITTERS_ASCII_VALUES - 1)),
			count - 1);
		assert_int_equal(splitters_bucket_95(&splitters, UINT64_MAX),
				 count - 1);
		free(in_bucket);
	}
}

/* ------------------------------------------------------- any keys, sorted */

enum keys {
	KEYS_BINARY,
	KEYS_ASCII,
	KEYS_FEW,	/* 30 values */
	KEYS_TWO_BYTES, /* 0x00 and 0xff only */
	KEYS_NARROW,	/* differ in the last byte only */
	KEYS_EQUAL,
	KEYS_ALL_ZERO,
	KEYS_ALL_MAX,
	KEYS_PREFIX, /* 5 bytes in common, with some that have not */
	KEYS_KINDS
};

static uint8_t key_byte(enum keys keys, uint32_t i, uint32_t value)
{
	switch (keys) {
	case KEYS_BINARY:
		return (uint8_t)random_next();
	case KEYS_ASCII:
		return (uint8_t)(32 + random_next() % 95);
	case KEYS_FEW:
		return (uint8_t)(value % 30 * 37 >> i % 3);
	case KEYS_TWO_BYTES:
		return random_next() % 2 ? 0xff : 0;
	case KEYS_ALL_ZERO:
		return 0;
	case KEYS_ALL_MAX:
		return 0xff;
	case KEYS_PREFIX:
		if (i >= 5 || value % 16 == 0)
			return (uint8_t)random_next();
		return (uint8_t)(100 + i);
	case KEYS_NARROW:
	case KEYS_EQUAL:
	case KEYS_KINDS:
		break;
	}
	return 77;
}

static void make_records(const struct record_shape *shape, enum keys keys,
			 uint32_t count)
{
	for (uint32_t r = 0; r < count; r++) {
		uint8_t *record = records + (size_t)r * shape->size;
		uint32_t value = (uint32_t)random_next();

		for (uint32_t i = 0; i < shape->size; i++)
			record[i] = (uint8_t)random_next();
		for (uint32_t i = 0; i < shape->keys.length; i++)
			record[shape->keys.begin + i] =
				key_byte(keys, i, value);
		if (keys == KEYS_NARROW)
			record[shape->keys.begin + shape->keys.length - 1] =
				(uint8_t)value;
	}
}

static struct record_shape random_shape(uint32_t key_length_min)
{
	uint32_t length =
		key_length_min +
		(uint32_t)(random_next() % (SIZE + 1 - key_length_min));
	uint32_t offset = (uint32_t)(random_next() % (SIZE + 1 - length));

	return (struct record_shape)RECORD_SHAPE_OF_SLICE(SIZE, offset, length);
}

static const struct record_shape *compared_shape;

static int compare_records(const void *a, const void *b)
{
	const uint8_t *x, *y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return record_compare(compared_shape, x, y);
}

static void sort_records(const struct record_shape *shape, uint32_t count)
{
	for (uint32_t r = 0; r < count; r++)
		sorted[r] = records + (size_t)r * shape->size;
	compared_shape = shape;
	qsort(sorted, count, sizeof(*sorted), compare_records);
}

/* Of the last key that bucket_of() was asked for. */
static uint64_t next_bits;

static uint32_t bucket_of(const struct record_shape *shape,
			  const uint8_t *record, uint64_t *prefix)
{
	if (splitters.kind == SPLITTERS_SAMPLED) {
		*prefix = splitters_key_prefix(&splitters, shape, record,
					       &next_bits);
		return splitters_bucket_sampled(&splitters, *prefix);
	}
	*prefix = record_key_word(shape, record, 0);
	return splitters.kind == SPLITTERS_STATIC_95
		       ? splitters_bucket_95(&splitters, *prefix)
		       : splitters_bucket_256(&splitters, *prefix);
}

/* Neighbours in sorted order say it all. */
/* Of two records that follow each other in one bucket. */
static void check_key_bits(const struct record_shape *shape, uint64_t key_bits,
			   uint64_t key_bits_before, uint32_t bucket,
			   bool equal)
{
	assert_true(key_bits >= key_bits_before);
	for (unsigned index_bits = 1; index_bits < 64; index_bits += 9)
		if (splitters_bucket_is_decided(&splitters, bucket,
						shape->keys.length,
						index_bits) &&
		    (key_bits ^ key_bits_before) >> index_bits == 0)
			assert_true(equal);
}

static void check_order(const struct record_shape *shape, uint32_t count)
{
	uint64_t prefix_before = 0, key_bits_before = 0, key_bits = 0;
	uint32_t bucket_before = 0;

	sort_records(shape, count);
	for (uint32_t r = 0; r < count; r++) {
		uint64_t prefix;
		uint32_t bucket = bucket_of(shape, sorted[r], &prefix);
		bool equal = r > 0 && record_compare(shape, sorted[r],
						     sorted[r - 1]) == 0;

		if (prefix < prefix_before || bucket < bucket_before ||
		    bucket >= splitters.bucket_count)
			fail_msg("%s: bucket %u of %u after %u (SEED=%llu)",
				 splitters_kind_names[splitters.kind], bucket,
				 splitters.bucket_count, bucket_before,
				 (unsigned long long)seed);
		if (equal)
			assert_int_equal(prefix, prefix_before);
		if (r > 0 && splitters_bucket_is_equal(&splitters, bucket) &&
		    bucket == bucket_before)
			assert_true(equal);
		key_bits = prefix;
		if (splitters.kind == SPLITTERS_SAMPLED)
			key_bits = splitters_key_in_bucket(&splitters, prefix,
							   next_bits, bucket);
		if (r > 0 && bucket == bucket_before)
			check_key_bits(shape, key_bits, key_bits_before, bucket,
				       equal);
		key_bits_before = key_bits;
		prefix_before = prefix;
		bucket_before = bucket;
	}
}

static void splitters_static__any_keys_in_order(void **state)
{
	(void)state;
	for (int keys = 0; keys < KEYS_KINDS; keys++)
		for (size_t i = 0; i < ARRAY_LEN(static_counts); i++) {
			struct record_shape shape = random_shape(4);

			make_records(&shape, (enum keys)keys, 1000);
			splitters_init_static(&splitters, SPLITTERS_STATIC_256,
					      static_counts[i]);
			check_order(&shape, 1000);
			splitters_init_static(&splitters, SPLITTERS_STATIC_95,
					      static_counts[i]);
			check_order(&shape, 1000);
			assert_false(splitters_bucket_is_equal(&splitters, 0));
			assert_false(splitters_bucket_is_equal(&splitters, 1));
		}
}

/* The entry holds the whole key, or all but a bit of it. */
static void splitters_static__whole_keys_are_decided(void **state)
{
	(void)state;
	splitters_init_static(&splitters, SPLITTERS_STATIC_256, 7);
	assert_true(splitters_bucket_is_decided(&splitters, 0, 4, 32));
	assert_false(splitters_bucket_is_decided(&splitters, 0, 4, 33));
	assert_false(splitters_bucket_is_decided(&splitters, 0, 1 << 29, 1));
}

static void init_sampled(const struct record_shape *shape,
			 uint32_t sample_count, uint32_t wanted)
{
	splitters_init_sampled(&splitters, shape, sample, sample_count,
			       prefixes, wanted);
	assert_int_equal(splitters.kind, SPLITTERS_SAMPLED);
	assert_true(splitters.splitter_count <= MIN(wanted, SPLITTERS_MAX));
	assert_int_equal(splitters.bucket_count,
			 2 * splitters.splitter_count + 1);
	for (uint32_t i = 1; i < splitters.splitter_count; i++)
		assert_true(splitters.splitters[i] >
			    splitters.splitters[i - 1]);
}

/* Few of the records are sampled, so most keys lie between, below or above. */
static void splitters_sampled__any_keys_in_order(void **state)
{
	static const uint32_t wanted[] = { 0, 1, 2, 5, 100, 5000, 100000 };

	(void)state;
	for (int keys = 0; keys < KEYS_KINDS; keys++)
		for (uint32_t turn = 0; turn < 42; turn++) {
			struct record_shape shape = random_shape(1);
			uint32_t sample_count =
				1 + (uint32_t)(random_next() %
					       (turn % 2 ? 5 : 600));

			make_records(&shape, (enum keys)keys, 2000);
			for (uint32_t i = 0; i < sample_count; i++)
				sample[i] = records +
					    random_next() % 2000 * shape.size;
			init_sampled(&shape, sample_count,
				     wanted[turn % ARRAY_LEN(wanted)]);
			check_order(&shape, 2000);
		}
}

/* What was not sampled at all: other prefixes, other words. */
static void splitters_sampled__keys_outside_of_the_sample(void **state)
{
	(void)state;
	for (int turn = 0; turn < 100; turn++) {
		struct record_shape shape = random_shape(1);

		make_records(&shape, KEYS_PREFIX, 500);
		for (uint32_t i = 0; i < 500; i++)
			sample[i] = records + (size_t)i * shape.size;
		/* The first half is sampled, and made narrow. */
		for (uint32_t i = 0; i < 250; i++)
			memcpy(records + (size_t)i * shape.size +
				       shape.keys.begin,
			       records + shape.keys.begin,
			       shape.keys.length * 2 / 3);
		init_sampled(&shape, 250, 20);
		check_order(&shape, 500);
	}
}

static uint32_t bucket_of_key(const struct record_shape *shape, const char *key)
{
	uint64_t prefix;

	return bucket_of(shape, (const uint8_t *)key, &prefix);
}

static void splitters_sampled__all_equal(void **state)
{
	const struct record_shape shape = RECORD_SHAPE_OF_SLICE(12, 0, 12);

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		sample[i] = (const uint8_t *)"prefix-word!";
	init_sampled(&shape, 100, 30);
	assert_int_equal(splitters.splitter_count, 1);
	assert_int_equal(splitters.skip, 11);
	assert_int_equal(splitters.rest_bits, 8);
	assert_int_equal(bucket_of_key(&shape, "prefix-word!"), 1);
	assert_true(splitters_bucket_is_equal(&splitters, 1));
	assert_false(splitters_bucket_is_equal(&splitters, 0));
	assert_false(splitters_bucket_is_equal(&splitters, 2));
	assert_int_equal(bucket_of_key(&shape, "prefix-word "), 0);
	assert_int_equal(bucket_of_key(&shape, "prefix-word\""), 2);
	assert_int_equal(bucket_of_key(&shape, "a           "), 0);
	assert_int_equal(bucket_of_key(&shape, "z           "), 2);
}

/* The lowest key shares its prefix with what lies below the sample, so its
 * bucket proves nothing. */
static void splitters_sampled__lowest_and_highest_word(void **state)
{
	const struct record_shape shape = RECORD_SHAPE_OF_SLICE(2, 0, 2);

	(void)state;
	sample[0] = (const uint8_t *)"b\0";
	sample[1] = (const uint8_t *)"b\0";
	init_sampled(&shape, 2, 1);
	assert_int_equal(bucket_of_key(&shape, "b\0"), 1);
	assert_int_equal(bucket_of_key(&shape, "a\xff"), 1);
	assert_false(splitters_bucket_is_equal(&splitters, 1));
	sample[0] = (const uint8_t *)"b\xff";
	sample[1] = (const uint8_t *)"b\xff";
	init_sampled(&shape, 2, 1);
	assert_int_equal(bucket_of_key(&shape, "b\xff"), 1);
	assert_int_equal(bucket_of_key(&shape, "c\0"), 2);
	assert_int_equal(bucket_of_key(&shape, "b\xfe"), 0);
}

/* Keys longer than the prefix: equal prefixes prove nothing. */
static void splitters_sampled__long_keys_are_never_equal(void **state)
{
	const struct record_shape shape = RECORD_SHAPE_OF_SLICE(9, 0, 9);

	(void)state;
	sample[0] = (const uint8_t *)"abcdefghi";
	sample[1] = (const uint8_t *)"zbcdefghi";
	init_sampled(&shape, 2, 2);
	assert_true(splitters.rest_bits > 64 + splitters.shift);
	for (uint32_t b = 0; b < splitters.bucket_count; b++)
		assert_false(splitters_bucket_is_equal(&splitters, b));
}

/* Of a sample without equals, each bucket gets its share. */
static void splitters_sampled__equal_shares(void **state)
{
	static const uint32_t wanted[] = { 1, 2, 10, 99, 1000, SPLITTERS_MAX };
	const struct record_shape shape = RECORD_SHAPE_OF_SLICE(8, 0, 8);
	const uint32_t count = 2 * SPLITTERS_MAX + 7;

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		/* Far from evenly spread. */
		store_be64(records + 8 * (size_t)i, (uint64_t)i * i * i);
		sample[i] = records + 8 * (size_t)i;
	}
	for (size_t w = 0; w < ARRAY_LEN(wanted); w++) {
		uint32_t share = count / (wanted[w] + 1) + 1;
		uint32_t in_bucket = 0, before = 0;

		init_sampled(&shape, count, wanted[w]);
		assert_int_equal(splitters.splitter_count, wanted[w]);
		for (uint32_t i = 0; i < count; i++) {
			uint64_t prefix;
			uint32_t bucket = bucket_of(&shape, sample[i], &prefix);

			in_bucket = bucket == before ? in_bucket + 1 : 1;
			assert_true(in_bucket <= share);
			before = bucket;
		}
		assert_int_equal(before / 2, wanted[w]);
	}
	init_sampled(&shape, count, UINT32_MAX);
	assert_int_equal(splitters.splitter_count, SPLITTERS_MAX);
}

/* ------------------------------------------------------------------- look */

static const struct record_shape look_shape = RECORD_SHAPE_OF_SLICE(12, 1, 10);

/* Key i of count, evenly spread over all values of its kind. */
static void even_key(uint8_t *record, bool ascii, uint64_t i, uint64_t count)
{
	uint64_t word = (UINT64_MAX / count) * i;

	memset(record, 'x', look_shape.size);
	if (ascii)
		word = ascii_key_prefix(
			       (uint32_t)(SPLITTERS_ASCII_VALUES / count * i)) |
		       0x2b2b2b2b;
	store_be64(record + look_shape.keys.begin, word);
}

static enum splitters_kind probe(uint64_t count, bool *is_uniform)
{
	*is_uniform = count % 2; /* it must be set either way */
	return splitters_probe(&look_shape, records, count, is_uniform);
}

static void splitters_probe__kind_and_uniformity(void **state)
{
	bool is_uniform;

	(void)state;
	for (uint64_t count = 0; count <= 600; count += 1 + count / 20) {
		for (uint64_t i = 0; i < count; i++)
			even_key(records + i * look_shape.size, true, i, count);
		assert_int_equal(probe(count, &is_uniform),
				 SPLITTERS_STATIC_95);
		assert_true(is_uniform);
		for (uint64_t i = 0; i < count; i++)
			even_key(records + i * look_shape.size, false, i,
				 count);
		if (count > 32)
			assert_int_equal(probe(count, &is_uniform),
					 SPLITTERS_STATIC_256);
		probe(count, &is_uniform);
		assert_true(is_uniform);
		/* Half of them equal, which a few tell nothing about. */
		for (uint64_t i = 0; i < count; i += 2)
			even_key(records + i * look_shape.size, false,
				 count / 3, count);
		probe(count, &is_uniform);
		if (count <= 8 || count >= 32)
			assert_int_equal(is_uniform, count <= 8);
		/* Ascii keys that start alike. */
		memset(records, 'k', count * look_shape.size);
		assert_int_equal(probe(count, &is_uniform),
				 SPLITTERS_STATIC_95);
		if (count <= 4 || count >= 12)
			assert_int_equal(is_uniform, count <= 4);
	}
}

/* One byte that cannot be printed, in each place. */
static void splitters_probe__one_byte_decides(void **state)
{
	static const uint8_t outside[] = { 0, 31, 127, 128, 255 };
	const struct record_shape *shape = &look_shape;
	bool is_uniform;

	(void)state;
	memset(records, '~', 12 * 10);
	for (size_t b = 0; b < ARRAY_LEN(outside); b++)
		for (size_t i = 0; i < shape->size; i++) {
			uint8_t *byte = records + 9 * shape->size + i;
			bool in_look = i >= shape->keys.begin &&
				       i < shape->keys.begin + 8;

			*byte = outside[b];
			assert_int_equal(probe(10, &is_uniform),
					 in_look ? SPLITTERS_STATIC_256
						 : SPLITTERS_STATIC_95);
			*byte = ' ';
		}
}

static void splitters_probe__short_keys_are_binary(void **state)
{
	bool is_uniform;

	(void)state;
	memset(records, 'a', 100);
	for (uint32_t length = 1; length <= 10; length++) {
		const struct record_shape shape =
			RECORD_SHAPE_OF_SLICE(10, 0, length);

		assert_int_equal(
			splitters_probe(&shape, records, 10, &is_uniform),
			length < 4 ? SPLITTERS_STATIC_256
				   : SPLITTERS_STATIC_95);
	}
}

static void splitters_kind_name__all(void **state)
{
	(void)state;
	assert_string_equal(splitters_kind_names[SPLITTERS_STATIC_256],
			    "static-256");
	assert_string_equal(splitters_kind_names[SPLITTERS_STATIC_95],
			    "static-95");
	assert_string_equal(splitters_kind_names[SPLITTERS_SAMPLED], "sampled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splitters_ascii_value__all_edges_in_order),
		cmocka_unit_test(splitters_ascii_value__random_characters),
		cmocka_unit_test(splitters_bucket_256__equal_ranges),
		cmocka_unit_test(splitters_bucket_95__equal_ranges),
		cmocka_unit_test(splitters_static__any_keys_in_order),
		cmocka_unit_test(splitters_static__whole_keys_are_decided),
		cmocka_unit_test(splitters_sampled__any_keys_in_order),
		cmocka_unit_test(splitters_sampled__keys_outside_of_the_sample),
		cmocka_unit_test(splitters_sampled__all_equal),
		cmocka_unit_test(splitters_sampled__lowest_and_highest_word),
		cmocka_unit_test(splitters_sampled__long_keys_are_never_equal),
		cmocka_unit_test(splitters_sampled__equal_shares),
		cmocka_unit_test(splitters_probe__kind_and_uniformity),
		cmocka_unit_test(splitters_probe__one_byte_decides),
		cmocka_unit_test(splitters_probe__short_keys_are_binary),
		cmocka_unit_test(splitters_kind_name__all),
	};

	random_begin();
	records = calloc(COUNT_MAX, SIZE);
	sorted = calloc(COUNT_MAX, sizeof(*sorted));
	sample = calloc(COUNT_MAX, sizeof(*sample));
	prefixes = calloc(COUNT_MAX, sizeof(*prefixes));
	if (!records || !sorted || !sample || !prefixes)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
