/*
 * test_run_numbers.c - the order of all ranks' runs
 *
 * Each rank's input is cut into runs at random places; the numbers must be
 * those of the whole input, and whatever a rank changes in what it tells is
 * refused, with its name.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/failure.h"
#include "cluster/external/run_numbers.h"
#include "random_shape.h"

#define RANKS_MAX 5
#define RUNS_MAX 8
#define ROUNDS 2000

static struct run_spans spans[RANKS_MAX];
static uint8_t told[RANKS_MAX][RUNS_MAX * RUN_NUMBERS_RUN_BYTES];
static unsigned rank_count;

static void tell_rank(unsigned rank, uint64_t begin)
{
	struct record_shape shape = random_shape(10);
	uint32_t run_count = (uint32_t)random_below(RUNS_MAX + 1);
	struct run_index index;
	struct failure failure;
	uint64_t own = 0;

	run_index_init(&index, &shape, 3);
	for (uint32_t r = 0; r < run_count; r++) {
		uint64_t count = 1 + random_below(1000);

		assert_int_equal(run_index_begin(&index, begin + own, count, 0,
						 &failure),
				 0);
		own += count;
	}
	assert_ptr_equal(run_numbers_write(&index, told[rank]),
			 told[rank] +
				 (size_t)run_count * RUN_NUMBERS_RUN_BYTES);
	spans[rank] = (struct run_spans){
		.bytes = told[rank],
		.run_count = run_count,
		.record_count = own,
		.parts = { { begin, own } },
		.part_count = 1,
	};
	run_index_free(&index);
}

static void tell(void)
{
	uint64_t begin = 0;

	rank_count = 1 + random_below(RANKS_MAX);
	for (unsigned i = 0; i < rank_count; i++) {
		tell_rank(i, begin);
		begin += spans[i].record_count;
	}
}

/* As one part or two, in any order. */
static void add_part(struct run_spans *of, uint64_t begin, uint64_t count)
{
	uint64_t first = random_below(count + 1);
	struct input_range parts[] = { { begin, first },
				       { begin + first, count - first } };
	unsigned swap = (unsigned)random_below(2);

	of->parts[of->part_count++] = parts[swap];
	of->parts[of->part_count++] = parts[!swap];
}

/* The input is cut into runs, each of which any rank has; expected[] has their
 * numbers as run_numbers_make() tells them. */
static uint32_t deal(uint32_t *expected)
{
	uint32_t owner[RUNS_MAX], run_count = 1 + random_below(RUNS_MAX);
	uint64_t begin[RUNS_MAX + 1] = { 0 };
	uint32_t place = 0;

	rank_count = 1 + random_below(RANKS_MAX);
	for (uint32_t r = 0; r < run_count; r++) {
		owner[r] = (uint32_t)random_below(rank_count);
		begin[r + 1] = begin[r] + 1 + random_below(1000);
	}
	for (unsigned i = 0; i < rank_count; i++) {
		spans[i] = (struct run_spans){ .bytes = told[i] };
		for (uint32_t r = 0; r < run_count; r++) {
			uint8_t *at = told[i] + spans[i].run_count * 16;

			if (owner[r] != i)
				continue;
			store_le64(at, begin[r]);
			store_le64(at + 8, begin[r + 1] - begin[r]);
			add_part(&spans[i], begin[r], begin[r + 1] - begin[r]);
			spans[i].run_count++;
			spans[i].record_count += begin[r + 1] - begin[r];
			expected[place++] = r;
		}
	}
	return run_count;
}

static int make(uint32_t **numbers, bool drops, unsigned *bad)
{
	struct failure failure;

	return run_numbers_make(numbers, spans, rank_count, drops, bad,
				&failure);
}

static void run_numbers_make__as_the_input(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t *numbers, count = 0;
		unsigned bad;

		tell();
		assert_int_equal(make(&numbers, false, &bad), 0);
		for (unsigned i = 0; i < rank_count; i++)
			for (uint32_t r = 0; r < spans[i].run_count; r++) {
				assert_int_equal(numbers[count], count);
				count++;
			}
		free(numbers);
	}
}

/* One word of one rank, or a number of its records. */
static void run_numbers_make__refuses_what_cannot_be(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned victim, bad = RANKS_MAX;
		uint32_t *numbers;
		uint8_t *word;

		do {
			tell();
			victim = (unsigned)random_below(rank_count);
		} while (spans[victim].run_count == 0);
		if (random_below(8) == 0) {
			spans[victim].record_count += random_below(2) ? 1 : -1;
		} else {
			word = told[victim] +
			       random_below(2 * spans[victim].run_count) * 8;
			store_le64(word, random_below(2) ? load_le64(word) + 1
							 : random_next());
		}
		assert_int_equal(make(&numbers, false, &bad), -EBADMSG);
		assert_int_equal(bad, victim);
		free(numbers);
	}
}

static void run_numbers_make__of_any_rank(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t expected[RUNS_MAX], *numbers;
		uint32_t count = deal(expected);
		unsigned bad;

		assert_int_equal(make(&numbers, false, &bad), 0);
		assert_memory_equal(numbers, expected,
				    count * sizeof(*numbers));
		free(numbers);
	}
}

/* A gap, an overlap, an end too early or too late. */
static void run_numbers_make__refuses_any_ranks_lie(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t expected[RUNS_MAX], *numbers;
		unsigned victim, bad = RANKS_MAX;
		uint8_t *word;

		deal(expected);
		do
			victim = (unsigned)random_below(rank_count);
		while (spans[victim].run_count == 0);
		word = told[victim] +
		       random_below(2 * spans[victim].run_count) * 8;
		/* Not both: a run of one record could be the next one's. */
		if (random_below(4) == 0)
			spans[victim].run_count--;
		else
			store_le64(word, load_le64(word) +
						 (random_below(2) ? 1 : -1));
		assert_int_equal(make(&numbers, random_below(2), &bad),
				 -EBADMSG);
		assert_int_equal(bad, victim);
		free(numbers);
	}
}

/* Fewer records than there were, but not more. */
static void run_numbers_make__dropped_duplicates(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t *numbers;
		uint64_t whole;
		unsigned bad;

		tell();
		whole = spans[0].record_count;
		spans[0].record_count -= random_below(whole + 1);
		assert_int_equal(make(&numbers, true, &bad), 0);
		free(numbers);
		spans[0].record_count = whole + 1;
		assert_int_equal(make(&numbers, true, &bad), -EBADMSG);
		assert_int_equal(bad, 0);
		free(numbers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_numbers_make__as_the_input),
		cmocka_unit_test(run_numbers_make__refuses_what_cannot_be),
		cmocka_unit_test(run_numbers_make__of_any_rank),
		cmocka_unit_test(run_numbers_make__refuses_any_ranks_lie),
		cmocka_unit_test(run_numbers_make__dropped_duplicates),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
