/*
 * test_flow.c - bytes in bins of time: none is lost, and each is where it was
 * moved
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "base/flow.h"
#include "random.h"

static uint64_t sum_of(const struct flow_bins *bins, enum flow flow)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < FLOW_BINS; i++)
		sum += bins->bytes[flow][i];
	return sum;
}

static void flow_bins_add__evenly(void **state)
{
	struct flow_bins bins = { .width_ns = 100, .first = 10 };

	(void)state;
	flow_bins_add(&bins, FLOW_READ, 1050, 1250, 400);
	assert_int_equal(bins.bytes[FLOW_READ][0], 100);
	assert_int_equal(bins.bytes[FLOW_READ][1], 200);
	assert_int_equal(bins.bytes[FLOW_READ][2], 100);
	/* Within a bin, in no time, and before all bins. */
	flow_bins_add(&bins, FLOW_WRITE, 1310, 1390, 7);
	flow_bins_add(&bins, FLOW_WRITE, 1399, 1399, 5);
	flow_bins_add(&bins, FLOW_WRITE, 0, 999, 1);
	assert_int_equal(bins.bytes[FLOW_WRITE][3], 12);
	assert_int_equal(bins.bytes[FLOW_WRITE][0], 1);
	assert_int_equal(bins.bytes[FLOW_SEND][0], 0);
	assert_int_equal(bins.width_ns, 100);
}

/* Pairs that begin at even places become one, so that bins of two processes
 * lie at the same times. */
static void flow_bins_add__widens(void **state)
{
	struct flow_bins bins = { .width_ns = 100, .first = 11 };

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		flow_bins_add(&bins, FLOW_SEND, 1100 + 100 * i, 1100 + 100 * i,
			      1 << i);
	flow_bins_add(&bins, FLOW_SEND, 0, 100 * (11 + FLOW_BINS), 0);
	assert_int_equal(bins.width_ns, 200);
	assert_int_equal(bins.first, 5);
	assert_int_equal(bins.bytes[FLOW_SEND][0], 1);
	assert_int_equal(bins.bytes[FLOW_SEND][1], 2 + 4);
	assert_int_equal(bins.bytes[FLOW_SEND][2], 8 + 16);
	assert_int_equal(bins.bytes[FLOW_SEND][3], 0);
}

static void flow_bins_add__loses_nothing(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		struct flow_bins bins = { .width_ns =
						  1 + random_next() % 1000 };
		uint64_t now_ns = random_next() % ((uint64_t)1 << 50);
		uint64_t want[FLOWS] = { 0 };

		bins.first = now_ns / bins.width_ns;
		for (unsigned i = 0; i < 1000; i++) {
			enum flow flow = random_next() % FLOWS;
			uint64_t bytes = random_next() % ((uint64_t)1 << 40);
			uint64_t length_ns =
				random_next() %
				((uint64_t)1 << random_next() % 30);

			flow_bins_add(&bins, flow, now_ns, now_ns + length_ns,
				      bytes);
			want[flow] += bytes;
			now_ns += random_next() % 100000;
		}
		for (unsigned f = 0; f < FLOWS; f++)
			assert_true(sum_of(&bins, f) == want[f]);
	}
}

static void flow_add__counts_from_its_begin_on(void **state)
{
	uint64_t now_ns = clock_now_ns();

	(void)state;
	flow_add(FLOW_READ, 1, 100);
	assert_int_equal(flow_counted()->width_ns, 0);
	assert_int_equal(flow_clock(), 0);
	flow_begin(now_ns);
	assert_true(flow_clock() >= now_ns);
	flow_add(FLOW_READ, 1, 100);
	flow_add(FLOW_READ, 0, 23);
	flow_add(FLOW_RECEIVE, now_ns, 0);
	assert_int_equal(sum_of(flow_counted(), FLOW_READ), 123);
	assert_int_equal(sum_of(flow_counted(), FLOW_RECEIVE), 0);
	assert_string_equal(flow_names[FLOW_RECEIVE], "receive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_bins_add__evenly),
		cmocka_unit_test(flow_bins_add__widens),
		cmocka_unit_test(flow_bins_add__loses_nothing),
		cmocka_unit_test(flow_add__counts_from_its_begin_on),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
