/*
 * test_validator.c - order and duplicates at every border, of the benchmark's
 * records and of any; summaries that add up, and summaries from outside that
 * can't be true
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "random.h"
#include "record/validator.h"

typedef unsigned __int128 u128;

#define COUNT 1000

static uint8_t records[COUNT * 100];

/* Record i has the key key_of_record(i) and a payload of its own. */
static void set_key(size_t i, uint64_t key)
{
	uint8_t *record = records + i * 100;

	memset(record, 0, 100);
	store_be64(record + 2, key);
	store_be64(record + 50, i * 0x9e3779b97f4a7c15u);
}

static void ascending(void)
{
	for (size_t i = 0; i < COUNT; i++)
		set_key(i, 2 * i + 2);
}

/* One record after the other, as valsort is described. */
static struct summary reference(size_t first, size_t count)
{
	struct summary s = { 0 };

	for (size_t i = 0; i < count; i++) {
		const uint8_t *record = records + (first + i) * 100;
		int order = i == 0 ? -1 : memcmp(record - 100, record, 10);

		if (order > 0 && s.tally.unordered_count++ == 0)
			s.tally.first_unordered = i;
		s.tally.duplicate_count += order == 0;
		s.tally.checksum += checksum_scalar(record, 100, 1);
		s.tally.record_count++;
		memcpy(i == 0 ? s.first_record : s.last_record, record, 100);
		memcpy(s.last_record, record, 100);
	}
	return s;
}

static void assert_summary_equal(const struct summary *a,
				 const struct summary *b)
{
	uint8_t a_bytes[SUMMARY_BYTES], b_bytes[SUMMARY_BYTES];

	summary_encode(a, a_bytes);
	summary_encode(b, b_bytes);
	assert_memory_equal(a_bytes, b_bytes, SUMMARY_BYTES);
}

static void assert_tally_equal(const struct tally *a, const struct tally *b)
{
	assert_true(a->first_unordered == b->first_unordered);
	assert_true(a->unordered_count == b->unordered_count);
	assert_true(a->record_count == b->record_count);
	assert_true(a->duplicate_count == b->duplicate_count);
	assert_true(a->checksum == b->checksum);
}

static const struct record_shape benchmark = RECORD_SHAPE_OF_SLICE(100, 0, 10);

static struct tally tally_of(const struct record_shape *shape,
			     const uint8_t *first, size_t count)
{
	struct validator validator;
	struct tally tally;

	validator_prepare(&validator, shape, cpu_level_detect());
	validator_run(&validator, &tally, first, count);
	return tally;
}

static void check_run(size_t first, size_t count)
{
	struct tally expected = reference(first, count).tally;
	struct tally got = tally_of(&benchmark, records + first * 100, count);

	assert_tally_equal(&got, &expected);
}

static void run__counts_up_to_two_blocks(void **state)
{
	(void)state;
	ascending();
	for (size_t count = 0; count <= 300; count++)
		check_run(0, count);
	check_run(0, COUNT);
}

static void run__first_of_all_equal(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		set_key(i, 7);
	check_run(0, 1);
	check_run(0, 2);
	check_run(0, COUNT);
}

static void run__all_descending(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		set_key(i, COUNT - i);
	check_run(0, COUNT);
}

/* One fault at every place, blocks' borders among them. */
static void run__one_fault_anywhere(void **state)
{
	(void)state;
	ascending();
	for (size_t i = 1; i < 300; i++) {
		set_key(i, 2 * i); /* as its predecessor */
		check_run(0, 300);
		set_key(i, 2 * i - 1); /* less */
		check_run(0, 300);
		set_key(i, 2 * i + 2);
	}
}

/* Each of the ten bytes counts, as an unsigned one, and the eleventh not. */
static void run__key_bytes(void **state)
{
	struct tally t;

	(void)state;
	for (size_t byte = 0; byte < 11; byte++) {
		memset(records, 0x55, 200);
		records[byte] = 0x80;
		records[100 + byte] = 0x7f;
		t = tally_of(&benchmark, records, 2);
		assert_true(t.unordered_count == (byte < 10));
		assert_true(t.duplicate_count == (byte >= 10));
		records[100 + byte] = 0x81;
		t = tally_of(&benchmark, records, 2);
		assert_true(t.unordered_count == 0);
		assert_true(t.duplicate_count == (byte >= 10));
	}
}

/* --- any shape --------------------------------------------------------------
 */

/* More than the words that are prepared, and more than one block. */
#define ANY_SIZE_MAX 300
#define ANY_COUNT_MAX 300

static struct record_shape any_shape;
static uint8_t any_records[ANY_COUNT_MAX][ANY_SIZE_MAX];
static uint8_t any_bytes[ANY_COUNT_MAX * ANY_SIZE_MAX]; /* without gaps */
static size_t any_count;

static void draw_field(struct key_field *field, uint32_t record_size)
{
	do {
		*field = (struct key_field){
			.type = (enum key_type)(random_next() % 4),
			.length = 1 + random_next() % record_size,
			.is_descending = random_next() % 2,
		};
		if (field->type != KEY_BYTES)
			field->length = 1u << random_next() % 5;
		field->is_big_endian =
			field->type != KEY_BYTES && random_next() % 2;
		if (field->type == KEY_FLOAT)
			field->nans = (enum key_nans)(random_next() % 3);
	} while (!key_field_is_good(field) || field->length > record_size);
	field->offset = random_next() % (record_size - field->length + 1);
}

static void draw_shape(void)
{
	uint32_t size_max = random_next() % 2 ? ANY_SIZE_MAX : 20;
	struct key_list *keys = &any_shape.keys;

	any_shape = (struct record_shape){
		.size = 1 + random_next() % size_max,
	};
	keys->field_count = 1 + random_next() % KEY_FIELDS_MAX;
	for (unsigned i = 0; i < keys->field_count; i++)
		draw_field(&keys->fields[i], any_shape.size);
	key_list_complete(keys, any_shape.size);
}

/* The reference: the encoded keys as bytes. */
static int compare_encoded(const void *a, const void *b)
{
	static uint8_t encoded[2][KEY_FIELDS_MAX * ANY_SIZE_MAX];

	key_list_encode(&any_shape.keys, a, encoded[0]);
	key_list_encode(&any_shape.keys, b, encoded[1]);
	return memcmp(encoded[0], encoded[1], any_shape.keys.length);
}

/* Records that often have the same key, or keys that differ in one bit, in
 * order but for a few. */
static void draw_records(void)
{
	draw_shape();
	any_count = 1 + random_next() % ANY_COUNT_MAX;
	memset(any_records, (int)random_next(), sizeof(any_records));
	for (size_t i = 0; i < any_count; i++)
		for (int n = 0; n < 2; n++)
			any_records[i][random_next() % any_shape.size] ^=
				(uint8_t)(1 << random_next() % 8);
	qsort(any_records, any_count, ANY_SIZE_MAX, compare_encoded);
	for (uint64_t n = random_next() % 4; n > 0; n--)
		any_records[random_next() % any_count][0] ^= 0x80;
	for (size_t i = 0; i < any_count; i++)
		memcpy(any_bytes + i * any_shape.size, any_records[i],
		       any_shape.size);
}

static const uint8_t *any_record(size_t i)
{
	return any_bytes + i * any_shape.size;
}

static struct tally any_reference(void)
{
	struct tally t = { .record_count = any_count };

	for (size_t i = 0; i < any_count; i++) {
		int order = i == 0 ? -1
				   : compare_encoded(any_record(i - 1),
						     any_record(i));

		if (order > 0 && t.unordered_count++ == 0)
			t.first_unordered = i;
		t.duplicate_count += order == 0;
		t.checksum += checksum_scalar(any_record(i), any_shape.size, 1);
	}
	return t;
}

static void any_shape__whole(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		struct tally got, expected;

		draw_records();
		expected = any_reference();
		got = tally_of(&any_shape, any_bytes, any_count);
		assert_tally_equal(&got, &expected);
	}
}

/* Also parts of which only the sums are wanted. */
static void any_shape__random_parts(void **state)
{
	struct validator v;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct tally all = { 0 }, sums = { 0 }, expected, part;

		draw_records();
		validator_prepare(&v, &any_shape, CPU_SCALAR);
		for (size_t done = 0, now; done < any_count; done += now) {
			int order = VALIDATOR_NOTHING_BEFORE;

			now = random_next() % 40;
			now = MIN(now, any_count - done);
			if (done > 0)
				order = validator_compare(&v,
							  any_record(done - 1),
							  any_record(done));
			validator_run(&v, &part, any_record(done), now);
			assert_int_equal(tally_append(&all, &part, order), 0);
			validator_sum(&v, &part, any_record(done), now);
			assert_int_equal(tally_append(&sums, &part, order), 0);
		}
		expected = any_reference();
		assert_tally_equal(&all, &expected);
		assert_true(sums.record_count == expected.record_count);
		assert_true(sums.checksum == expected.checksum);
	}
}

/* Add the parts whose bits are set, of 7 records each. */
static void add_some_parts(struct tally *all, uint64_t parts)
{
	const size_t most = 7;
	struct validator v;

	validator_prepare(&v, &any_shape, CPU_SCALAR);
	for (size_t first = 0; first < any_count; first += most) {
		int order = VALIDATOR_NOTHING_BEFORE;
		struct tally part;

		if ((parts >> first / most % 64 & 1) == 0)
			continue;
		if (first > 0)
			order = validator_compare(&v, any_record(first - 1),
						  any_record(first));
		validator_run(&v, &part, any_record(first),
			      MIN(most, any_count - first));
		assert_int_equal(tally_add(all, &part, first, order), 0);
	}
}

static void any_shape__parts_in_any_order(void **state)
{
	(void)state;
	for (int round = 0; round < 500; round++) {
		uint64_t early = random_next();
		struct tally all = { 0 }, expected;

		draw_records();
		add_some_parts(&all, early);
		add_some_parts(&all, ~early);
		expected = any_reference();
		assert_tally_equal(&all, &expected);
	}
}

/* Three of 16 MiB, of which the last two differ in the last byte only. */
static void any_shape__largest_record(void **state)
{
	struct record_shape shape =
		RECORD_SHAPE_OF_SLICE(RECORD_SIZE_MAX, 0, RECORD_SIZE_MAX);
	uint8_t *three = calloc(3, RECORD_SIZE_MAX);
	struct tally t;

	(void)state;
	assert_non_null(three);
	t = tally_of(&shape, three, 3);
	assert_true(t.duplicate_count == 2 && t.unordered_count == 0);
	three[2 * RECORD_SIZE_MAX - 1] = 1;
	t = tally_of(&shape, three, 3);
	assert_true(t.duplicate_count == 0 && t.unordered_count == 1);
	assert_true(t.first_unordered == 2);
	free(three);
}

/* --- summaries --------------------------------------------------------------
 */

static void append__empty_parts(void **state)
{
	struct summary empty = { 0 }, sum = { 0 }, one;

	(void)state;
	ascending();
	one = reference(0, 10);
	assert_int_equal(summary_append(&sum, &empty), 0);
	assert_true(sum.tally.record_count == 0);
	assert_int_equal(summary_append(&sum, &one), 0);
	assert_summary_equal(&sum, &one);
	assert_int_equal(summary_append(&sum, &empty), 0);
	assert_summary_equal(&sum, &one);
}

static void check_cut(size_t cut, size_t count)
{
	struct summary whole = reference(0, count);
	struct summary sum = reference(0, cut);
	struct summary rest = reference(cut, count - cut);

	assert_int_equal(summary_append(&sum, &rest), 0);
	assert_summary_equal(&sum, &whole);
}

static void append__fault_at_the_border(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= 20; cut++) {
		ascending();
		check_cut(cut, 20);
		set_key(cut, 2 * cut);
		check_cut(cut, 20);
		set_key(cut, 1);
		check_cut(cut, 20);
		set_key(15, 3);
		check_cut(cut, 20);
	}
}

static void append__random_parts(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct summary sum = { 0 };
		struct summary whole;
		/* From many faults to none, by how far keys may stray. */
		unsigned stray = (unsigned)(random_next() % 20);

		for (size_t i = 0; i < COUNT; i++)
			set_key(i, 4 * i + random_next() % (stray + 1));
		for (size_t done = 0, now; done < COUNT; done += now) {
			struct summary part;

			now = random_next() % 300;
			now = MIN(now, COUNT - done);
			part = reference(done, now);
			assert_int_equal(summary_append(&sum, &part), 0);
		}
		whole = reference(0, COUNT);
		assert_summary_equal(&sum, &whole);
	}
}

static void append__overflow_changes_nothing(void **state)
{
	struct summary big, before, one;

	(void)state;
	ascending();
	one = reference(5, 1);
	for (int field = 0; field < 4; field++) {
		big = reference(0, 2);
		if (field == 0)
			big.tally.record_count = -(u128)1;
		else if (field == 1)
			big.tally.checksum = -(u128)1;
		else if (field == 2)
			big.tally.duplicate_count = -(u128)1;
		else
			big.tally.unordered_count = -(u128)1;
		if (field == 2)
			memcpy(big.last_record, one.first_record, 100);
		if (field == 3)
			memset(big.last_record, 0xff, 100);
		before = big;
		assert_int_equal(summary_append(&big, &one), -EOVERFLOW);
		assert_summary_equal(&big, &before);
	}
}

static void encode__layout(void **state)
{
	uint8_t bytes[SUMMARY_BYTES];
	struct summary s = {
		.tally.first_unordered = (u128)0x0102030405060708 << 64 | 0x11,
		.tally.unordered_count = (u128)2 << 64 | 0x22,
		.tally.record_count = (u128)3 << 64 | 0x33,
		.tally.duplicate_count = (u128)4 << 64 | 0x44,
		.tally.checksum = (u128)5 << 64 | 0x55,
	};
	static const uint8_t first[16] = { 8, 7, 6, 5, 4, 3, 2, 1, 0x11 };

	(void)state;
	memset(s.first_record, 0xaa, 100);
	memset(s.last_record, 0xbb, 100);
	summary_encode(&s, bytes);
	assert_memory_equal(bytes, first, 16);
	for (uint8_t i = 1; i < 5; i++) {
		assert_int_equal(load_le64(bytes + 16 * i), i + 1);
		assert_int_equal(load_le64(bytes + 16 * i + 8), (i + 1) * 0x11);
	}
	assert_int_equal(bytes[80], 0xaa);
	assert_int_equal(bytes[179], 0xaa);
	assert_int_equal(bytes[180], 0xbb);
	assert_int_equal(bytes[279], 0xbb);
}

static void decode__round_trip(void **state)
{
	uint8_t bytes[SUMMARY_BYTES];

	(void)state;
	ascending();
	set_key(17, 0);
	set_key(90, 180);
	for (size_t count = 1; count < 100; count++) {
		struct summary s = reference(0, count), got;

		summary_encode(&s, bytes);
		assert_int_equal(summary_decode(&got, bytes), 0);
		assert_summary_equal(&got, &s);
	}
}

static int decode(const struct summary *s)
{
	uint8_t bytes[SUMMARY_BYTES];
	struct summary got;

	summary_encode(s, bytes);
	return summary_decode(&got, bytes);
}

static void decode__impossible_counts(void **state)
{
	struct summary good, s;

	(void)state;
	ascending();
	set_key(4, 0); /* record 4 unordered, 5 to 9 fine */
	good = reference(0, 10);
	assert_int_equal(decode(&good), 0);

	s = good;
	s.tally.record_count = 0;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.tally.unordered_count = 10;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.tally.unordered_count = 7; /* but only 6 records from the first on */
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.unordered_count = 6;
	assert_int_equal(decode(&s), 0);
	s = good;
	s.tally.duplicate_count = 9;
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.duplicate_count = 8;
	assert_int_equal(decode(&s), 0);
	s.tally.duplicate_count = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.tally.first_unordered = 10;
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.first_unordered = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.first_unordered = 0;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.tally.unordered_count = 0;
	assert_int_equal(decode(&s), -EBADMSG);
}

static void decode__impossible_checksum(void **state)
{
	struct summary s;

	(void)state;
	ascending();
	s = reference(0, 10);
	s.tally.checksum = (u128)10 * UINT32_MAX;
	assert_int_equal(decode(&s), 0);
	s.tally.checksum++;
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.checksum = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s.tally.record_count = -(u128)1;
	assert_int_equal(decode(&s), 0);
}

static void decode__impossible_records(void **state)
{
	struct summary s;

	(void)state;
	ascending();
	s = reference(0, 1);
	s.last_record[99] ^= 1;
	assert_int_equal(decode(&s), -EBADMSG);
	s = reference(0, 1);
	s.tally.checksum ^= 1;
	assert_int_equal(decode(&s), -EBADMSG);
	s = reference(0, 10);
	s.first_record[0] = 0xff; /* in order, yet the last is less */
	assert_int_equal(decode(&s), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__counts_up_to_two_blocks),
		cmocka_unit_test(run__first_of_all_equal),
		cmocka_unit_test(run__all_descending),
		cmocka_unit_test(run__one_fault_anywhere),
		cmocka_unit_test(run__key_bytes),
		cmocka_unit_test(any_shape__whole),
		cmocka_unit_test(any_shape__random_parts),
		cmocka_unit_test(any_shape__parts_in_any_order),
		cmocka_unit_test(any_shape__largest_record),
		cmocka_unit_test(append__empty_parts),
		cmocka_unit_test(append__fault_at_the_border),
		cmocka_unit_test(append__random_parts),
		cmocka_unit_test(append__overflow_changes_nothing),
		cmocka_unit_test(encode__layout),
		cmocka_unit_test(decode__round_trip),
		cmocka_unit_test(decode__impossible_counts),
		cmocka_unit_test(decode__impossible_checksum),
		cmocka_unit_test(decode__impossible_records),
	};

	random_begin();
	return cmocka_run_group_tests_name("validator", tests, NULL, NULL);
}
