/*
 * test_reading_claims.c - batches of a shared input, as they are claimed
 *
 * A leader fills batches while a worker reads ahead and a third thread holds
 * and gives: what has been held and given, and nothing else, is claimed once,
 * in order.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/read/reading_claims.h"
#include "random.h"

#define CAPACITY 10

static struct reading_claims claims;

static void begin(void)
{
	reading_claims_open(&claims, CAPACITY);
}

static void expect_batch(uint64_t number, bool waits, uint64_t first,
			 uint64_t count)
{
	struct input_range batch;

	assert_true(reading_claims_batch(&claims, number, waits, &batch));
	assert_int_equal(batch.first_record, first);
	assert_int_equal(batch.record_count, count);
}

static bool is_known(uint64_t number)
{
	struct input_range batch;

	return reading_claims_batch(&claims, number, false, &batch);
}

static void give(uint64_t first, uint64_t count, bool is_final)
{
	reading_claims_give(&claims, &(struct input_range){ first, count },
			    count > 0, is_final);
}

static void reading_claims__batch_by_batch(void **state)
{
	const struct input_range ranges[] = { { 100, 25 }, { 500, 10 } };

	(void)state;
	begin();
	assert_false(is_known(0));
	reading_claims_give(&claims, ranges, 2, true);
	assert_int_equal(reading_claims_left(&claims, 0), 4);
	expect_batch(0, false, 100, 10);
	/* Workers are no more than a batch ahead of the leader. */
	assert_false(is_known(1));
	expect_batch(0, true, 100, 10);
	expect_batch(1, false, 110, 10);
	expect_batch(1, true, 110, 10);
	assert_int_equal(reading_claims_left(&claims, 2), 2);
	expect_batch(2, true, 120, 5);
	expect_batch(3, true, 500, 10);
	assert_false(reading_claims_batch(&claims, 4, true,
					  &(struct input_range){ 0 }));
	assert_int_equal(reading_claims_left(&claims, 4), 0);
	reading_claims_close(&claims);
}

/* One batch more may be claimed while the rest is divided, if none is claimed
 * ahead. */
static void reading_claims__hold(void **state)
{
	(void)state;
	begin();
	assert_int_equal(reading_claims_hold(&claims), 0);
	give(0, 35, false);
	assert_int_equal(reading_claims_left(&claims, 0), UINT64_MAX);
	expect_batch(0, true, 0, 10);
	assert_int_equal(reading_claims_hold(&claims), 20);
	expect_batch(1, true, 10, 10);
	assert_false(is_known(2));
	give(20, 5, false);
	expect_batch(2, true, 20, 5);
	/* Held, and not claimed when more is given. */
	assert_int_equal(reading_claims_hold(&claims), 25);
	give(60, 30, false);
	assert_int_equal(reading_claims_hold(&claims), 35);
	give(80, 20, false);
	expect_batch(3, true, 60, 10);
	expect_batch(4, false, 80, 10);
	assert_int_equal(reading_claims_hold(&claims), 45);
	assert_false(is_known(5));
	give(90, 10, true);
	expect_batch(4, true, 80, 10);
	expect_batch(5, true, 90, 10);
	assert_false(reading_claims_batch(&claims, 6, true,
					  &(struct input_range){ 0 }));
	reading_claims_close(&claims);
}

/* --- threads ---------------------------------------------------------------
 */

static void nap(uint64_t random)
{
	const struct timespec pause = { .tv_nsec = (long)(random % 50000) };

	nanosleep(&pause, NULL);
}

struct leader {
	uint64_t next, count; /* what has come, without a gap */
	bool is_good;
};

static void *lead(void *context)
{
	struct leader *leader = context;
	struct input_range batch;
	uint64_t number = 0;

	leader->is_good = true;
	while (reading_claims_batch(&claims, number, true, &batch)) {
		struct input_range ahead;

		leader->is_good = leader->is_good &&
				  batch.record_count <= CAPACITY &&
				  batch.first_record == leader->next;
		leader->next += batch.record_count;
		leader->count += batch.record_count;
		number++;
		if (number % 3 == 0)
			reading_claims_batch(&claims, number, false, &ahead);
		if (number % 4 == 0)
			nap(number * 7919);
	}
	return NULL;
}

/* All that was held is claimed, and what was given behind it. */
static void reading_claims__by_threads(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct leader leader = { 0 };
		uint64_t end = 0;
		pthread_t thread;

		begin();
		pthread_create(&thread, NULL, lead, &leader);
		for (unsigned turn = 0; turn < 30; turn++) {
			uint64_t held = reading_claims_hold(&claims);

			assert_true(held <= end);
			nap(random_next());
			/* What was behind is another rank's now, or ours. */
			end = held + random_next() % 40;
			give(held, end - held, turn == 29);
			nap(random_next());
		}
		pthread_join(thread, NULL);
		assert_true(leader.is_good);
		assert_int_equal(leader.count, end);
		assert_int_equal(claims.claimed, end);
		reading_claims_close(&claims);
	}
}

static void reading_claims__stop(void **state)
{
	struct leader leader = { 0 };
	pthread_t thread;

	(void)state;
	begin();
	pthread_create(&thread, NULL, lead, &leader);
	nap(random_next());
	reading_claims_stop(&claims);
	pthread_join(thread, NULL);
	assert_int_equal(leader.count, 0);
	reading_claims_close(&claims);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_claims__batch_by_batch),
		cmocka_unit_test(reading_claims__hold),
		cmocka_unit_test(reading_claims__by_threads),
		cmocka_unit_test(reading_claims__stop),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
