/*
 * test_run_index.c - the index against a plain list of runs with their blocks
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/failure.h"
#include "external/runs/run_index.h"
#include "random_shape.h"

#define RUNS_MAX 200
#define BLOCKS_MAX 6000
#define SIZE_MAX_TESTED 60
#define BLOCK_RECORDS 8

/* --- the plain list --------------------------------------------------------
 */

struct plain_block {
	uint8_t record[SIZE_MAX_TESTED]; /* its first */
	uint64_t first_record;
	uint32_t record_count;
	uint64_t offset_bytes; /* different in each block */
};

struct plain_run {
	struct plain_block *blocks[BLOCKS_MAX];
	unsigned block_count;
	uint64_t record_count;
	uint64_t input_record, input_count;
	const struct batch *resident;
};

static struct plain_block all_blocks[BLOCKS_MAX];
static struct plain_run *runs[RUNS_MAX];
static unsigned run_count, made_count;
static uint64_t next_input; /* of the next run */
static struct run_index runs_index;
static struct record_shape shape;

static void begin_test(void)
{
	shape = random_shape(1 + random_below(SIZE_MAX_TESTED));
	run_index_init(&runs_index, &shape, BLOCK_RECORDS);
	run_count = made_count = 0;
}

static void end_test(void)
{
	for (unsigned r = 0; r < run_count; r++)
		free(runs[r]);
	run_index_free(&runs_index);
}

static void begin_run(uint32_t block_count)
{
	struct failure failure;

	assert_int_equal(run_index_begin(&runs_index, next_input, 1,
					 block_count, &failure),
			 0);
	runs[run_count] = calloc(1, sizeof(*runs[0]));
	assert_non_null(runs[run_count]);
	runs[run_count]->input_record = next_input;
	runs[run_count]->input_count = 1;
	run_count++;
}

/* One block more of the latest run. */
static void add_plain_block(uint32_t number, uint32_t record_count)
{
	struct plain_run *run = runs[run_count - 1];
	struct plain_block *block = &all_blocks[made_count++];

	block->first_record = run->record_count;
	block->record_count = record_count;
	block->offset_bytes = (uint64_t)made_count * PAGE_BYTES;
	for (uint32_t i = 0; i < shape.size; i++)
		block->record[i] = (uint8_t)random_next();
	run->blocks[run->block_count++] = block;
	run->record_count += record_count;
	runs_index.blocks[number].offset_bytes = block->offset_bytes;
	run_index_set_key(&runs_index, number, block->record);
}

static void extend(uint64_t record_count)
{
	uint32_t number = run_index_extend(&runs_index, record_count);

	while (record_count > 0) {
		uint32_t count = (uint32_t)MIN(record_count, BLOCK_RECORDS);

		add_plain_block(number++, count);
		record_count -= count;
	}
	assert_int_equal(runs_index.block_count, number);
}

static void replace(unsigned first, unsigned count)
{
	struct plain_run *merged = runs[run_count - 1];
	struct failure failure;

	merged->input_record = runs[first]->input_record;
	merged->input_count = 0;
	for (unsigned r = first; r < first + count; r++)
		merged->input_count += runs[r]->input_count;
	assert_int_equal(run_index_replace(&runs_index, first, count, &failure),
			 0);
	for (unsigned r = first; r < first + count; r++)
		free(runs[r]);
	memmove(&runs[first + 1], &runs[first + count],
		(run_count - 1 - first - count) * sizeof(struct plain_run *));
	runs[first] = merged;
	run_count -= count;
}

/* --- comparing -------------------------------------------------------------
 */

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

/* Compare the record's key with the block's, as record_compare() does. */
static int compare_key(const uint8_t *record, uint32_t number)
{
	return record_compare(&runs_index.key_shape, record + shape.keys.begin,
			      run_index_key(&runs_index, number));
}

static void check_block(uint32_t number, const struct plain_block *block)
{
	const struct run_block *found = &runs_index.blocks[number];
	uint8_t other[SIZE_MAX_TESTED];

	assert_int_equal(found->first_record, block->first_record);
	assert_int_equal(found->record_count, block->record_count);
	assert_int_equal(found->offset_bytes, block->offset_bytes);
	assert_int_equal(compare_key(block->record, number), 0);
	memcpy(other, block->record, shape.size);
	other[random_below(shape.size)] ^= (uint8_t)(1u << random_below(8));
	assert_int_equal(sign(compare_key(other, number)),
			 sign(record_compare(&shape, other, block->record)));
}

static void check_index(void)
{
	uint32_t number = 0;

	assert_int_equal(runs_index.run_count, run_count);
	for (unsigned r = 0; r < run_count; r++) {
		const struct plain_run *run = runs[r];

		assert_int_equal(runs_index.runs[r].first_block, number);
		assert_int_equal(runs_index.runs[r].input_record,
				 run->input_record);
		assert_int_equal(runs_index.runs[r].input_count,
				 run->input_count);
		assert_int_equal(runs_index.runs[r].block_count,
				 run->block_count);
		assert_int_equal(runs_index.runs[r].record_count,
				 run->record_count);
		assert_ptr_equal(runs_index.runs[r].resident, run->resident);
		for (unsigned b = 0; b < run->block_count; b++)
			check_block(number++, run->blocks[b]);
	}
	assert_int_equal(runs_index.block_count, number);
}

/* --- tests -----------------------------------------------------------------
 */

/* A run gets its records in several parts, each of which may end with a block
 * that is not full; and it may get none. */
static void add_run(unsigned blocks_max)
{
	static const uint8_t batches[RUNS_MAX];
	uint32_t blocks = random_below(blocks_max + 1);
	struct plain_run *run;

	begin_run(blocks);
	while (blocks > 0) {
		uint32_t part = 1 + random_below(blocks);

		extend((uint64_t)part * BLOCK_RECORDS -
		       random_below(BLOCK_RECORDS));
		blocks -= part;
	}
	run = runs[run_count - 1];
	if (random_below(3) == 0)
		run->resident =
			(const struct batch *)(const void *)&batches[run_count];
	runs_index.runs[runs_index.run_count - 1].resident = run->resident;
}

static void run_index_extend__grows(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 10; turn++) {
		begin_test();
		check_index();
		while (run_count < RUNS_MAX) {
			add_run(25);
			if (run_count % 20 == 0)
				check_index();
		}
		end_test();
	}
}

/* Runs of all numbers, merged at every place; the latest is the merged one. */
static void run_index_replace__every_place(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= 6; count++)
		for (unsigned first = 0; first < count; first++)
			for (unsigned merged = 1; first + merged <= count;
			     merged++) {
				begin_test();
				for (unsigned r = 0; r < count + 1; r++)
					add_run(4);
				replace(first, merged);
				check_index();
				add_run(4);
				check_index();
				end_test();
			}
}

static void run_index_replace__again_and_again(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 20; turn++) {
		begin_test();
		for (unsigned r = 0; r < 30; r++)
			add_run(6);
		while (run_count > 2) {
			unsigned first = random_below(run_count - 1);
			unsigned count =
				1 + random_below(run_count - 1 - first);

			replace(first, count);
			check_index();
			if (run_count < 30 && random_below(2))
				add_run(6);
		}
		end_test();
	}
}

static int compare_runs(const void *a, const void *b)
{
	uint64_t first = (*(struct plain_run *const *)a)->input_record;
	uint64_t second = (*(struct plain_run *const *)b)->input_record;

	return (first > second) - (first < second);
}

static void order(void)
{
	struct failure failure;

	/* It is an array of pointers.  NOLINTNEXTLINE(bugprone-sizeof*) */
	qsort(runs, run_count, sizeof(*runs), compare_runs);
	assert_int_equal(run_index_order(&runs_index, &failure), 0);
	check_index();
}

/* Runs come from several parts of the input at a time; then some are merged, as
 * the first of them. */
static void run_index_order__as_the_input(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 200; turn++) {
		unsigned lanes = 1 + random_below(4);
		unsigned count = 1 + random_below(40);
		uint64_t next[4] = { 3000, 1000, 0, 2000 };

		begin_test();
		for (unsigned r = 0; r < count; r++) {
			next_input = next[random_below(lanes)]++;
			add_run(5);
		}
		order();
		add_run(5);
		if (runs_index.block_count > 0) {
			replace(random_below(count), 1);
			order();
		}
		end_test();
	}
}

/* The records of runs [first, first + count), or UINT64_MAX if they are not
 * neighbours. */
static uint64_t count_together(unsigned first, unsigned count)
{
	uint64_t records = 0;

	for (unsigned r = first; r < first + count; r++) {
		if (runs[r]->input_record !=
		    runs[first]->input_record + (r - first))
			return UINT64_MAX;
		records += runs[r]->record_count;
	}
	return records;
}

/* Parts of the input of one record each, of which some are another rank's. */
static void run_index_cheapest__of_all_neighbours(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 300; turn++) {
		unsigned count = 1 + random_below(12);
		unsigned count_max = 1 + random_below(14);
		unsigned first = 0, found;
		uint64_t records;

		begin_test();
		for (unsigned r = 0; r < count; r++) {
			next_input += 1 + (random_below(5) == 0);
			add_run(1 + random_below(6));
		}
		found = run_index_cheapest(&runs_index, count_max, &first);
		assert_int_not_equal(found, 1);
		assert_true(found <= count_max && first + found <= count);
		records = count_together(first, found);
		assert_true(found == 0 || records != UINT64_MAX);
		for (unsigned r = 0; r < count; r++)
			for (unsigned n = 2; n <= MIN(count_max, count - r);
			     n++) {
				uint64_t other = count_together(r, n);

				assert_true(other == UINT64_MAX ||
					    (found > 0 &&
					     records * (n - 1) <=
						     other * (found - 1)));
			}
		next_input = 0;
		end_test();
	}
}

/* Runs that were begun one by one are one in the end. */
static void run_index_join__is_one_run(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 100; turn++) {
		begin_test();
		add_run(4);
		begin_run(10);
		extend(random_below(3 * BLOCK_RECORDS));
		for (unsigned part = random_below(5); part > 0; part--) {
			struct plain_run *whole = runs[run_count - 1];
			struct plain_run *latest;

			begin_run(10);
			extend(random_below(3 * BLOCK_RECORDS));
			run_index_join(&runs_index);
			latest = runs[--run_count];
			for (unsigned i = 0; i < latest->block_count; i++) {
				latest->blocks[i]->first_record +=
					whole->record_count;
				whole->blocks[whole->block_count++] =
					latest->blocks[i];
			}
			whole->record_count += latest->record_count;
			whole->input_count += latest->input_count;
			free(latest);
			check_index();
		}
		add_run(4);
		check_index();
		end_test();
	}
}

/* Several indexes one behind the other, empty ones among them. */
static void run_index_append__several(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct run_index whole;
		struct failure failure;

		begin_test();
		run_index_init(&whole, &shape, BLOCK_RECORDS);
		for (unsigned i = random_below(5); i > 0; i--) {
			for (unsigned r = random_below(5); r > 0; r--)
				add_run(20);
			assert_int_equal(
				run_index_append(&whole, &runs_index, &failure),
				0);
			run_index_init(&runs_index, &shape, BLOCK_RECORDS);
		}
		run_index_free(&runs_index);
		runs_index = whole;
		check_index();
		/* It goes on like any other. */
		add_run(20);
		check_index();
		end_test();
	}
}

/* Of a key that has fields at both ends of the record, too. */
static void run_index_block_bytes__covers_the_index(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 200; turn++) {
		begin_test();
		assert_int_equal(runs_index.key_shape.size,
				 shape.keys.end - shape.keys.begin);
		assert_true(run_index_block_bytes(&shape) >=
			    sizeof(struct run_block) +
				    runs_index.key_shape.size);
		end_test();
	}
}

/* Of a run that is longer than 2^32 records, two blocks are as far apart as
 * their numbers say. */
static void run_block_distance__in_a_long_run(void **state)
{
	const struct run_block from = { .first_record = UINT32_MAX - 9 };
	const struct run_block to = { .first_record = 90 };

	(void)state;
	assert_int_equal(run_block_distance(&from, &to), 100);
	assert_int_equal(sizeof(struct run_block), 24);
}

/* What is reserved is there: the index lies where it lay. */
static void run_index_reserve__suffices(void **state)
{
	struct failure failure;
	const struct run_block *blocks;

	(void)state;
	begin_test();
	assert_int_equal(run_index_reserve(&runs_index, 5000, &failure), 0);
	blocks = runs_index.blocks;
	for (unsigned r = 0; r < 50; r++)
		assert_int_equal(
			run_index_begin(&runs_index, 0, 0, 0, &failure), 0);
	assert_int_equal(run_index_begin(&runs_index, 0, 0, 5000, &failure), 0);
	assert_ptr_equal(runs_index.blocks, blocks);
	assert_int_equal(runs_index.block_capacity, 5000);
	assert_true(run_index_reserve(&runs_index, UINT32_MAX + 1ull,
				      &failure) < 0);
	end_test();
}

static void run_block_follows__only_right_behind(void **state)
{
	struct run_block block = { .directory = 1,
				   .offset_bytes = 3 * PAGE_BYTES };
	struct run_block first = { .directory = 1, .offset_bytes = PAGE_BYTES };

	(void)state;
	assert_true(run_block_follows(&block, &first, 2 * PAGE_BYTES));
	assert_false(run_block_follows(&block, &first, 2 * PAGE_BYTES - 1));
	assert_false(run_block_follows(&block, &first, 2 * PAGE_BYTES + 1));
	first.directory = 0;
	assert_false(run_block_follows(&block, &first, 2 * PAGE_BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_index_extend__grows),
		cmocka_unit_test(run_index_order__as_the_input),
		cmocka_unit_test(run_index_cheapest__of_all_neighbours),
		cmocka_unit_test(run_index_join__is_one_run),
		cmocka_unit_test(run_index_append__several),
		cmocka_unit_test(run_index_replace__every_place),
		cmocka_unit_test(run_index_replace__again_and_again),
		cmocka_unit_test(run_index_block_bytes__covers_the_index),
		cmocka_unit_test(run_index_reserve__suffices),
		cmocka_unit_test(run_block_distance__in_a_long_run),
		cmocka_unit_test(run_block_follows__only_right_behind),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
