/*
 * test_memory_model.c - predicted times of sorts in memory: passes and exchange
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "cluster/memory/memory_model.h"

static struct exchange_model link_model;
static struct memory_request request;
static struct memory_forecast forecast;

/* A million records of 100 bytes, and rates of 1 GB/s and the like: times can
 * be told by heart. */
static int set_up(void **state)
{
	(void)state;
	exchange_model_ethernet(&link_model, 1e10, 1500, 1, 1);
	request = (struct memory_request){
		.rank_count = 1,
		.whole_records = 1000000,
		.record_size = 100,
		.thread_count = 4,
		.memory_read = 4000000000,
		.memory_copy = 2000000000,
		.start_ns = 100000,
		.disk_read = 100000000,
		.disk_write = 50000000,
		.exchange = &link_model,
	};
	return 0;
}

static void check_ns(double ns, double want)
{
	if (ns < want - 1 || ns > want + 1)
		fail_msg("%.1f ns, not %.1f", ns, want);
}

static void check_pass(enum memory_pass number, double ns, double disk_ns,
		       double cpu_ns)
{
	const struct pass_forecast *pass = &forecast.passes[number];

	check_ns((double)pass->ns, ns);
	check_ns((double)pass->limits_ns[EXTERNAL_DISK], disk_ns);
	check_ns((double)pass->limits_ns[EXTERNAL_CPU], cpu_ns);
}

/* 100 MB: read in 1 s and written in 2, gone over in 25 ms and copied in 50;
 * four threads share the 8 and 3.4 ms that a million records take. */
static void memory_model__one_process(void **state)
{
	(void)state;
	memory_model_forecast(&forecast, &request);
	check_pass(MEMORY_LAUNCH, 1.2e6, 0, 1.2e6);
	check_pass(MEMORY_BUCKET, 1e9, 1e9, 27e6);
	check_pass(MEMORY_EXCHANGE, 0, 0, 0);
	check_pass(MEMORY_ORDER, 2e9, 2e9, 50.85e6);
	check_ns((double)forecast.ns, 1.2e6 + 1e9 + 2e9);
	/* It needs no link. */
	request.exchange = NULL;
	memory_model_forecast(&forecast, &request);
	check_ns((double)forecast.ns, 1.2e6 + 1e9 + 2e9);
	assert_false(forecast.has_exchange);
}

/* Nothing overlaps: one thread writes 24414 pages of 430 ns. */
static void memory_model__page_cache(void **state)
{
	double write_ns = 1e8 / 4096 * 430;

	(void)state;
	request.disk_read = request.disk_write = 0;
	request.thread_count = 1;
	memory_model_forecast(&forecast, &request);
	check_pass(MEMORY_BUCKET, 33e6, 0, 33e6);
	check_pass(MEMORY_ORDER, write_ns + 53.4e6, 0, write_ns + 53.4e6);
	check_ns((double)forecast.ns, 1.2e6 + 33e6 + write_ns + 53.4e6);
}

/* Shares are equal.  A launch has four ways of 10 us, and 191 datagrams of 4 us
 * each. */
static void memory_model__many_ranks(void **state)
{
	(void)state;
	request.rank_count = 64;
	memory_model_forecast(&forecast, &request);
	check_pass(MEMORY_LAUNCH, 1.2e6 + 804e3, 0, 1.2e6 + 40e3 + 191 * 4e3);
	check_pass(MEMORY_BUCKET, 1e9 / 64, 1e9 / 64, 27e6 / 64);
	check_ns((double)forecast.passes[MEMORY_EXCHANGE].ns,
		 forecast.schedules_ns[EXCHANGE_ALL_AT_ONCE]);
	assert_int_equal(forecast.passes[MEMORY_EXCHANGE].limit, EXTERNAL_LINK);
	assert_int_equal(forecast.passes[MEMORY_ORDER].written_bytes, 1562500);
	check_ns((double)forecast.ns,
		 (double)forecast.passes[MEMORY_LAUNCH].ns + 3e9 / 64 +
			 (double)forecast.passes[MEMORY_EXCHANGE].ns);
}

/* Each of 64 messages has 1/4096 of the bytes, and a head of 4 bytes for each
 * bucket of a share. */
static void memory_model__exchange(void **state)
{
	double bytes;

	(void)state;
	request.rank_count = 64;
	memory_model_forecast(&forecast, &request);
	bytes = forecast.message_bytes;
	assert_true(bytes > 1e8 / 4096 && bytes < 1e8 / 4096 + 4 * 1000);
	assert_int_equal(forecast.chosen, EXCHANGE_ALL_AT_ONCE);
	for (unsigned s = EXCHANGE_ROUNDS; s <= EXCHANGE_GRID; s++)
		check_ns(forecast.schedules_ns[s],
			 exchange_model_ns(&link_model, s, 64, bytes));
	check_ns(forecast.link_ns,
		 exchange_model_link_ns(&link_model, 64, bytes));
	assert_int_equal(forecast.rows * forecast.columns, 64);
	/* Long messages go in rounds, short ones all at once. */
	request.whole_records *= 1000;
	memory_model_forecast(&forecast, &request);
	assert_int_equal(forecast.chosen, EXCHANGE_ROUNDS);
	request.whole_records = 1000;
	memory_model_forecast(&forecast, &request);
	assert_int_equal(forecast.chosen, EXCHANGE_GRID);
	assert_true(forecast.message_bytes >= 4);
}

/* 2 ranks send 50 MB of 100 MB; 2 CPUs of a rank compress them in 41.7 ms, to
 * 40 %. */
static void memory_model__compressed(void **state)
{
	double none_ns;

	(void)state;
	exchange_model_ethernet(&link_model, 3e8, 1500, 1, 1);
	request.rank_count = 2;
	request.thread_count = 2;
	request.compressed_percent = 40;
	memory_model_forecast(&forecast, &request);
	none_ns = (double)forecast.passes[MEMORY_EXCHANGE].ns;
	assert_true(forecast.compressed_ns == 0 && !forecast.compresses);
	request.codec = CODEC_AUTO;
	memory_model_forecast(&forecast, &request);
	assert_true(forecast.compresses);
	check_ns((double)forecast.passes[MEMORY_EXCHANGE].ns,
		 forecast.compressed_ns);
	assert_in_range(forecast.compressed_ns, none_ns * 0.4 + 20e6,
			none_ns * 0.4 + 24e6);
	assert_in_range(forecast.passes[MEMORY_EXCHANGE].sent_bytes, 10000000,
			10010000);
	/* On a fast link it does not pay; lz4 does it nevertheless. */
	exchange_model_ethernet(&link_model, 1e11, 9000, 4, 4);
	memory_model_forecast(&forecast, &request);
	assert_false(forecast.compresses);
	request.codec = CODEC_LZ4;
	memory_model_forecast(&forecast, &request);
	assert_true(forecast.compresses);
	request.codec = CODEC_ZSTD;
	memory_model_forecast(&forecast, &request);
	assert_true(forecast.compressed_ns == 0 && !forecast.compresses);
}

/* Without its rates a stage is not predicted, and neither is the sum. */
static void memory_model__unknown(void **state)
{
	(void)state;
	request.rank_count = 64;
	request.memory_copy = 0;
	memory_model_forecast(&forecast, &request);
	assert_true(forecast.ns == 0 && forecast.passes[MEMORY_LAUNCH].ns == 0);
	assert_true(forecast.schedules_ns[EXCHANGE_AUTO] > 0);
	request.memory_copy = request.memory_read;
	request.exchange = NULL;
	memory_model_forecast(&forecast, &request);
	assert_true(forecast.ns == 0 && !forecast.has_exchange);
}

/* The most that may be supposed */
static void memory_model__largest(void **state)
{
	(void)state;
	exchange_model_ethernet(&link_model, 8, 576, 1, 1);
	request.rank_count = 2;
	request.whole_records = INT64_MAX;
	request.record_size = 1 << 20;
	memory_model_forecast(&forecast, &request);
	assert_int_equal(forecast.chosen, EXCHANGE_ROUNDS);
	assert_true(forecast.schedules_ns[EXCHANGE_ROUNDS] > 1e30);
	request.rank_count = UINT16_MAX;
	memory_model_forecast(&forecast, &request);
	assert_true((double)forecast.ns >= 1e18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_model__one_process, set_up),
		cmocka_unit_test_setup(memory_model__page_cache, set_up),
		cmocka_unit_test_setup(memory_model__many_ranks, set_up),
		cmocka_unit_test_setup(memory_model__exchange, set_up),
		cmocka_unit_test_setup(memory_model__compressed, set_up),
		cmocka_unit_test_setup(memory_model__unknown, set_up),
		cmocka_unit_test_setup(memory_model__largest, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
