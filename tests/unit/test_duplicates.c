/*
 * test_duplicates.c - first entries of each key, against a search of all before
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random.h"
#include "sort/tie_break.h"

#define COUNT_MAX 300
#define SIZE_MAX_TESTED 24

static uint8_t records[COUNT_MAX * SIZE_MAX_TESTED];
static struct record_shape shape;

static const uint8_t *record_at(uint64_t slot)
{
	return records + slot * shape.size;
}

/* The slots of the first record of each key, in key order: expected[] of them.
 */
static size_t find_firsts(size_t count, uint64_t expected[COUNT_MAX])
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		bool is_new = true;

		for (size_t j = 0; j < i && is_new; j++)
			is_new = memcmp(record_at(i) + shape.keys.begin,
					record_at(j) + shape.keys.begin,
					shape.keys.length) != 0;
		if (!is_new)
			continue;
		while (at < found &&
		       memcmp(record_at(expected[at]) + shape.keys.begin,
			      record_at(i) + shape.keys.begin,
			      shape.keys.length) < 0)
			at++;
		memmove(expected + at + 1, expected + at,
			(found - at) * sizeof(*expected));
		expected[at] = i;
		found++;
	}
	return found;
}

static void check(size_t count, unsigned index_bits, bool is_decided)
{
	const struct tie_break tie_break = {
		.shape = &shape,
		.records = records,
		.index_bits = index_bits,
		.sort = local_sort_scalar,
		.any = equal_keys_scalar,
	};
	uint64_t key_mask = UINT64_MAX << index_bits;
	uint64_t entries[COUNT_MAX], expected[COUNT_MAX] = { 0 };
	size_t kept, want = find_firsts(count, expected);

	for (size_t i = 0; i < count; i++)
		entries[i] =
			(record_key_word(&shape, record_at(i), 0) & key_mask) |
			i;
	local_sort_scalar(entries, count);
	kept = tie_break_drop_duplicates(&tie_break, entries, count,
					 is_decided);
	assert_int_equal(kept, want);
	for (size_t i = 0; i < kept; i++)
		if ((entries[i] & ~key_mask) != expected[i])
			fail_msg("place %zu: %llu (SEED=%llu)", i,
				 (unsigned long long)(entries[i] & ~key_mask),
				 (unsigned long long)seed);
}

static void tie_break_drop_duplicates__keeps_the_first_of_each_key(void **state)
{
	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint32_t length = 1 + (uint32_t)(random_next() % 12);
		uint32_t offset = (uint32_t)(random_next() % 8);
		size_t count = random_next() % COUNT_MAX;
		unsigned index_bits = 9 + (unsigned)(random_next() % 55);

		shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(
			offset + length + (uint32_t)(random_next() % 4), offset,
			length);
		for (size_t k = 0; k < count * shape.size; k++)
			records[k] = (uint8_t)(random_next() % 2 * 255);
		check(count, index_bits, false);
		/* All of the key is in the entries. */
		if (8 * length <= 64 - index_bits)
			check(count, index_bits, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			tie_break_drop_duplicates__keeps_the_first_of_each_key),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
