/*
 * test_validator.c - order and duplicates at every border, summaries that add
 * up, and summaries from outside that can't be true
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
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

		if (order > 0 && s.unordered_count++ == 0)
			s.first_unordered = i;
		s.duplicate_count += order == 0;
		s.checksum += checksum_scalar(record, 100, 1);
		s.record_count++;
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

static void check_run(size_t first, size_t count)
{
	struct summary expected = reference(first, count);
	struct summary got;

	validator_run(&got, records + first * 100, count, checksum_scalar);
	assert_summary_equal(&got, &expected);
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
	struct summary s;

	(void)state;
	for (size_t byte = 0; byte < 11; byte++) {
		memset(records, 0x55, 200);
		records[byte] = 0x80;
		records[100 + byte] = 0x7f;
		validator_run(&s, records, 2, checksum_scalar);
		assert_true(s.unordered_count == (byte < 10));
		assert_true(s.duplicate_count == (byte >= 10));
		records[100 + byte] = 0x81;
		validator_run(&s, records, 2, checksum_scalar);
		assert_true(s.unordered_count == 0);
		assert_true(s.duplicate_count == (byte >= 10));
	}
}

static void append__empty_parts(void **state)
{
	struct summary empty = { 0 }, sum = { 0 }, one;

	(void)state;
	ascending();
	one = reference(0, 10);
	assert_int_equal(summary_append(&sum, &empty), 0);
	assert_true(sum.record_count == 0);
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
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10)
			      : (unsigned)time(NULL);

	(void)state;
	print_message("SEED=%u\n", seed);
	srandom(seed);
	for (int round = 0; round < 200; round++) {
		struct summary sum = { 0 };
		struct summary whole;
		/* From many faults to none, by how far keys may stray. */
		unsigned stray = (unsigned)random() % 20;

		for (size_t i = 0; i < COUNT; i++)
			set_key(i, 4 * i + (uint64_t)random() % (stray + 1));
		for (size_t done = 0, now; done < COUNT; done += now) {
			struct summary part;

			now = (size_t)random() % 300;
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
			big.record_count = -(u128)1;
		else if (field == 1)
			big.checksum = -(u128)1;
		else if (field == 2)
			big.duplicate_count = -(u128)1;
		else
			big.unordered_count = -(u128)1;
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
		.first_unordered = (u128)0x0102030405060708 << 64 | 0x11,
		.unordered_count = (u128)2 << 64 | 0x22,
		.record_count = (u128)3 << 64 | 0x33,
		.duplicate_count = (u128)4 << 64 | 0x44,
		.checksum = (u128)5 << 64 | 0x55,
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
	s.record_count = 0;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.unordered_count = 10;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.unordered_count = 7; /* but only 6 records from the first on */
	assert_int_equal(decode(&s), -EBADMSG);
	s.unordered_count = 6;
	assert_int_equal(decode(&s), 0);
	s = good;
	s.duplicate_count = 9;
	assert_int_equal(decode(&s), -EBADMSG);
	s.duplicate_count = 8;
	assert_int_equal(decode(&s), 0);
	s.duplicate_count = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.first_unordered = 10;
	assert_int_equal(decode(&s), -EBADMSG);
	s.first_unordered = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s.first_unordered = 0;
	assert_int_equal(decode(&s), -EBADMSG);
	s = good;
	s.unordered_count = 0;
	assert_int_equal(decode(&s), -EBADMSG);
}

static void decode__impossible_checksum(void **state)
{
	struct summary s;

	(void)state;
	ascending();
	s = reference(0, 10);
	s.checksum = (u128)10 * UINT32_MAX;
	assert_int_equal(decode(&s), 0);
	s.checksum++;
	assert_int_equal(decode(&s), -EBADMSG);
	s.checksum = -(u128)1;
	assert_int_equal(decode(&s), -EBADMSG);
	s.record_count = -(u128)1;
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
	s.checksum ^= 1;
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

	return cmocka_run_group_tests_name("validator", tests, NULL, NULL);
}
