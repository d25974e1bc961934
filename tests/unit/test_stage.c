/*
 * test_stage.c - what the clocks of threads and the kernel's queues add up to
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/stage.h"
#include "random.h"

static struct stage_table table;

static int forget(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

/* All that the table has of threads, in ns. */
static uint64_t add_up(void)
{
	uint64_t ns = 0;

	for (unsigned s = 0; s < STAGES; s++) {
		ns += table.sums[s].busy_ns;
		for (unsigned c = 0; c < STAGE_CAUSES; c++)
			ns += table.sums[s].waits[c].ns;
	}
	return ns;
}

/* --- a thread's clock ----------------------------------------------------- */

/* Whatever a thread does, its time is counted once.  It ends its last unit. */
static void clock__counts_all_of_the_time(void **state)
{
	struct stage_leader leader = { 0 };
	struct stage_clock clock;
	uint64_t begin_ns = clock_now_ns(), end_ns, bytes = 0;

	(void)state;
	stage_begin(&clock, &table, STAGE_ORDER, &leader, begin_ns);
	for (unsigned i = 0; i < 10000; i++) {
		enum stage stage = (enum stage)(random_next() % STAGES);
		uint64_t some = random_next() % (STAGE_UNIT_BYTES / 2);

		switch (random_next() % 5) {
		case 0:
			stage_leader_add(&leader, STAGE_FOR_EMPTY,
					 random_next() % 300);
			stage_resume(&clock, STAGE_FOR_TEAM);
			break;
		case 1:
			stage_pause(&clock);
			break;
		case 2:
			stage_wait(&clock, STAGE_FOR_WRITE);
			break;
		case 3:
			stage_part(&clock, stage, some);
			bytes += some;
			break;
		default:
			stage_unit(&clock, stage, some);
			bytes += some;
		}
	}
	stage_unit(&clock, STAGE_PUT, 0);
	end_ns = clock_now_ns();
	stage_end(&clock, end_ns);
	assert_int_equal(add_up(), end_ns - begin_ns);
	for (unsigned s = 0; s < STAGES; s++)
		bytes -= table.sums[s].bytes;
	assert_int_equal(bytes, 0);
	/* Waits stand by the thread's own stage. */
	assert_true(table.sums[STAGE_ORDER].waits[STAGE_FOR_WRITE].ns > 0);
	assert_int_equal(table.sums[STAGE_PUT].waits[STAGE_FOR_WRITE].ns, 0);
}

/* A unit of parts ends when it is large enough. */
static void clock__joins_parts(void **state)
{
	struct stage_clock clock;

	(void)state;
	stage_begin(&clock, &table, STAGE_BUCKET, NULL, clock_now_ns());
	for (unsigned i = 0; i < 10; i++)
		stage_part(&clock, STAGE_BUCKET, STAGE_UNIT_BYTES / 4);
	assert_int_equal(table.sums[STAGE_BUCKET].units, 2);
	stage_unit(&clock, STAGE_BUCKET, 0);
	assert_int_equal(table.sums[STAGE_BUCKET].units, 3);
	stage_unit(&clock, STAGE_BUCKET, 0);
	assert_int_equal(table.sums[STAGE_BUCKET].units, 3);
	assert_int_equal(table.sums[STAGE_BUCKET].bytes,
			 10 * STAGE_UNIT_BYTES / 4);
}

/* The others of a team have waited for what their leader says, but never for
 * longer than they had no work, and not for what was before. */
static void clock__waits_as_the_leader(void **state)
{
	struct stage_leader leader = { 0 };
	struct stage_sum *sum = &table.sums[STAGE_BUCKET];
	uint64_t begin_ns = clock_now_ns() - NS_PER_S;
	struct stage_clock clock;

	(void)state;
	stage_leader_add(&leader, STAGE_FOR_WAVE, NS_PER_S);
	stage_begin(&clock, &table, STAGE_BUCKET, &leader, begin_ns);
	stage_leader_add(&leader, STAGE_FOR_FILL, NS_PER_S / 4);
	stage_resume(&clock, STAGE_FOR_TEAM);
	assert_int_equal(sum->waits[STAGE_FOR_FILL].ns, NS_PER_S / 4);
	assert_int_equal(sum->waits[STAGE_FOR_FILL].count, 1);
	assert_int_equal(sum->waits[STAGE_FOR_WAVE].ns, 0);
	assert_true(sum->waits[STAGE_FOR_TEAM].ns >= NS_PER_S / 4 * 3);
	stage_leader_add(&leader, STAGE_FOR_FILL, 1000 * (uint64_t)NS_PER_S);
	stage_end(&clock, clock.lap_ns + 7);
	assert_int_equal(sum->waits[STAGE_FOR_FILL].ns, NS_PER_S / 4 + 7);
	assert_int_equal(sum->waits[STAGE_FOR_FILL].count, 1);
	assert_int_equal(sum->waits[STAGE_FOR_END].ns, 0);
}

static void clock__measures_nothing(void **state)
{
	struct stage_clock clock = { 0 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct stage_clock *none = i == 0 ? &clock : NULL;

		stage_resume(none, STAGE_FOR_TEAM);
		stage_part(none, STAGE_BUCKET, 2 * STAGE_UNIT_BYTES);
		stage_pause(none);
		stage_wait(none, STAGE_FOR_READ);
		stage_unit(none, STAGE_BUCKET, 9);
		stage_end(none, 9);
	}
	assert_int_equal(clock.lap_ns + clock.unit_bytes, 0);
	assert_int_equal(add_up(), 0);
}

/* --- the kernel's queues -------------------------------------------------- */

/* What is under way at a time counts once, and so does no time in which nothing
 * is, or nobody looks.  Times are as if the clock had been a second ahead. */
static void queue__is_busy_while_anything_is_under_way(void **state)
{
	struct stage_sum *sum = &table.sums[STAGE_READ];
	uint64_t since_ns = clock_now_ns(), begin_ns[3];
	struct stage_queue queue = { 0 };

	(void)state;
	stage_queue_resume(&queue, sum);
	queue.seen_ns -= NS_PER_S;
	for (unsigned i = 0; i < 3; i++)
		begin_ns[i] = stage_queue_begin(&queue);
	assert_true(sum->busy_ns <= clock_now_ns() - since_ns);
	queue.seen_ns -= NS_PER_S;
	for (unsigned i = 0; i < 3; i++)
		stage_queue_end(&queue, begin_ns[i], i == 2 ? 0 : 100);
	assert_true(sum->busy_ns >= NS_PER_S);
	/* That without bytes has failed. */
	assert_int_equal(sum->units, 2);
	assert_int_equal(sum->bytes, 200);
	begin_ns[0] = stage_queue_begin(&queue);
	queue.seen_ns -= NS_PER_S;
	stage_queue_resume(&queue, sum);
	stage_queue_end(&queue, begin_ns[0], 100);
	assert_true(sum->busy_ns <= NS_PER_S + clock_now_ns() - since_ns);
	stage_queue_resume(&queue, NULL);
	stage_queue_end(&queue, stage_queue_begin(&queue), 100);
	assert_int_equal(sum->bytes, 300);
	assert_int_equal(queue.under_way, 0);
}

/* --- medians -------------------------------------------------------------- */

/* The median of units that took about this, where one in three took less and
 * one in three took more. */
static uint64_t median_around(uint64_t ns)
{
	struct stage_sum *sum = &table.sums[STAGE_WRITE];
	struct stage_queue queue = { .sum = sum };
	struct stage_result result;

	forget(NULL);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t took_ns = i % 3 == 0	? ns / 3
				   : i % 3 == 1 ? ns
						: 3 * ns;

		stage_queue_begin(&queue);
		stage_queue_end(&queue, clock_now_ns() - took_ns, 1);
	}
	stage_fill_result(&result, sum, 4);
	assert_int_equal(result.units, 300);
	assert_int_equal(result.workers, 4);
	return result.median_ns;
}

static void median__is_near(void **state)
{
	(void)state;
	/* Reading a clock takes some of it; these are long. */
	for (uint64_t ns = NS_PER_S; ns < 100 * (uint64_t)NS_PER_S;
	     ns += ns / 11)
		assert_in_range(median_around(ns), ns - ns / 16, ns + ns / 14);
	/* Any time has a class. */
	assert_true(median_around(1) > 0);
	assert_true(median_around(UINT64_MAX / 4) > 0);
}

static void median__of_nothing(void **state)
{
	struct stage_result result;

	(void)state;
	stage_fill_result(&result, &table.sums[STAGE_READ], 1);
	assert_int_equal(result.median_ns, 0);
	assert_int_equal(result.units, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(clock__counts_all_of_the_time, forget),
		cmocka_unit_test_setup(clock__joins_parts, forget),
		cmocka_unit_test_setup(clock__waits_as_the_leader, forget),
		cmocka_unit_test_setup(clock__measures_nothing, forget),
		cmocka_unit_test_setup(
			queue__is_busy_while_anything_is_under_way, forget),
		cmocka_unit_test_setup(median__is_near, forget),
		cmocka_unit_test_setup(median__of_nothing, forget),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
