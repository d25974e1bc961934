/*
 * test_input_range.c - lists of parts of the input
 *
 * The model is a list of single records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "external/runs/input_range.h"
#include "random.h"

#define RANGES_MAX 12
#define RECORDS_MAX 100
#define ROUNDS 5000

static struct input_range ranges[RANGES_MAX];
static unsigned count;
static uint64_t model[RECORDS_MAX]; /* the records, in the list's order */
static unsigned model_count;

static unsigned below(unsigned end)
{
	return (unsigned)(random_next() % end);
}

/* The list has the model's records, in as few ranges as can be. */
static void expect_model(void)
{
	unsigned m = 0;

	for (unsigned i = 0; i < count; i++) {
		assert_true(ranges[i].record_count > 0);
		assert_true(ranges[i].record_count <= model_count - m);
		for (uint64_t r = 0; r < ranges[i].record_count; r++)
			assert_int_equal(model[m++],
					 ranges[i].first_record + r);
		assert_true(i == 0 ||
			    ranges[i - 1].first_record +
					    ranges[i - 1].record_count !=
				    ranges[i].first_record);
	}
	assert_int_equal(m, model_count);
}

static void append(struct input_range range)
{
	for (uint64_t r = 0; r < range.record_count; r++)
		model[model_count++] = range.first_record + r;
	count = input_range_append(ranges, count, range);
	expect_model();
}

static void clear(void)
{
	count = model_count = 0;
	memset(ranges, 0xff, sizeof(ranges));
}

static void drop_front(uint64_t record_count)
{
	model_count -= record_count;
	memmove(model, model + record_count, model_count * sizeof(*model));
	count = input_range_drop_front(ranges, count, record_count);
	expect_model();
}

static void input_range_append__joins(void **state)
{
	(void)state;
	clear();
	append((struct input_range){ 50, 0 });
	append((struct input_range){ 50, 5 });
	append((struct input_range){ 55, 1 }); /* behind it */
	append((struct input_range){ 56, 0 });
	append((struct input_range){ 57, 1 }); /* a gap */
	append((struct input_range){ 49, 1 }); /* before it */
	assert_int_equal(count, 3);
}

static void input_range_append__and_drop(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t next = below(3);

		clear();
		for (unsigned i = 0; i < RANGES_MAX; i++) {
			struct input_range range = { next, below(6) };

			if (count > 0 && below(4) == 0)
				drop_front(below(
					(unsigned)ranges[0].record_count + 1));
			append(range);
			next += range.record_count + below(2);
		}
		while (count > 0)
			drop_front(1 + below((unsigned)ranges[0].record_count));
	}
}

/* Cut a part of the input into ranges, some of them empty and some of them
 * missing, and shuffle these. */
static void make_shuffled(void)
{
	uint64_t next = below(3);

	clear();
	for (count = 0; count < RANGES_MAX; count++) {
		unsigned other = below(count + 1);
		struct input_range range = { next, below(5) };

		next += range.record_count + below(2);
		for (uint64_t r = 0; r < range.record_count; r++)
			model[model_count++] = range.first_record + r;
		ranges[count] = ranges[other];
		ranges[other] = range;
	}
}

static void input_range_order__shuffled(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		make_shuffled();
		count = input_range_order(ranges, count);
		expect_model();
	}
	count = model_count = 0;
	count = input_range_order(ranges, count);
	expect_model();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_range_append__joins),
		cmocka_unit_test(input_range_append__and_drop),
		cmocka_unit_test(input_range_order__shuffled),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
