#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skip.h"
#include "base/trace.h"

static void trace_end__not_tracing(void **state)
{
	struct trace_lane lane = { 0 };

	(void)state;
	assert_int_equal(trace_begin(&lane), 0);
	trace_end(&lane, 0, "x");
	assert_int_equal(lane.count, 0);
	assert_int_equal(lane.lost, 0);
	trace_lane_fini(&lane);
}

static void trace_lane_init__no_capacity(void **state)
{
	struct trace_lane lane;

	(void)state;
	assert_int_equal(trace_lane_init(&lane, 0), 0);
	assert_null(lane.spans);
	trace_lane_fini(&lane);
}

static void trace_end__stores_and_loses(void **state)
{
	struct trace_lane lane;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(trace_lane_init(&lane, 2), 0);
	begin_ns = trace_begin(&lane);
	assert_true(begin_ns > 0);
	trace_end(&lane, begin_ns, "a");
	trace_end(&lane, begin_ns, "b");
	trace_end(&lane, begin_ns, "c");
	assert_int_equal(lane.count, 2);
	assert_int_equal(lane.lost, 1);
	assert_true(lane.spans[0].begin_ns == begin_ns);
	assert_true(lane.spans[1].end_ns >= lane.spans[0].end_ns);
	assert_string_equal(lane.spans[1].label, "b");
	trace_lane_fini(&lane);
	assert_null(lane.spans);
	trace_lane_fini(&lane);
}

static void trace_write_all__document(void **state)
{
	static const char want[] =
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"
		"\"args\":{\"name\":\"blink\\\"sort\"}},\n"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,"
		"\"args\":{\"name\":\"thread 0\"}},\n"
		"{\"name\":\"read\",\"ph\":\"X\",\"pid\":1,\"tid\":0,"
		"\"ts\":-0.005,\"dur\":1.239},\n"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,"
		"\"args\":{\"name\":\"thread 1\"}},\n"
		"{\"name\":\"sort\",\"ph\":\"X\",\"pid\":1,\"tid\":1,"
		"\"ts\":2000.001,\"dur\":0.000},\n"
		"{\"name\":\"write\",\"ph\":\"C\",\"pid\":1,\"ts\":-9.000,"
		"\"args\":{\"bytes/s\":7000000}},\n"
		"{\"name\":\"write\",\"ph\":\"C\",\"pid\":1,\"ts\":-7.000,"
		"\"args\":{\"bytes/s\":0}},\n"
		"{\"name\":\"write\",\"ph\":\"C\",\"pid\":1,\"ts\":502.000,"
		"\"args\":{\"bytes/s\":3000000}},\n"
		"{\"name\":\"write\",\"ph\":\"C\",\"pid\":1,\"ts\":503.000,"
		"\"args\":{\"bytes/s\":0}}\n"
		"],\"otherData\":{\"lost_spans\":5}}\n";
	struct trace_span first = { 9995, 11234, "read" };
	struct trace_span second = { 2010001, 2010001, "sort" };
	struct trace_lane lanes[2] = {
		{ .spans = &first, .capacity = 1, .count = 1, .lost = 2 },
		{ .spans = &second, .capacity = 1, .count = 1, .lost = 3 },
	};
	static struct flow_bins flows = { .width_ns = 1000, .first = 1 };
	const struct trace_process process = {
		.name = "blink\"sort",
		.origin_ns = 10000,
		.lanes = lanes,
		.lane_count = 2,
		.flows = &flows,
	};
	char *got = NULL;
	size_t length;
	FILE *stream = open_memstream(&got, &length);

	(void)state;
	flows.bytes[FLOW_WRITE][0] = flows.bytes[FLOW_WRITE][1] = 7;
	flows.bytes[FLOW_WRITE][FLOW_BINS - 1] = 3;
	assert_non_null(stream);
	assert_int_equal(trace_write_all(stream, &process, 1), 0);
	fclose(stream);
	assert_string_equal(got, want);
	free(got);
}

static void trace_write_all__full_medium(void **state)
{
	const struct trace_process process = { .name = "x" };
	FILE *stream = fopen("/dev/full", "w");

	(void)state;
	if (!stream)
		skip_because("no /dev/full here");
	assert_int_equal(trace_write_all(stream, &process, 1), -EIO);
	fclose(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_end__not_tracing),
		cmocka_unit_test(trace_lane_init__no_capacity),
		cmocka_unit_test(trace_end__stores_and_loses),
		cmocka_unit_test(trace_write_all__document),
		cmocka_unit_test(trace_write_all__full_medium),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
