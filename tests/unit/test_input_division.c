/*
 * test_input_division.c - which rank reads which part of a shared input
 *
 * Ranks are played that read at rates of their own, which change.  Whatever
 * these are, each record is read once, within the bounds of each rank; ranks of
 * steady rates end at about the same time; and who has taken what was not its
 * own is named.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "cluster/agreement/input_division.h"
#include "random.h"

#define ROUNDS 300
#define RECORDS_MAX 100000
#define STEPS_MAX 20000

static uint64_t random_below(uint64_t bound)
{
	return random_next() % bound;
}

/* --- a world of ranks ------------------------------------------------------
 */

struct reader {
	double rate; /* records in a second */
	uint64_t grain;
	uint64_t told, taken;
	double read, idle_since;
	uint64_t had; /* ranges that are no neighbours */
};

static struct input_division division;
static struct reader readers[RANK_NODES_MAX];
static uint8_t has_been_read[RECORDS_MAX];
static uint64_t whole;
static unsigned rank_count;

static void begin(unsigned count, uint64_t records, unsigned given_max)
{
	unsigned most[RANK_NODES_MAX];

	rank_count = count;
	whole = records;
	memset(has_been_read, 0, sizeof(has_been_read));
	memset(readers, 0, sizeof(readers));
	for (unsigned i = 0; i < count; i++) {
		most[i] = given_max;
		readers[i].rate = 1000.0 + (double)random_below(100000);
		readers[i].grain = 1 + random_below(1 + records / 50);
	}
	input_division_init(&division, records, count, most);
}

/* The records behind those that were told of before: none has been read. */
static void mark(unsigned rank, uint64_t count)
{
	const struct input_part *part = &division.parts[rank];

	for (unsigned r = 0; r < part->range_count && count > 0; r++) {
		uint64_t some = MIN(count, part->ranges[r].record_count);
		uint8_t *at = has_been_read + part->ranges[r].first_record;

		for (uint64_t i = 0; i < some; i++)
			assert_int_equal(at[i]++, 0);
		count -= some;
	}
	assert_int_equal(count, 0);
}

/* So many seconds pass: the reader goes on with what it has, and takes a batch
 * more meanwhile. */
static struct input_division_told go_on(unsigned rank, double seconds)
{
	struct reader *reader = &readers[rank];
	struct input_part *part = &division.parts[rank];
	double most = (double)(reader->told + part->left);
	uint64_t taken;

	reader->read = MIN(most, reader->read + reader->rate * seconds);
	taken = MIN((uint64_t)reader->read + reader->grain, (uint64_t)most);
	taken = MAX(taken, reader->told);
	mark(rank, taken - reader->told);
	reader->told = taken;
	return (struct input_division_told){
		.taken = taken,
		.read = (uint64_t)reader->read,
		.rate = (uint64_t)reader->rate,
		.grain = reader->grain,
	};
}

static void check_bounds(void)
{
	uint64_t left = 0;

	for (unsigned i = 0; i < rank_count; i++) {
		const struct input_part *part = &division.parts[i];
		uint64_t sum = 0;

		for (unsigned r = 0; r < part->range_count; r++) {
			assert_true(part->ranges[r].record_count > 0);
			sum += part->ranges[r].record_count;
		}
		assert_int_equal(sum, part->left);
		assert_in_range(part->range_count, 0, READING_RANGES_MAX);
		assert_true(part->taken + part->left <= division.records_max);
		assert_true(part->given <= MAX(1, part->given_max));
		left += part->taken + part->left;
	}
	assert_int_equal(left, whole);
}

/* Until nothing is divided any more; returns when the last rank has read all
 * that it has. */
static double play(bool changes)
{
	struct input_division_told told[RANK_NODES_MAX];
	double now = 0, end = 0;
	unsigned steps = 0, bad;

	while (!division.is_final) {
		double pause = (double)division.pause_ns / 1e9;

		assert_true(++steps < STEPS_MAX);
		assert_true(division.pause_ns > 0);
		for (unsigned i = 0; i < rank_count; i++) {
			told[i] = go_on(i, pause);
			if (changes && random_below(10) == 0)
				readers[i].rate =
					100.0 + (double)random_below(100000);
		}
		now += pause;
		assert_int_equal(input_division_update(&division, told, &bad),
				 0);
		check_bounds();
	}
	for (unsigned i = 0; i < rank_count; i++) {
		double rest =
			(double)(readers[i].told + division.parts[i].left) -
			readers[i].read;

		mark(i, division.parts[i].left);
		end = MAX(end, now + rest / readers[i].rate);
	}
	for (uint64_t i = 0; i < whole; i++)
		assert_int_equal(has_been_read[i], 1);
	return end;
}

/* --- tests -----------------------------------------------------------------
 */

static void input_division__each_record_once(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned count = 1 + (unsigned)random_below(
					     round % 10 ? 8 : RANK_NODES_MAX);

		begin(count, random_below(RECORDS_MAX),
		      (unsigned)random_below(6));
		play(round % 2);
	}
}

/* Within a few batches of the slowest, if no bound is met. */
static void input_division__all_end_together(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		double rates = 0, grain = 0, ideal, equal = 0, end;
		bool is_bounded = false;

		begin(2 + (unsigned)random_below(7), RECORDS_MAX,
		      READING_RANGES_MAX);
		for (unsigned i = 0; i < rank_count; i++) {
			readers[i].rate = 40000 + (double)random_below(60000);
			readers[i].grain = 1 + random_below(200);
			rates += readers[i].rate;
			grain = MAX(grain, (double)readers[i].grain);
			equal = MAX(equal, (double)whole / rank_count /
						   readers[i].rate);
		}
		ideal = (double)whole / rates;
		end = play(false);
		for (unsigned i = 0; i < rank_count; i++)
			is_bounded |= readers[i].rate * ideal >
				      0.95 * (double)division.records_max;
		assert_true(end <= equal + 5 * grain / 40000);
		if (is_bounded)
			continue;
		/* The slowest rank has a batch or two when others have none. */
		assert_true(end <= ideal * 1.02 + 5 * grain / 40000);
	}
}

/* Ranks that are as fast as each other keep their parts. */
static void input_division__equal_ranks_keep_theirs(void **state)
{
	(void)state;
	begin(4, RECORDS_MAX, READING_RANGES_MAX);
	for (unsigned i = 0; i < 4; i++) {
		readers[i].rate = 50000 + 1000.0 * i;
		readers[i].grain = 500;
	}
	play(false);
	for (unsigned i = 0; i < 4; i++)
		assert_in_range(division.parts[i].given, 1, 2);
}

/* No rank has a rate yet: nothing moves, and they ask again soon. */
static void input_division__without_rates(void **state)
{
	struct input_division_told told[3] = { 0 };
	unsigned bad;

	(void)state;
	begin(3, RECORDS_MAX, 8);
	told[0] = (struct input_division_told){
		.taken = 30000,
		.read = 30000,
		.grain = 10,
	};
	assert_int_equal(input_division_update(&division, told, &bad), 0);
	assert_int_equal(division.parts[0].taken, 30000);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(division.parts[i].given, 1);
	assert_false(division.is_final);
	assert_in_range(division.pause_ns, 1, 100000000);
	/* One is known: the other two are taken to be as fast. */
	told[1].rate = 1000;
	assert_int_equal(input_division_update(&division, told, &bad), 0);
	check_bounds();
	assert_int_equal(division.parts[0].given, 2);
}

static void input_division__a_lie_is_named(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct input_division_told told[8];
		unsigned liar, bad = 99;

		begin(1 + (unsigned)random_below(8),
		      1000 + random_below(RECORDS_MAX - 1000), 4);
		for (unsigned i = 0; i < rank_count; i++)
			told[i] = go_on(i, 0.001);
		assert_int_equal(input_division_update(&division, told, &bad),
				 0);
		liar = (unsigned)random_below(rank_count);
		for (unsigned i = 0; i < rank_count; i++)
			told[i] = go_on(i, 0.001);
		if (random_below(2))
			told[liar].taken = division.parts[liar].taken - 1;
		else
			told[liar].taken =
				division.parts[liar].taken +
				division.parts[liar].left + 1 +
				(random_below(2) ? random_next() >> 2 : 0);
		assert_int_equal(input_division_update(&division, told, &bad),
				 -EBADMSG);
		assert_int_equal(bad, liar);
	}
}

/* The other three may be any number. */
static void input_division__any_number(void **state)
{
	static const uint64_t corners[] = { 0, 1, 1000, UINT64_MAX >> 1,
					    UINT64_MAX };

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct input_division_told told[8];
		unsigned bad;

		begin(1 + (unsigned)random_below(8), random_below(RECORDS_MAX),
		      5);
		for (unsigned turn = 0; turn < 5; turn++) {
			for (unsigned i = 0; i < rank_count; i++) {
				told[i] = go_on(i, 0.001);
				told[i].read = corners[random_below(5)];
				told[i].rate = corners[random_below(5)];
				told[i].grain = corners[random_below(5)];
			}
			assert_int_equal(
				input_division_update(&division, told, &bad),
				0);
			check_bounds();
		}
	}
}

/* The largest input of the most ranks. */
static void input_division__largest(void **state)
{
	const uint64_t records = (uint64_t)1 << 52;
	struct input_division_told told[RANK_NODES_MAX];
	unsigned most[RANK_NODES_MAX], bad;
	uint64_t sum = 0;

	(void)state;
	for (unsigned i = 0; i < RANK_NODES_MAX; i++) {
		most[i] = READING_RANGES_MAX;
		told[i] = (struct input_division_told){
			.taken = (uint64_t)i << 25,
			.rate = 1 + i % 3,
			.grain = 1000,
		};
	}
	input_division_init(&division, records, RANK_NODES_MAX, most);
	assert_int_equal(input_division_update(&division, told, &bad), 0);
	for (unsigned i = 0; i < RANK_NODES_MAX; i++)
		sum += division.parts[i].taken + division.parts[i].left;
	assert_true(sum == records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_division__each_record_once),
		cmocka_unit_test(input_division__all_end_together),
		cmocka_unit_test(input_division__equal_ranks_keep_theirs),
		cmocka_unit_test(input_division__without_rates),
		cmocka_unit_test(input_division__a_lie_is_named),
		cmocka_unit_test(input_division__any_number),
		cmocka_unit_test(input_division__largest),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
