#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/collective/trace_pack.h"
#include "sort/sort_trace.h"

#define LANES 3
/* The head, and a lane more than there can be, all empty. */
#define MANY_BYTES (8 + 8 * (SORT_TRACE_LANES_MAX + 1))

static struct trace_lane lanes[LANES];
static struct flow_bins flows = { .width_ns = 1234, .first = 5678 }, flows_back;

/* Lanes of 2, 0 and 5 spans. */
static int set_up(void **state)
{
	static const unsigned counts[LANES] = { 2, 0, 5 };

	(void)state;
	for (unsigned i = 0; i < LANES; i++) {
		assert_int_equal(trace_lane_init(&lanes[i], 8), 0);
		for (unsigned k = 0; k < counts[i]; k++)
			lanes[i].spans[lanes[i].count++] = (struct trace_span){
				1000 * i + k, UINT64_MAX - k,
				k == 0 ? "a label that is too long" : "send"
			};
		lanes[i].lost = i;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LANES; i++)
		trace_lane_fini(&lanes[i]);
	return 0;
}

static void trace_pack__comes_back(void **state)
{
	size_t byte_count = trace_pack_bytes(lanes, LANES);
	uint8_t *bytes = malloc(byte_count);
	struct trace_lane *back;

	(void)state;
	flows.bytes[0][0] = 1;
	flows.bytes[1][7] = 2;
	flows.bytes[FLOWS - 1][FLOW_BINS - 1] = 3;
	trace_pack(lanes, LANES, &flows, bytes);
	assert_int_equal(trace_unpack(bytes, byte_count, &back, &flows_back),
			 LANES);
	assert_memory_equal(&flows_back, &flows, sizeof(flows));
	for (unsigned i = 0; i < LANES; i++) {
		assert_int_equal(back[i].count, lanes[i].count);
		assert_int_equal(back[i].lost, lanes[i].lost);
		for (unsigned k = 0; k < lanes[i].count; k++) {
			assert_true(back[i].spans[k].begin_ns ==
				    lanes[i].spans[k].begin_ns);
			assert_true(back[i].spans[k].end_ns ==
				    lanes[i].spans[k].end_ns);
			assert_string_equal(back[i].spans[k].label,
					    k == 0 ? "a label that is"
						   : "send");
		}
	}
	trace_unpack_free(back, LANES);
	free(bytes);
}

static void trace_unpack__refuses_what_is_cut_or_more(void **state)
{
	size_t byte_count = trace_pack_bytes(lanes, LANES);
	uint8_t *bytes = calloc(1, byte_count + 1);
	struct trace_lane *back;

	(void)state;
	trace_pack(lanes, LANES, &flows, bytes);
	for (size_t cut = 0; cut < byte_count; cut++) {
		uint8_t *copy = malloc(cut + 1);

		memcpy(copy, bytes, cut);
		assert_int_equal(trace_unpack(copy, cut, &back, &flows_back),
				 -EINVAL);
		free(copy);
	}
	assert_int_equal(
		trace_unpack(bytes, byte_count + 1, &back, &flows_back),
		-EINVAL);
	free(bytes);
}

/* Returns what trace_unpack() does of a pack with so many bytes of lanes, which
 * are those. */
static int unpack(const uint8_t *lane_bytes, size_t count)
{
	static uint8_t bytes[MANY_BYTES + TRACE_PACK_FLOWS_BYTES];
	struct trace_lane *back;
	int lane_count;

	memcpy(bytes, lane_bytes, count);
	memset(bytes + count, 0, TRACE_PACK_FLOWS_BYTES);
	lane_count = trace_unpack(bytes, count + TRACE_PACK_FLOWS_BYTES, &back,
				  &flows_back);
	if (lane_count >= 0)
		trace_unpack_free(back, (unsigned)lane_count);
	return lane_count;
}

static void trace_unpack__refuses_counts_that_cannot_be(void **state)
{
	uint8_t bytes[16], many[MANY_BYTES] = { 0 };

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(unpack(bytes, 8), -EINVAL);
	memset(bytes, 0, 8);
	bytes[0] = 1;
	assert_int_equal(unpack(bytes, sizeof(bytes)), -EINVAL);
	/* Two lanes have no room behind that. */
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 2;
	assert_int_equal(unpack(bytes, sizeof(bytes)), -EINVAL);
	bytes[0] = 1;
	assert_int_equal(unpack(bytes, sizeof(bytes)), 1);
	/* A writer divides by it. */
	assert_int_equal(flows_back.width_ns, 1);
	store_le64(many, SORT_TRACE_LANES_MAX);
	assert_int_equal(unpack(many, sizeof(many) - 8), SORT_TRACE_LANES_MAX);
	store_le64(many, SORT_TRACE_LANES_MAX + 1);
	assert_int_equal(unpack(many, sizeof(many)), -EINVAL);
}

static void trace_pack_bytes_max__is_what_is_packed(void **state)
{
	struct trace_lane full[3] = { { .count = 7 },
				      { .count = 7 },
				      { .count = 7 } };

	(void)state;
	assert_int_equal(trace_pack_bytes_max(3, 7), trace_pack_bytes(full, 3));
	assert_int_equal(trace_pack_bytes_max(0, 7), trace_pack_bytes(full, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(trace_pack__comes_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			trace_unpack__refuses_what_is_cut_or_more, set_up,
			tear_down),
		cmocka_unit_test(trace_unpack__refuses_counts_that_cannot_be),
		cmocka_unit_test(trace_pack_bytes_max__is_what_is_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
