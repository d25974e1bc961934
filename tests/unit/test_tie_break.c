/*
 * test_tie_break.c - entries with all too few key bits against a stable sort of
 * the keys themselves
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "random.h"
#include "sort/tie_break.h"
#include "stable_sort.h"

#define COUNT_MAX 3000
#define SIZE_MAX_TESTED 700

static uint8_t *records;
static uint64_t *entries;
static uint32_t *expected, *scratch; /* slots */
static struct record_shape shape;
static unsigned sort_calls;

static uint8_t *record_at(uint32_t slot)
{
	return records + (size_t)slot * shape.size;
}

static uint8_t *key_at(uint32_t slot)
{
	return record_at(slot) + shape.keys.begin;
}

static void counted_sort(uint64_t *begin, size_t count)
{
	sort_calls++;
	local_sort_scalar(begin, count);
}

/* As partition and sort leave them, with window_bytes of the key as window:
 * fewer make more ties.  Every stride-th slot holds one. */
static void check_settle(uint32_t count, unsigned index_bits,
			 unsigned window_bytes, uint32_t stride)
{
	const struct tie_break ties = {
		.shape = &shape,
		.records = records,
		.index_bits = index_bits,
		.sort = counted_sort,
		.any = equal_keys_kernel(cpu_level_detect()),
	};
	uint64_t index_mask = ~(UINT64_MAX << index_bits);
	uint32_t entry_count = count / stride;

	for (uint32_t i = 0; i < entry_count; i++) {
		uint64_t window =
			record_key_word(&shape, record_at(i * stride), 0);

		if (window_bytes < 8)
			window &= ~(UINT64_MAX >> 8 * window_bytes);
		entries[i] = (window & ~index_mask) | i * stride;
		expected[i] = i * stride;
	}
	/* Nothing may be touched there. */
	entries[entry_count] = 0x5a5a;
	local_sort_scalar(entries, entry_count);
	stable_sort(&shape, records, expected, entry_count, scratch);
	sort_calls = 0;
	tie_break_settle(&ties, entries, entry_count);
	for (uint32_t i = 0; i < entry_count; i++)
		if ((entries[i] & index_mask) != expected[i])
			fail_msg("entry %u of %u is record %llu, not %u; %u "
				 "index bits, key %u+%u (SEED=%llu)",
				 i, entry_count,
				 (unsigned long long)(entries[i] & index_mask),
				 expected[i], index_bits, shape.keys.begin,
				 shape.keys.length, (unsigned long long)seed);
	assert_int_equal(entries[entry_count], 0x5a5a);
}

static unsigned bits_for(uint32_t count)
{
	unsigned bits = 1;

	while (count > 1u << bits)
		bits++;
	return bits;
}

static void fill(uint32_t count)
{
	for (size_t i = 0; i < (size_t)count * shape.size; i++)
		records[i] = (uint8_t)random_next();
}

static void random_slice(uint32_t key_length_max)
{
	uint32_t length = 1 + (uint32_t)(random_next() % key_length_max);
	uint32_t offset = (uint32_t)(random_next() % 10);
	uint32_t behind = (uint32_t)(random_next() % 10);

	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(
		offset + length + behind, offset, length);
}

/* Keys of few different bytes behind a prefix: ties at every depth. */
static void tie_break_settle__random_keys_of_every_index_width(void **state)
{
	(void)state;
	for (unsigned index_bits = 1; index_bits <= 40; index_bits++) {
		for (int turn = 0; turn < 40; turn++) {
			uint32_t count =
				(uint32_t)(random_next() %
					   MIN((uint64_t)400,
					       ((uint64_t)1 << index_bits) +
						       1));
			uint32_t prefix, letters;

			random_slice(40);
			prefix = (uint32_t)(random_next() %
					    (shape.keys.length + 1));
			letters = 1 + (uint32_t)(random_next() % 4);
			fill(count);
			for (uint32_t r = 0; r < count; r++)
				for (uint32_t i = 0; i < shape.keys.length; i++)
					key_at(r)[i] =
						i < prefix
							? 'p'
							: (uint8_t)(random_next() %
								    letters *
								    85);
			check_settle(count, index_bits,
				     (unsigned)(random_next() % 9),
				     1 + (uint32_t)(random_next() % 3));
		}
	}
}

/* Runs of every length, of equal keys and of keys that differ at the end. */
static void tie_break_settle__run_lengths(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(30, 3, 20);
	for (uint32_t length = 1; length <= 24; length++) {
		uint32_t count = 20 * length;

		fill(count);
		for (uint32_t r = 0; r < count; r++) {
			uint8_t run = (uint8_t)(r % 20);

			memset(key_at(r), run, shape.keys.length);
			if (run % 2)
				key_at(r)[19] = (uint8_t)random_next();
			if (run % 4 == 3)
				key_at(r)[9] = (uint8_t)(random_next() % 2);
		}
		check_settle(count, bits_for(count), 8, 1);
		check_settle(count, 40, 2, 1);
	}
}

static void tie_break_settle__all_equal(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 0, 13);
	fill(COUNT_MAX);
	for (uint32_t r = 0; r < COUNT_MAX; r++)
		memset(key_at(r), 'e', shape.keys.length);
	for (uint32_t count = 0; count <= COUNT_MAX; count += 1 + count) {
		check_settle(count, 12, 8, 1);
		/* They stay as they are, without any work on them. */
		assert_int_equal(sort_calls, 0);
	}
}

static void tie_break_settle__no_ties(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(8, 0, 8);
	for (uint32_t r = 0; r < 1000; r++)
		store_be64(record_at(r), random_next() % 1000 << 54 | r << 20);
	check_settle(1000, 10, 8, 1);
	assert_int_equal(sort_calls, 0);
}

/*
 * Key r is r times 'a', then 'b': each turn sees what all that are left have in
 * common and a few bytes more, so it takes out few.  The depth must be bounded.
 */
static void tie_break_settle__deep_nesting(void **state)
{
	static const unsigned index_bits[] = { 12, 20, 32, 40, 56, 60 };
	const uint32_t depth = SIZE_MAX_TESTED - 10, count = 2 * depth;

	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(SIZE_MAX_TESTED, 5,
							   depth);
	fill(count);
	for (uint32_t r = 0; r < count; r++) {
		/* Each twice, and no order in it. */
		uint32_t same = (uint32_t)((uint64_t)r * 7919 % depth);

		memset(key_at(r), 'a', same);
		memset(key_at(r) + same, 'b', depth - same);
	}
	for (size_t i = 0; i < ARRAY_LEN(index_bits); i++) {
		check_settle(count, index_bits[i], 0, 1);
		assert_in_range(sort_calls, 1, 32);
	}
}

/* Every level, as in use. */
static void tie_break_settle__kernels(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(16, 2, 12);
	for (int level = 0; level <= (int)cpu_level_detect(); level++) {
		const struct tie_break ties = {
			.shape = &shape,
			.records = records,
			.index_bits = 12,
			.sort = local_sort_kernel((enum cpu_level)level),
			.any = equal_keys_kernel((enum cpu_level)level),
		};

		fill(COUNT_MAX);
		for (uint32_t r = 0; r < COUNT_MAX; r++) {
			memset(key_at(r), 'k', 9);
			key_at(r)[9] %= 3;
			key_at(r)[10] = 1;
			key_at(r)[11] %= 9;
			entries[r] = r;
			expected[r] = r;
		}
		stable_sort(&shape, records, expected, COUNT_MAX, scratch);
		tie_break_settle(&ties, entries, COUNT_MAX);
		for (uint32_t r = 0; r < COUNT_MAX; r++)
			assert_int_equal(entries[r] & 0xfff, expected[r]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tie_break_settle__no_ties),
		cmocka_unit_test(tie_break_settle__all_equal),
		cmocka_unit_test(tie_break_settle__run_lengths),
		cmocka_unit_test(
			tie_break_settle__random_keys_of_every_index_width),
		cmocka_unit_test(tie_break_settle__deep_nesting),
		cmocka_unit_test(tie_break_settle__kernels),
	};

	random_begin();
	records = calloc(COUNT_MAX, SIZE_MAX_TESTED);
	entries = calloc(COUNT_MAX + 1, sizeof(*entries));
	expected = calloc(COUNT_MAX, sizeof(*expected));
	scratch = calloc(COUNT_MAX, sizeof(*scratch));
	if (!records || !entries || !expected || !scratch)
		return EXIT_FAILURE;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
