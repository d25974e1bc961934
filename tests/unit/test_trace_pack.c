#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/collective/trace_pack.h"

#define LANES 3

static struct trace_lane lanes[LANES];

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
	trace_pack(lanes, LANES, bytes);
	assert_int_equal(trace_unpack(bytes, byte_count, &back), LANES);
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
	trace_pack(lanes, LANES, bytes);
	for (size_t cut = 0; cut < byte_count; cut++) {
		uint8_t *copy = malloc(cut + 1);

		memcpy(copy, bytes, cut);
		assert_int_equal(trace_unpack(copy, cut, &back), -EINVAL);
		free(copy);
	}
	assert_int_equal(trace_unpack(bytes, byte_count + 1, &back), -EINVAL);
	free(bytes);
}

static void trace_unpack__refuses_counts_that_cannot_be(void **state)
{
	uint8_t bytes[16];
	struct trace_lane *back;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(trace_unpack(bytes, 8, &back), -EINVAL);
	memset(bytes, 0, 8);
	bytes[0] = 1;
	assert_int_equal(trace_unpack(bytes, sizeof(bytes), &back), -EINVAL);
	/* Two lanes have no room behind that. */
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = 2;
	assert_int_equal(trace_unpack(bytes, sizeof(bytes), &back), -EINVAL);
	bytes[0] = 1;
	assert_int_equal(trace_unpack(bytes, sizeof(bytes), &back), 1);
	trace_unpack_free(back, 1);
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
