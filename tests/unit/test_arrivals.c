#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/udp/arrivals.h"
#include "base/base.h"
#include "random.h"

#define SEGMENTS_MAX 1000
#define GAPS_MAX (SEGMENTS_MAX / 2 + 1)

static struct arrivals arrivals;
static bool reference[SEGMENTS_MAX];

/* A message of so many segments of 10 bytes. */
static void begin(uint64_t segment_count)
{
	assert_true(segment_count <= SEGMENTS_MAX);
	memset(reference, 0, sizeof(reference));
	assert_int_equal(arrivals_init(&arrivals, segment_count * 10, 10), 0);
	assert_int_equal(arrivals.segment_count, segment_count);
}

static void add(uint64_t i)
{
	assert_int_equal(arrivals_add(&arrivals, i), !reference[i]);
	reference[i] = true;
}

/* --- against the array ---------------------------------------------------- */

static void check_sums(void)
{
	uint64_t prefix = 0, end = 0, count = 0;

	for (uint64_t i = 0; i < arrivals.segment_count; i++) {
		assert_int_equal(arrivals_has(&arrivals, i), reference[i]);
		count += reference[i];
		prefix += prefix == i && reference[i];
		end = reference[i] ? i + 1 : end;
	}
	assert_int_equal(arrivals.prefix, prefix);
	assert_int_equal(arrivals.end, end);
	assert_int_equal(arrivals.arrived_count, count);
	assert_int_equal(arrivals_complete(&arrivals),
			 count == arrivals.segment_count);
}

/* The gaps of the reference, as the contract has them. */
static unsigned expected_gaps(uint64_t limit, struct arrivals_gap *gaps,
			      unsigned gaps_max)
{
	unsigned count = 0;
	bool in_gap = false;

	for (uint64_t i = 0; i < limit; i++) {
		if (reference[i]) {
			in_gap = false;
			continue;
		}
		if (!in_gap && count == gaps_max)
			break;
		if (!in_gap)
			gaps[count++] = (struct arrivals_gap){ i, 0 };
		in_gap = true;
		gaps[count - 1].count++;
	}
	return count;
}

static void check_gaps(uint64_t limit, unsigned gaps_max)
{
	/* What lies behind gaps_max must stay as it is. */
	struct arrivals_gap want[GAPS_MAX + 1], have[GAPS_MAX + 1];
	unsigned count;

	assert_true(gaps_max <= GAPS_MAX);
	memset(want, 0xa5, sizeof(want));
	memset(have, 0xa5, sizeof(have));
	count = expected_gaps(limit, want, gaps_max);
	assert_int_equal(arrivals_gaps(&arrivals, limit, have, gaps_max),
			 count);
	assert_memory_equal(have, want, sizeof(have));
}

static void check_all_gaps(void)
{
	check_gaps(arrivals.segment_count, GAPS_MAX);
	check_gaps(arrivals.end, GAPS_MAX);
	check_gaps(arrivals.prefix, GAPS_MAX);
	check_gaps(arrivals.prefix / 2, GAPS_MAX);
	check_gaps(random_next() % (arrivals.segment_count + 1), GAPS_MAX);
	check_gaps(arrivals.segment_count, 0);
	check_gaps(arrivals.segment_count, 1);
	check_gaps(arrivals.segment_count, 2);
}

/* --- adding --------------------------------------------------------------- */

static void arrivals_add__random(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		uint64_t count = 1 + random_next() % 300;

		begin(count);
		check_all_gaps();
		for (uint64_t i = 0; i < 2 * count; i++) {
			add(random_next() % count);
			check_sums();
			check_all_gaps();
		}
		arrivals_fini(&arrivals);
	}
}

/* As batches come when some were lost: runs in order, then the rest. */
static void arrivals_add__runs(void **state)
{
	(void)state;
	begin(SEGMENTS_MAX);
	for (uint64_t i = 0; i < SEGMENTS_MAX; i++)
		if (i / 44 % 3 != 1)
			add(i);
	check_sums();
	check_all_gaps();
	for (uint64_t i = 0; i < SEGMENTS_MAX; i++) {
		if (i / 44 % 3 != 1)
			continue;
		add(i);
		check_sums();
	}
	check_all_gaps();
	assert_true(arrivals_complete(&arrivals));
	arrivals_fini(&arrivals);
}

/* The prefix leaps over what came before, up to and over the ends of words. */
static void arrivals_add__prefix_across_words(void **state)
{
	static const uint64_t counts[] = { 1,	63,  64,  65,  127, 128,
					   129, 191, 192, 193, 640 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		begin(counts[i]);
		for (uint64_t last = counts[i] - 1; last > 0; last--) {
			add(last);
			assert_int_equal(arrivals.prefix, 0);
			assert_int_equal(arrivals.end, counts[i]);
		}
		assert_false(arrivals_complete(&arrivals));
		add(0);
		check_sums();
		assert_true(arrivals_complete(&arrivals));
		arrivals_fini(&arrivals);
	}
}

static void arrivals_add__in_order(void **state)
{
	(void)state;
	begin(SEGMENTS_MAX);
	for (uint64_t i = 0; i < SEGMENTS_MAX; i++) {
		add(i);
		assert_int_equal(arrivals.prefix, i + 1);
		assert_int_equal(arrivals.end, i + 1);
	}
	check_sums();
	arrivals_fini(&arrivals);
}

static void arrivals_add__again(void **state)
{
	(void)state;
	begin(3);
	assert_true(arrivals_add(&arrivals, 1));
	assert_false(arrivals_add(&arrivals, 1));
	assert_true(arrivals_add(&arrivals, 0));
	assert_false(arrivals_add(&arrivals, 0));
	assert_int_equal(arrivals.arrived_count, 2);
	assert_int_equal(arrivals.prefix, 2);
	arrivals_fini(&arrivals);
}

/* --- gaps ----------------------------------------------------------------- */

/* Every other one is missing: the greatest number of gaps. */
static void arrivals_gaps__as_many_as_fit(void **state)
{
	(void)state;
	begin(SEGMENTS_MAX);
	for (uint64_t i = 1; i < SEGMENTS_MAX; i += 2)
		add(i);
	for (unsigned most = 0; most <= GAPS_MAX; most += 7)
		check_gaps(SEGMENTS_MAX, most);
	check_gaps(SEGMENTS_MAX, GAPS_MAX);
	arrivals_fini(&arrivals);
}

/* A gap is cut at the limit, wherever that is in a word. */
static void arrivals_gaps__limit(void **state)
{
	struct arrivals_gap gap;

	(void)state;
	begin(200);
	add(0);
	add(199);
	assert_int_equal(arrivals_gaps(&arrivals, 0, &gap, 1), 0);
	assert_int_equal(arrivals_gaps(&arrivals, 1, &gap, 1), 0);
	for (uint64_t limit = 2; limit <= 200; limit++) {
		assert_int_equal(arrivals_gaps(&arrivals, limit, &gap, 1), 1);
		assert_int_equal(gap.first, 1);
		assert_int_equal(gap.count, MIN(limit, 199) - 1);
	}
	arrivals_fini(&arrivals);
}

/* --- lengths -------------------------------------------------------------- */

static void arrivals_init__no_bytes(void **state)
{
	struct arrivals_gap gap;

	(void)state;
	assert_int_equal(arrivals_init(&arrivals, 0, 1440), 0);
	assert_null(arrivals.bits);
	assert_int_equal(arrivals.segment_count, 0);
	assert_true(arrivals_complete(&arrivals));
	assert_int_equal(arrivals_prefix_bytes(&arrivals), 0);
	assert_int_equal(arrivals_gaps(&arrivals, 0, &gap, 1), 0);
	arrivals_fini(&arrivals);
}

static void arrivals_init__segment_count(void **state)
{
	static const struct {
		uint64_t byte_count;
		uint32_t segment_bytes;
		uint64_t segment_count;
	} cases[] = {
		{ 1, 1, 1 },	   { 1, UINT32_MAX, 1 },
		{ 10, 3, 4 },	   { 9, 3, 3 },
		{ 1440, 1440, 1 }, { 1441, 1440, 2 },
		{ 1439, 1440, 1 }, { (uint64_t)1 << 32, UINT32_MAX, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(arrivals_init(&arrivals, cases[i].byte_count,
					       cases[i].segment_bytes),
				 0);
		assert_int_equal(arrivals.segment_count,
				 cases[i].segment_count);
		assert_false(arrivals_complete(&arrivals));
		arrivals_fini(&arrivals);
	}
}

/* Sanitizers end the program when memory is refused, unless told. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* A peer may announce what no memory holds; fini is safe then. */
static void arrivals_init__too_long(void **state)
{
	(void)state;
	assert_int_equal(arrivals_init(&arrivals, UINT64_MAX, 1), -ENOMEM);
	assert_null(arrivals.bits);
	arrivals_fini(&arrivals);
}

static void arrivals_length__last_is_shorter(void **state)
{
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(arrivals_init(&arrivals, 100, 30), 0);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(arrivals_prefix_bytes(&arrivals), sum);
		assert_int_equal(arrivals_length(&arrivals, i),
				 i < 3 ? 30 : 10);
		assert_true(arrivals_add(&arrivals, i));
		sum += arrivals_length(&arrivals, i);
	}
	assert_int_equal(arrivals_prefix_bytes(&arrivals), 100);
	arrivals_fini(&arrivals);
}

static void arrivals_length__last_is_full(void **state)
{
	(void)state;
	assert_int_equal(arrivals_init(&arrivals, 90, 30), 0);
	assert_int_equal(arrivals.segment_count, 3);
	assert_int_equal(arrivals_length(&arrivals, 2), 30);
	arrivals_fini(&arrivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrivals_add__random),
		cmocka_unit_test(arrivals_add__runs),
		cmocka_unit_test(arrivals_add__prefix_across_words),
		cmocka_unit_test(arrivals_add__in_order),
		cmocka_unit_test(arrivals_add__again),
		cmocka_unit_test(arrivals_gaps__as_many_as_fit),
		cmocka_unit_test(arrivals_gaps__limit),
		cmocka_unit_test(arrivals_init__no_bytes),
		cmocka_unit_test(arrivals_init__segment_count),
		cmocka_unit_test(arrivals_init__too_long),
		cmocka_unit_test(arrivals_length__last_is_shorter),
		cmocka_unit_test(arrivals_length__last_is_full),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
