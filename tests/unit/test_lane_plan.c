/*
 * test_lane_plan.c - files are cut into lanes, ranges and batches, none of
 * which leaves a record out
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/plan/lane_plan.h"
#include "random_shape.h"

#define FILES_MAX 40
#define BATCHES_MAX 20000

static struct lane_file files[FILES_MAX];
static struct lane_plan plan;

/* --- lanes and ranges ------------------------------------------------------
 */

static void set_files(const char *devices, uint64_t record_count)
{
	for (unsigned f = 0; devices[f]; f++)
		files[f] = (struct lane_file){
			.device = (dev_t)devices[f],
			.record_count = record_count,
		};
}

static void make(const char *devices, unsigned lane_count)
{
	unsigned count = (unsigned)strlen(devices);

	set_files(devices, 10);
	lane_plan_make(&plan, files, count, lane_count);
}

/* "aab": ranges of lanes 0, 0 and 1, of ten records a letter. */
static void check_ranges(const char *lanes, const uint64_t *records)
{
	unsigned count = (unsigned)strlen(lanes);
	uint64_t first = 0;

	assert_int_equal(plan.range_count, count);
	for (unsigned r = 0; r < count; r++) {
		assert_int_equal(plan.ranges[r].lane, lanes[r] - 'a');
		assert_int_equal(plan.ranges[r].first_record, first);
		assert_int_equal(plan.ranges[r].record_count, records[r]);
		first += records[r];
	}
}

static void lane_plan_make__lanes_of_devices(void **state)
{
	(void)state;
	make("x", 1);
	assert_int_equal(plan.lane_count, 1);
	check_ranges("a", (uint64_t[]){ 10 });
	make("xyxy", 2);
	assert_int_equal(plan.lane_count, 2);
	check_ranges("abab", (uint64_t[]){ 10, 10, 10, 10 });
	/* Neighbours of one device are one range. */
	make("xxyyyx", 2);
	check_ranges("aba", (uint64_t[]){ 20, 30, 10 });
	/* One lane has one range, whatever the devices are. */
	make("xyzx", 1);
	assert_int_equal(plan.lane_count, 1);
	check_ranges("a", (uint64_t[]){ 40 });
	make("xyzx", LANES_MAX);
	assert_int_equal(plan.lane_count, 3);
	/* More lanes than devices are not made. */
	make("xyx", 4);
	assert_int_equal(plan.lane_count, 2);
	check_ranges("aba", (uint64_t[]){ 10, 10, 10 });
}

/* Further devices share lanes in turn. */
static void lane_plan_make__shares_lanes(void **state)
{
	(void)state;
	make("uvwxyz", LANES_MAX);
	check_ranges("abcdab", (uint64_t[]){ 10, 10, 10, 10, 10, 10 });
	make("uvwxyz", 2);
	check_ranges("ababab", (uint64_t[]){ 10, 10, 10, 10, 10, 10 });
	make("uvwu", 2);
	/* w has the lane of u. */
	check_ranges("aba", (uint64_t[]){ 10, 10, 20 });
}

/* What has no record is on no device. */
static void lane_plan_make__empty_files(void **state)
{
	(void)state;
	set_files("xyx", 10);
	files[1].record_count = 0;
	lane_plan_make(&plan, files, 3, 2);
	assert_int_equal(plan.lane_count, 1);
	check_ranges("a", (uint64_t[]){ 20 });
	lane_plan_make(&plan, files, 0, 1);
	assert_int_equal(plan.lane_count, 1);
	assert_int_equal(plan.range_count, 0);
	assert_int_equal(lane_plan_batches(&plan, LANES_ALL, 7), 0);
}

/* --- batches ---------------------------------------------------------------
 */

struct dealt {
	struct input_range batch;
	unsigned lane;
};

static struct dealt all[BATCHES_MAX];

/* Of all lanes, one lane after the other. */
static unsigned deal_all(uint64_t capacity)
{
	struct input_range none;
	unsigned count = 0;

	for (unsigned lane = 0; lane < plan.lane_count; lane++) {
		uint64_t own = lane_plan_batches(&plan, lane, capacity);

		assert_true(count + own <= BATCHES_MAX);
		for (uint64_t b = 0; b < own; b++) {
			struct dealt *dealt = &all[count++];

			dealt->lane = lane;
			assert_true(lane_plan_batch(&plan, lane, capacity, b,
						    &dealt->batch));
			/* A lane reads its files from front to back. */
			if (b > 0)
				assert_true(dealt->batch.first_record >
					    dealt[-1].batch.first_record);
		}
		assert_false(
			lane_plan_batch(&plan, lane, capacity, own, &none));
	}
	assert_int_equal(count, lane_plan_batches(&plan, LANES_ALL, capacity));
	return count;
}

static int compare_firsts(const void *a, const void *b)
{
	uint64_t first = ((const struct dealt *)a)->batch.first_record;
	uint64_t second = ((const struct dealt *)b)->batch.first_record;

	return (first > second) - (first < second);
}

static int compare_counts(const void *a, const void *b)
{
	uint64_t first = ((const struct dealt *)a)->batch.record_count;
	uint64_t second = ((const struct dealt *)b)->batch.record_count;

	return (first > second) - (first < second);
}

/* The range that the record lies in. */
static const struct lane_range *range_of(uint64_t record)
{
	const struct lane_range *range = plan.ranges;

	while (record >= range->first_record + range->record_count)
		range++;
	return range;
}

/* In order they are the input, and each lies in a range of its lane. */
static void check_batches(unsigned count, uint64_t capacity, uint64_t records)
{
	uint64_t next = 0;

	qsort(all, count, sizeof(*all), compare_firsts);
	for (unsigned b = 0; b < count; b++) {
		const struct input_range *batch = &all[b].batch;
		const struct lane_range *range = range_of(next);

		assert_int_equal(batch->first_record, next);
		assert_in_range(batch->record_count, 1, capacity);
		assert_int_equal(range->lane, all[b].lane);
		next += batch->record_count;
		assert_true(next <= range->first_record + range->record_count);
	}
	assert_int_equal(next, records);
}

static void check_least(unsigned count, uint64_t capacity)
{
	uint64_t records = 0;

	qsort(all, count, sizeof(*all), compare_counts);
	for (unsigned b = 0; b <= count; b++) {
		assert_int_equal(lane_plan_least(&plan, capacity, b), records);
		if (b < count)
			records += all[b].batch.record_count;
	}
	assert_int_equal(lane_plan_least(&plan, capacity, count + 3), records);
}

static uint64_t random_files(unsigned count)
{
	uint64_t records = 0;

	for (unsigned f = 0; f < count; f++) {
		files[f] = (struct lane_file){
			.device = random_below(7),
			.record_count =
				random_below(4) ? random_below(3000) : 0,
		};
		records += files[f].record_count;
	}
	return records;
}

static void lane_plan_batch__the_whole_input(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 2000; turn++) {
		unsigned file_count = random_below(FILES_MAX + 1);
		uint64_t records = random_files(file_count);
		uint64_t capacity = 20 + random_below(5000);
		unsigned count;

		lane_plan_make(&plan, files, file_count,
			       1 + random_below(LANES_MAX));
		count = deal_all(capacity);
		check_batches(count, capacity, records);
		if (plan.lane_count > 1)
			check_least(count, capacity);
	}
}

static struct input_range batch_at(unsigned lane, uint64_t number)
{
	struct input_range batch = { 0 };

	assert_true(lane_plan_batch(&plan, lane, 10, number, &batch));
	return batch;
}

/* A single lane fills all batches but the last, as it did without lanes. */
static void lane_plan_batch__single_lane(void **state)
{
	(void)state;
	set_files("xy", 12);
	lane_plan_make(&plan, files, 2, 1);
	assert_int_equal(lane_plan_batches(&plan, 0, 10), 3);
	assert_int_equal(batch_at(0, 0).record_count, 10);
	assert_int_equal(batch_at(0, 1).record_count, 10);
	assert_int_equal(batch_at(0, 2).record_count, 4);
	/* Of two lanes the batches are equally large. */
	lane_plan_make(&plan, files, 2, 2);
	assert_int_equal(lane_plan_batches(&plan, 1, 10), 2);
	assert_int_equal(batch_at(1, 0).first_record, 12);
	assert_int_equal(batch_at(1, 0).record_count, 6);
	assert_int_equal(batch_at(1, 1).record_count, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lane_plan_make__lanes_of_devices),
		cmocka_unit_test(lane_plan_make__shares_lanes),
		cmocka_unit_test(lane_plan_make__empty_files),
		cmocka_unit_test(lane_plan_batch__the_whole_input),
		cmocka_unit_test(lane_plan_batch__single_lane),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
