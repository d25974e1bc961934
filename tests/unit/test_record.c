/*
 * test_record.c - key words of every slice, beside pages that may not be
 * touched
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "guarded_page.h"
#include "random.h"
#include "record/record.h"

#define SIZE_ALL_MAX 20 /* every slice of every size up to here */

/* Byte by byte, as the header says it. */
static uint64_t expected_word(const struct record_shape *shape,
			      const uint8_t *record, uint32_t skip)
{
	uint64_t word = 0;

	for (uint32_t i = skip; i < skip + 8; i++) {
		word <<= 8;
		if (i < shape->keys.length)
			word |= record[shape->keys.begin + i];
	}
	return word;
}

static void check_word(const struct record_shape *shape, const uint8_t *record)
{
	for (uint32_t skip = 0; skip <= shape->keys.length; skip++) {
		uint64_t word = record_key_word(shape, record, skip);

		if (word != expected_word(shape, record, skip))
			fail_msg("size %u, key %u+%u, skip %u: %016llx "
				 "(SEED=%llu)",
				 shape->size, shape->keys.begin,
				 shape->keys.length, skip,
				 (unsigned long long)word,
				 (unsigned long long)seed);
	}
}

/* No zero bytes: what is read beside the key shows. */
static void fill_page(void)
{
	for (uint8_t *byte = first_byte; byte < end_byte; byte++)
		*byte = (uint8_t)(1 + random_next() % 255);
}

static struct record_shape random_shape(uint32_t size, uint32_t length_max)
{
	uint32_t length = 1 + (uint32_t)(random_next() % MIN(length_max, size));
	uint32_t offset = (uint32_t)(random_next() % (size - length + 1));

	return (struct record_shape)RECORD_SHAPE_OF_SLICE(size, offset, length);
}

static void record_key_word__every_slice(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= SIZE_ALL_MAX; size++)
		for (uint32_t offset = 0; offset < size; offset++)
			for (uint32_t length = 1; offset + length <= size;
			     length++) {
				struct record_shape shape =
					RECORD_SHAPE_OF_SLICE(size, offset,
							      length);

				check_word(&shape, first_byte);
				check_word(&shape, end_byte - shape.size);
			}
}

static void record_key_word__long_records(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct record_shape shape = random_shape(
			1 + (uint32_t)(random_next() % 300), UINT32_MAX);

		check_word(&shape, first_byte);
		check_word(&shape, end_byte - shape.size);
	}
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

/* Keys of 8 bytes and less: the word is the whole key. */
static void record_key_word__orders_as_compare(void **state)
{
	uint8_t *a = first_byte, *b = end_byte - SIZE_ALL_MAX;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct record_shape shape = random_shape(SIZE_ALL_MAX, 8);
		uint64_t word_a, word_b;

		for (int j = 0; j < SIZE_ALL_MAX; j++) {
			/* Around the sign bit, and often equal. */
			a[j] = (uint8_t)(127 + random_next() % 2);
			b[j] = (uint8_t)(127 + random_next() % 2);
		}
		word_a = record_key_word(&shape, a, 0);
		word_b = record_key_word(&shape, b, 0);
		assert_int_equal((word_a > word_b) - (word_a < word_b),
				 sign(record_compare(&shape, a, b)));
	}
	fill_page();
}

/* Against memcmp(), keys of all lengths, one record right before the end of
 * what may be read. */
static void record_compare__as_memcmp(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct record_shape shape = random_shape(
			1 + (uint32_t)(random_next() % SIZE_ALL_MAX),
			UINT32_MAX);
		uint8_t *a = first_byte, *b;

		b = end_byte - shape.size;
		for (uint32_t j = 0; j < shape.size; j++) {
			/* Around the sign bit, and mostly equal. */
			a[j] = (uint8_t)(127 + (random_next() % 8 == 0));
			b[j] = (uint8_t)(127 + (random_next() % 8 == 0));
		}
		assert_int_equal(
			sign(memcmp(a + shape.keys.begin, b + shape.keys.begin,
				    shape.keys.length)),
			sign(record_compare(&shape, a, b)));
	}
	fill_page();
}

static void record_shape_is_benchmark__only_that_one(void **state)
{
	const struct record_shape benchmark = RECORD_SHAPE_OF_SLICE(100, 0, 10);
	const struct record_shape others[] = {
		RECORD_SHAPE_OF_SLICE(101, 0, 10),
		RECORD_SHAPE_OF_SLICE(100, 1, 10),
		RECORD_SHAPE_OF_SLICE(100, 0, 9),
		RECORD_SHAPE_OF_SLICE(100, 0, 11)
	};

	(void)state;
	assert_true(record_shape_is_benchmark(&benchmark));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_false(record_shape_is_benchmark(&others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_shape_is_benchmark__only_that_one),
		cmocka_unit_test(record_compare__as_memcmp),
		cmocka_unit_test(record_key_word__every_slice),
		cmocka_unit_test(record_key_word__long_records),
		cmocka_unit_test(record_key_word__orders_as_compare),
	};

	random_begin();
	if (guarded_map())
		return EXIT_FAILURE;
	fill_page();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
