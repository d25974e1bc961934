/*
 * test_external_model.c - predicted times against what the disk must move
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/plan/external_model.h"
#include "external/plan/external_plan.h"

#define GB 1000000000ull

static struct external_request request;
static struct external_plan plan;
static struct external_forecast forecast;

/* 8 GB of small records in 1 GB. */
static int make_plan(void **state)
{
	(void)state;
	request = (struct external_request){
		.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
		.record_count = 8 * GB / 100,
		.memory_bytes = GB,
		.worker_count = 2,
	};
	return external_plan_make(&plan, &request);
}

static void predict(uint64_t read, uint64_t write, uint64_t both)
{
	const struct external_rates rates = {
		.read = read,
		.write = write,
		.both = both,
	};

	external_model_forecast(&forecast, &plan, &request, &rates);
}

static void external_model__bytes_without_rates(void **state)
{
	uint64_t spilled = plan.spilled_records * 100;

	(void)state;
	predict(0, 0, 0);
	assert_int_equal(forecast.ns, 0);
	assert_int_equal(forecast.passes[EXTERNAL_RUNS].read_bytes, 8 * GB);
	assert_int_equal(forecast.passes[EXTERNAL_RUNS].written_bytes, spilled);
	assert_int_equal(forecast.passes[EXTERNAL_MERGES].read_bytes, 0);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].read_bytes, spilled);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].written_bytes,
			 8 * GB);
}

/* A pass takes what the disk takes for its bytes, and a quarter more at most
 * for small reads and for the first batch. */
static void check_times(uint64_t both)
{
	uint64_t sum = 0;

	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		uint64_t moved = forecast.passes[p].read_bytes +
				 forecast.passes[p].written_bytes;
		uint64_t least_ns = moved * 1000 / (both / 1000000);

		sum += forecast.passes[p].ns;
		assert_true(forecast.passes[p].ns <= least_ns / 4 * 5);
		assert_true(forecast.passes[p].ns >= least_ns / 10 * 9);
		assert_int_equal(forecast.passes[p].limit, EXTERNAL_DISK);
	}
	assert_int_equal(forecast.ns, sum);
}

static void external_model__a_slow_disk_limits(void **state)
{
	(void)state;
	predict(GB / 10, GB / 10, GB / 8);
	check_times(GB / 8);
}

/* A disk that reads faster alone than it reads and writes at once. */
static void external_model__reads_alone_may_be_faster(void **state)
{
	uint64_t spilled = plan.spilled_records * 100;

	(void)state;
	predict(GB, GB / 10, GB / 10);
	check_times(GB / 10);
	/* Both at once at 10 ns a byte, the rest at 1 ns; nothing is won. */
	assert_true(forecast.passes[EXTERNAL_RUNS].ns + 1 >=
		    20 * spilled + (8 * GB - spilled));
	predict(GB / 10, GB / 10, GB / 10);
	check_times(GB / 10);
}

static void external_model__a_fast_disk_waits_for_threads(void **state)
{
	(void)state;
	predict(1000 * GB, 1000 * GB, 1000 * GB);
	assert_int_equal(forecast.passes[EXTERNAL_RUNS].limit, EXTERNAL_CPU);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_CPU);
	assert_true(forecast.ns > GB / 10);
}

/* Where both at once are the sum, different disks read and write. */
static void external_model__different_disks(void **state)
{
	uint64_t spilled = plan.spilled_records * 100;

	(void)state;
	predict(GB / 10, GB / 20, GB / 10 + GB / 20);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_DISK);
	/* Writing at 20 ns a byte is what takes long, and small reads. */
	assert_in_range(forecast.passes[EXTERNAL_RUNS].ns, 20 * spilled,
			20 * spilled + 4 * GB);
	assert_in_range(forecast.passes[EXTERNAL_OUTPUT].ns, 20 * 8 * GB,
			25 * 8 * GB);
	/* A little less, and it is one disk, which reads the rest alone. */
	predict(GB / 10, GB / 20, GB / 10 + GB / 20 - 1);
	assert_true(forecast.passes[EXTERNAL_RUNS].ns <=
		    20 * spilled + 10 * (8 * GB - spilled) + 4 * GB);
}

/* --- a disk with an arm -----------------------------------------------------
 */

static void external_rates__of_an_arm(void **state)
{
	struct external_rates rates = { 0 };

	(void)state;
	assert_int_equal(external_rates_seek_bytes(&rates), 0);
	assert_false(external_rates_apart(&rates));
	rates.requests = 150;
	assert_int_equal(external_rates_seek_bytes(&rates), 1000000);
	assert_false(external_rates_apart(&rates));
	rates.read = rates.write = GB;
	rates.both = 2 * GB - 1;
	assert_int_equal(external_rates_seek_bytes(&rates), GB / 150);
	assert_false(external_rates_apart(&rates));
	rates.both = 2 * GB;
	assert_true(external_rates_apart(&rates));
	rates.requests = rates.write = INT64_MAX;
	assert_int_equal(external_rates_seek_bytes(&rates), 0);
	assert_false(external_rates_apart(&rates));
}

static void predict_arm(const struct external_request *arm, uint64_t both)
{
	const struct external_rates rates = {
		.read = GB / 10,
		.write = GB / 10,
		.both = both,
		.requests = 100,
	};
	struct external_plan arm_plan;

	assert_int_equal(external_plan_make(&arm_plan, arm), 0);
	external_model_forecast(&forecast, &arm_plan, arm, &rates);
}

/* In turns it reads or writes: how fast it does both at once changes nothing.
 * The ranks' passes do both. */
static void external_model__an_arm_seeks(void **state)
{
	struct external_request arm = request;
	const struct pass_forecast *runs = &forecast.passes[EXTERNAL_RUNS];
	const struct pass_forecast *output = &forecast.passes[EXTERNAL_OUTPUT];
	uint64_t ns;

	(void)state;
	arm.seek_bytes = MIB;
	predict_arm(&arm, GB / 10);
	ns = forecast.ns;
	assert_int_equal(runs->seeks, 0);
	assert_true(output->seeks > 0);
	assert_int_equal(output->seeks_ns / (GB / 100), output->seeks);
	predict_arm(&arm, GB / 20);
	assert_int_equal(forecast.ns, ns);
	arm.ranks = (struct external_ranks){ .rank_count = 2,
					     .taker_count = 1,
					     .own_records = arm.record_count,
					     .part_records = arm.record_count };
	predict_arm(&arm, GB / 10);
	ns = runs->ns;
	predict_arm(&arm, GB / 20);
	assert_true(runs->ns > ns);
	/* A key that is read by itself is one, too. */
	arm = request;
	arm.seek_bytes = MIB;
	arm.shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(MIB, 0, 10);
	arm.record_count = 8 * GB / MIB;
	predict_arm(&arm, GB / 10);
	assert_int_equal(runs->seeks, arm.record_count);
	assert_true(runs->ns >= arm.record_count * (GB / 100));
}

/* --- ranks -----------------------------------------------------------------
 */

/* Of 4 ranks, this one has 8 GB of 32 GB, and gets as much. */
static void predict_rank(uint64_t both, uint64_t link)
{
	const struct external_request rank_request = {
		.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
		.record_count = 8 * GB / 100,
		.memory_bytes = GB,
		.worker_count = 2,
		.ranks = { .rank_count = 4,
			   .taker_count = 3,
			   .own_records = 8 * GB / 100,
			   .part_records = 8 * GB / 100 },
	};
	const struct external_rates rates = {
		.read = both,
		.write = both,
		.both = both,
		.link = link,
	};
	struct external_plan rank_plan;

	assert_int_equal(external_plan_make(&rank_plan, &rank_request), 0);
	external_model_forecast(&forecast, &rank_plan, &rank_request, &rates);
}

/* Three quarters of 8 GB at 10 MB/s, each way at once. */
static void external_model__a_slow_link_limits(void **state)
{
	(void)state;
	predict_rank(GB, GB / 100);
	assert_int_equal(forecast.passes[EXTERNAL_RUNS].limit, EXTERNAL_DISK);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_LINK);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].ns, 600 * GB);
	assert_int_equal(forecast.ns,
			 forecast.passes[EXTERNAL_RUNS].ns +
				 forecast.passes[EXTERNAL_MERGES].ns +
				 600 * GB);
}

/* A fast link, and one that is not known, change nothing. */
static void external_model__a_fast_link_does_not(void **state)
{
	uint64_t ns;

	(void)state;
	predict_rank(GB, 0);
	ns = forecast.ns;
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_DISK);
	predict_rank(GB, 100 * GB);
	assert_int_equal(forecast.ns, ns);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_DISK);
}

/* One process alone sends nothing. */
static void external_model__no_link_without_ranks(void **state)
{
	const struct external_rates rates = { GB, GB, GB, 1, 0, 0 };

	(void)state;
	external_model_forecast(&forecast, &plan, &request, &rates);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].limit, EXTERNAL_DISK);
}

/* A rank with more than its share sends more than it writes, and one with less
 * gets more than it has. */
static void external_model__a_rank_writes_its_share(void **state)
{
	struct external_request rank_request = request;
	const struct external_rates rates = { GB, GB, GB, GB / 100, 0, 0 };
	struct external_plan rank_plan;

	(void)state;
	rank_request.ranks.rank_count = 4;
	rank_request.ranks.taker_count = 3;
	rank_request.ranks.own_records = 8 * GB / 100;
	rank_request.ranks.part_records = 2 * GB / 100;
	assert_int_equal(external_plan_make(&rank_plan, &rank_request), 0);
	external_model_forecast(&forecast, &rank_plan, &rank_request, &rates);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].written_bytes,
			 2 * GB);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].ns, 600 * GB);
	rank_request.ranks.part_records = 16 * GB / 100;
	assert_int_equal(external_plan_make(&rank_plan, &rank_request), 0);
	external_model_forecast(&forecast, &rank_plan, &rank_request, &rates);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].ns, 1200 * GB);
}

/* No time is so long that its number wraps. */
static void external_model__bounds_times(void **state)
{
	(void)state;
	predict_rank(1, 1);
	assert_int_equal(forecast.passes[EXTERNAL_OUTPUT].ns, GB * GB);
	assert_in_range(forecast.ns, 2 * GB * GB, 6 * GB * GB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(external_model__bytes_without_rates),
		cmocka_unit_test(external_model__a_slow_disk_limits),
		cmocka_unit_test(external_model__reads_alone_may_be_faster),
		cmocka_unit_test(external_model__a_fast_disk_waits_for_threads),
		cmocka_unit_test(external_model__different_disks),
		cmocka_unit_test(external_rates__of_an_arm),
		cmocka_unit_test(external_model__an_arm_seeks),
		cmocka_unit_test(external_model__a_slow_link_limits),
		cmocka_unit_test(external_model__a_fast_link_does_not),
		cmocka_unit_test(external_model__no_link_without_ranks),
		cmocka_unit_test(external_model__a_rank_writes_its_share),
		cmocka_unit_test(external_model__bounds_times),
	};

	return cmocka_run_group_tests(tests, make_plan, NULL);
}
