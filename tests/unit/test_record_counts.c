/*
 * test_record_counts.c - counted records against a plain stable sort
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_shape.h"
#include "record/checksum.h"
#include "sort/record_counts.h"
#include "stable_sort.h"

#define COUNT_MAX 3000
#define WORKERS_MAX 3

static struct record_counts counts;
static uint8_t records[COUNT_MAX * RECORD_COUNTS_SIZE_MAX];
static uint8_t sorted[sizeof(records)], copied[sizeof(records)];
static uint32_t order[COUNT_MAX], spare[COUNT_MAX];

static struct record_shape random_counted_shape(void)
{
	struct record_shape shape;

	do {
		shape = random_shape(1 + random_below(RECORD_COUNTS_SIZE_MAX));
	} while (!record_counts_suit(&shape));
	return shape;
}

static void make_records(uint32_t size, uint32_t count)
{
	/* Few values, or all that there are. */
	uint32_t values = random_below(2) ? 3 : 256;

	for (uint32_t i = 0; i < count * size; i++)
		records[i] = (uint8_t)(random_below(values) * 255 / values);
}

static void begin(struct arena *arena, const struct record_shape *shape,
		  unsigned worker_count)
{
	assert_int_equal(
		arena_map(arena, 3 * CACHE_PAIR_BYTES +
					 record_counts_bytes(shape->size,
							     worker_count)),
		0);
	record_counts_take_memory(&counts, shape, worker_count, arena);
}

/* Each worker counts some of them. */
static void count_records(uint32_t count)
{
	uint32_t size = counts.shape.size, begin = 0;

	for (unsigned w = 0; w < counts.worker_count; w++) {
		uint32_t end =
			w + 1 == counts.worker_count
				? count
				: begin + random_below(count - begin + 1);

		record_counts_add(counts.tables +
					  w * record_counts_length(size),
				  size, records + begin * size, end - begin);
		begin = end;
	}
}

/* Returns how many records are left. */
static uint32_t sort_records(const struct record_shape *shape, uint32_t count,
			     bool unique)
{
	uint32_t size = shape->size, kept = 0;

	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	stable_sort(shape, records, order, count, spare);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *record = records + order[i] * size;

		if (unique && kept > 0 &&
		    record_compare(shape, sorted + (kept - 1) * size, record) ==
			    0)
			continue;
		memcpy(sorted + kept++ * size, record, size);
	}
	return kept;
}

static enum cpu_level random_kernel(void)
{
	return (enum cpu_level)random_below((uint64_t)cpu_level_detect() + 1);
}

/* Piece by piece, cut anywhere. */
static void expect_copies(uint32_t record_count)
{
	uint32_t size = counts.shape.size;

	memset(copied, 0xEE, sizeof(copied));
	for (uint32_t begin = 0; begin < record_count;) {
		uint32_t count = random_below(record_count - begin + 1);

		record_counts_copy(&counts, begin, count,
				   copied + begin * size);
		begin += count;
	}
	if (memcmp(copied, sorted, record_count * size) != 0)
		fail_msg("SEED=%llu", (unsigned long long)seed);
	if (record_count * size < sizeof(copied))
		assert_int_equal(copied[record_count * size], 0xEE);
}

static void record_counts__random(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 500; turn++) {
		struct record_shape shape = random_counted_shape();
		uint32_t count = random_below(COUNT_MAX + 1), kept;
		bool unique = random_below(2);
		struct arena arena = { 0 };

		begin(&arena, &shape, 1 + random_below(WORKERS_MAX));
		make_records(shape.size, count);
		count_records(count);
		kept = sort_records(&shape, count, unique);
		record_counts_add_up(&counts, unique, random_kernel());
		assert_int_equal(record_counts_whole(&counts), kept);
		expect_copies(kept);
		assert_true(record_counts_checksum(&counts) ==
			    checksum_scalar(sorted, shape.size, kept));
		arena_unmap(&arena);
	}
}

/* All records that there can be, and a key of three fields. */
static void record_counts__all_values(void **state)
{
	struct record_shape shape = {
		.size = 2,
		.keys = { .field_count = 3,
			  .fields = { { .offset = 1,
					.length = 1,
					.type = KEY_SIGNED },
				      { .offset = 1,
					.length = 1,
					.is_descending = true },
				      { .length = 2, .type = KEY_UNSIGNED } } },
	};
	struct arena arena = { 0 };
	uint8_t all[8], last[8]; /* more than a record: the compiler warns */

	(void)state;
	key_list_complete(&shape.keys, 2);
	begin(&arena, &shape, 2);
	for (uint32_t value = 0; value < 65536; value++) {
		memcpy(all, &(uint16_t){ (uint16_t)value }, 2);
		record_counts_add(counts.tables + value % 2 * 65536, 2, all, 1);
	}
	record_counts_add_up(&counts, false, cpu_level_detect());
	assert_int_equal(record_counts_whole(&counts), 65536);
	for (uint32_t i = 0; i < 65536; i++) {
		record_counts_copy(&counts, i, 1, all);
		if (i > 0)
			assert_true(record_compare(&shape, last, all) < 0);
		memcpy(last, all, 2);
	}
	arena_unmap(&arena);
}

/* More equal records than 32 bits count. */
static void record_counts__large_counts(void **state)
{
	const struct record_shape shape = RECORD_SHAPE_OF_SLICE(1, 0, 1);
	const uint64_t many = (uint64_t)5 << 32;
	struct arena arena = { 0 };
	uint8_t bytes[4];

	(void)state;
	begin(&arena, &shape, 1);
	counts.tables['b'] = many;
	counts.tables['c'] = 2;
	record_counts_add_up(&counts, false, CPU_SCALAR);
	assert_int_equal(record_counts_whole(&counts), many + 2);
	record_counts_copy(&counts, many - 2, 4, bytes);
	assert_memory_equal(bytes, "bbcc", 4);
	arena_unmap(&arena);
}

static struct record_shape shape_of(uint32_t size, uint32_t offset,
				    uint32_t length)
{
	return (struct record_shape)RECORD_SHAPE_OF_SLICE(size, offset, length);
}

/* All of the record must be key. */
static void record_counts_suit__covered_records(void **state)
{
	struct record_shape shape = shape_of(1, 0, 1);

	(void)state;
	assert_true(record_counts_suit(&shape));
	shape = shape_of(2, 0, 2);
	assert_true(record_counts_suit(&shape));
	shape = shape_of(2, 0, 1);
	assert_false(record_counts_suit(&shape));
	shape = shape_of(2, 1, 1);
	assert_false(record_counts_suit(&shape));
	shape = shape_of(3, 0, 3);
	assert_false(record_counts_suit(&shape));
	shape = (struct record_shape){
		.size = 2,
		.keys = { .field_count = 2,
			  .fields = { { .offset = 1,
					.length = 1,
					.type = KEY_SIGNED },
				      { .offset = 0,
					.length = 1,
					.is_descending = true } } },
	};
	key_list_complete(&shape.keys, 2);
	assert_true(record_counts_suit(&shape));
	shape.keys = (struct key_list){
		.field_count = 1,
		.fields = { { .length = 2, .type = KEY_FLOAT } },
	};
	key_list_complete(&shape.keys, 2);
	assert_true(record_counts_suit(&shape));
	/* Records that differ in their NaNs have equal keys. */
	shape.keys.fields[0].nans = KEY_NANS_LAST;
	key_list_complete(&shape.keys, 2);
	assert_false(record_counts_suit(&shape));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_counts__random),
		cmocka_unit_test(record_counts__all_values),
		cmocka_unit_test(record_counts__large_counts),
		cmocka_unit_test(record_counts_suit__covered_records),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
