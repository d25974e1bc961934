/*
 * test_merge_plan.c - pieces of a merge against a plain stable sort
 *
 * Runs of random records are cut into pieces.  The records that each piece gets
 * are followed as piece_source.c follows them: of each run the rest of the
 * piece before, then its blocks, up to the cut.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/failure.h"
#include "external/plan/merge_plan.h"
#include "random_shape.h"
#include "stable_sort.h"

#define RECORDS_MAX 5000
#define RUNS_MAX 12
#define SIZE_MAX_TESTED 40

static uint8_t *records, *sorted; /* the input; the runs, each sorted */
static uint32_t *order, *scratch; /* numbers of the input's records */
static struct record_shape shape;
static struct run_index runs_index;
static uint32_t record_count, run_count;
static uint32_t run_starts[RUNS_MAX + 1];
static bool unique;

static const uint8_t *sorted_at(uint64_t number)
{
	return sorted + number * shape.size;
}

/* --- runs ------------------------------------------------------------------
 */

/* Bytes of fewer values make more equal keys. */
static void make_records(unsigned values)
{
	for (size_t i = 0; i < (size_t)record_count * shape.size; i++)
		records[i] = (uint8_t)(random_below(values) * 255 /
				       MAX(1, values - 1));
}

static void drop_duplicates(uint32_t *numbers, uint32_t *count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *count; i++)
		if (kept == 0 ||
		    record_compare(
			    &shape,
			    records + (size_t)numbers[kept - 1] * shape.size,
			    records + (size_t)numbers[i] * shape.size) != 0)
			numbers[kept++] = numbers[i];
	*count = kept;
}

/* The parts of a run end with blocks that are not full, as those of a merged
 * run do. */
static void index_run(uint32_t start, uint32_t count)
{
	struct failure failure;

	assert_int_equal(run_index_begin(&runs_index, 0, 0, count, &failure),
			 0);
	while (count > 0) {
		uint32_t part = 1 + random_below(count);
		uint32_t block = run_index_extend(&runs_index, part);
		const struct run *run =
			&runs_index.runs[runs_index.run_count - 1];
		uint64_t base = run->record_count - part;

		for (; block < runs_index.block_count; block++)
			run_index_set_key(
				&runs_index, block,
				sorted_at(
					start +
					runs_index.blocks[block].first_record));
		assert_true(base < run->record_count);
		count -= part;
	}
}

/* Runs of parts of the input, each of one record or more. */
static void make_runs(uint32_t block_records)
{
	uint32_t begin = 0, stored = 0;

	run_index_init(&runs_index, &shape, block_records);
	for (uint32_t r = 0; r < run_count; r++) {
		uint32_t left_runs = run_count - r - 1;
		uint32_t left = record_count - begin;
		uint32_t count = left_runs == 0
					 ? left
					 : 1 + random_below(left - left_runs);

		for (uint32_t i = 0; i < count; i++)
			order[i] = begin + i;
		stable_sort(&shape, records, order, count, scratch);
		begin += count;
		if (unique)
			drop_duplicates(order, &count);
		run_starts[r] = stored;
		for (uint32_t i = 0; i < count; i++)
			memcpy(sorted + (size_t)(stored + i) * shape.size,
			       records + (size_t)order[i] * shape.size,
			       shape.size);
		index_run(stored, count);
		stored += count;
	}
	run_starts[run_count] = stored;
}

/* --- following the pieces --------------------------------------------------
 */

static uint64_t block_end(const struct run_block *block)
{
	return block->first_record + block->record_count;
}

/* Records of the run that belong to the piece, from next[run] on.  *slots grows
 * by those that the piece takes memory for. */
static uint64_t take_run(const struct merge_plan *plan, uint32_t piece,
			 unsigned run, uint64_t next, uint64_t *slots)
{
	const struct run_block *blocks = runs_index.blocks;
	uint32_t first = merge_plan_block(plan, piece, run);
	uint32_t end = merge_plan_block(plan, piece + 1, run);
	/* The rest ends where the blocks of the piece begin. */
	uint32_t run_first = runs_index.runs[plan->first_run + run].first_block;
	uint64_t read = first > run_first ? block_end(&blocks[first - 1]) : 0;
	uint64_t from = next, until = read;
	uint64_t start = run_starts[plan->first_run + run];

	if (end > first) {
		until = block_end(&blocks[end - 1]);
		from = blocks[end - 1].first_record;
	}
	*slots += until - next;
	/* The cut lies in what comes last; all before it is the piece's. */
	return from +
	       merge_plan_count_before(plan, piece, run,
				       sorted_at(start + from), until - from) -
	       next;
}

static void check_order(const uint32_t *piece_order, uint32_t count,
			const uint32_t *expected)
{
	for (uint32_t i = 0; i < count; i++)
		if (piece_order[i] != expected[i])
			fail_msg("record %u of a piece is %u, not %u "
				 "(SEED=%llu)",
				 i, piece_order[i], expected[i],
				 (unsigned long long)seed);
}

/* No key lies on both sides of a cut. */
static void check_cut(uint32_t before, uint32_t behind)
{
	if (unique)
		assert_true(record_compare(&shape, sorted_at(before),
					   sorted_at(behind)) < 0);
}

/* expected: the numbers of all records of the merged runs, in order. */
static void check_pieces(const struct merge_plan *plan,
			 const uint32_t *expected, uint32_t expected_count,
			 uint64_t piece_records)
{
	static uint32_t numbers[RECORDS_MAX];
	uint64_t next[RUNS_MAX] = { 0 };
	uint32_t done = 0;

	for (uint32_t piece = 0; piece < plan->piece_count; piece++) {
		uint64_t slots = 0;
		uint32_t count = 0;

		for (unsigned r = 0; r < plan->run_count; r++) {
			uint64_t taken =
				take_run(plan, piece, r, next[r], &slots);

			assert_true(taken <= RECORDS_MAX);
			for (uint64_t i = 0; i < taken; i++)
				numbers[count++] =
					(uint32_t)(run_starts[plan->first_run +
							      r] +
						   next[r]++);
		}
		assert_true(slots <= piece_records);
		stable_sort(&shape, sorted, numbers, count, scratch);
		check_order(numbers, count, expected + done);
		if (done > 0 && count > 0)
			check_cut(expected[done - 1], expected[done]);
		done += count;
	}
	assert_int_equal(done, expected_count);
}

/* Each piece but the last is full, less one block, and the rests that it may
 * have to take. */
static void check_piece_count(const struct merge_plan *plan, uint32_t merged,
			      uint64_t piece_records)
{
	uint64_t rests = (uint64_t)plan->run_count * runs_index.block_records;
	uint64_t slack = rests + runs_index.block_records;

	assert_true(plan->piece_count > 0);
	if (piece_records > slack)
		assert_true(plan->piece_count - 1 <=
			    merged / (piece_records - slack));
}

static int make_plan(struct merge_plan *plan, unsigned first_run,
		     unsigned count, bool drops, uint64_t piece_records,
		     enum cpu_level kernel, struct failure *failure)
{
	const struct merge_request request = {
		.index = &runs_index,
		.first_run = first_run,
		.run_count = count,
		.unique = drops,
		.piece_records = piece_records,
		.kernel = kernel,
	};

	return merge_plan_make(plan, &request, failure);
}

static void check_merge(unsigned first_run, unsigned count,
			uint64_t piece_records, bool must_do)
{
	uint32_t begin = run_starts[first_run];
	uint32_t merged = run_starts[first_run + count] - begin;
	enum cpu_level level =
		(enum cpu_level)random_below((uint64_t)cpu_level_detect() + 1);
	struct failure failure;
	struct merge_plan plan;
	int error = make_plan(&plan, first_run, count, unique, piece_records,
			      level, &failure);

	if (error == -E2BIG && !must_do)
		return;
	assert_int_equal(error, 0);
	for (uint32_t i = 0; i < merged; i++)
		order[i] = begin + i;
	stable_sort(&shape, sorted, order, merged, scratch);
	check_pieces(&plan, order, merged, piece_records);
	check_piece_count(&plan, merged, piece_records);
	merge_plan_free(&plan);
}

/* --- tests -----------------------------------------------------------------
 */

static void random_runs(unsigned turn, uint32_t block_records)
{
	static const unsigned values[] = { 256, 2, 3, 1, 256, 16 };

	shape = random_shape(1 + random_below(SIZE_MAX_TESTED));
	run_count = 1 + random_below(RUNS_MAX);
	record_count = run_count + random_below(RECORDS_MAX - RUNS_MAX);
	make_records(values[turn % ARRAY_LEN(values)]);
	make_runs(block_records);
}

/* As many runs as merge_plan_runs_max() says can be merged. */
static void check_runs_max(uint32_t block_records)
{
	uint64_t piece_records;

	for (piece_records = block_records;
	     merge_plan_runs_max(piece_records, block_records) < run_count;)
		piece_records++;
	check_merge(0, run_count, piece_records, true);
}

static void check_random_merges(void)
{
	for (unsigned turn = 0; turn < 120; turn++) {
		uint32_t block_records = 1 + random_below(40);

		random_runs(turn, block_records);
		check_runs_max(block_records);
		for (unsigned i = 0; i < 5; i++) {
			unsigned first = random_below(run_count);

			check_merge(first, 1 + random_below(run_count - first),
				    1 + random_below(2 * record_count), false);
		}
		check_merge(0, run_count, 2 * (uint64_t)record_count + 1000,
			    true);
		run_index_free(&runs_index);
	}
}

static void merge_plan__every_record_in_one_piece(void **state)
{
	(void)state;
	unique = false;
	check_random_merges();
}

static void merge_plan__unique_keys_meet(void **state)
{
	(void)state;
	unique = true;
	check_random_merges();
}

/* All keys are equal: cuts are places, and no piece is larger for that. */
static void merge_plan__cuts_within_equal_keys(void **state)
{
	uint64_t piece_records = 1000;
	struct failure failure;
	struct merge_plan plan;

	(void)state;
	unique = false;
	shape = random_shape(10);
	run_count = 5;
	record_count = RECORDS_MAX;
	make_records(1);
	make_runs(100);
	check_merge(0, run_count, piece_records, true);
	assert_int_equal(make_plan(&plan, 0, run_count, unique, piece_records,
				   CPU_SCALAR, &failure),
			 0);
	assert_true(plan.piece_count >= RECORDS_MAX / piece_records);
	merge_plan_free(&plan);
	run_index_free(&runs_index);
}

/* Runs of blocks whose records 32 bits cannot count; of the keys there is one a
 * block, and the plan looks at no record. */
static void make_large_runs(uint32_t block_records, uint32_t blocks)
{
	struct failure failure;
	uint8_t key[2] = { 0 };

	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(2, 0, 2);
	run_index_init(&runs_index, &shape, block_records);
	for (unsigned r = 0; r < run_count; r++) {
		assert_int_equal(
			run_index_begin(&runs_index, r, 1, blocks, &failure),
			0);
		run_index_extend(&runs_index, (uint64_t)blocks * block_records);
		assert_true(runs_index.runs[r].record_count > UINT32_MAX);
		for (uint32_t b = 0; b < blocks; b++) {
			key[0] = (uint8_t)(b * 3);
			key[1] = (uint8_t)random_below(256);
			run_index_set_key(&runs_index,
					  runs_index.runs[r].first_block + b,
					  key);
		}
	}
}

/* Records that the piece takes memory for, without the rests of the one before.
 * The distance within a run must be right though first_record is not. */
static uint64_t piece_records_of(const struct merge_plan *plan, uint32_t piece)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < run_count; r++) {
		uint32_t first = merge_plan_block(plan, piece, r);
		uint32_t end = merge_plan_block(plan, piece + 1, r);
		const struct run_block *last;

		assert_true(first <= end);
		if (first == end)
			continue;
		last = &runs_index.blocks[end - 1];
		assert_int_equal(
			run_block_distance(&runs_index.blocks[first], last) +
				last->record_count,
			(uint64_t)(end - first) * runs_index.block_records);
		count += (uint64_t)(end - first) * runs_index.block_records;
	}
	return count;
}

static void merge_plan__more_records_than_32_bits_count(void **state)
{
	const uint32_t block_records = (uint32_t)1 << 27, blocks = 80;
	struct merge_request request = {
		.index = &runs_index,
		.run_count = 3,
		.piece_records = (uint64_t)6 << 30,
	};
	struct failure failure;
	struct merge_plan plan;
	uint64_t sum = 0;

	(void)state;
	run_count = request.run_count;
	make_large_runs(block_records, blocks);
	assert_int_equal(merge_plan_make(&plan, &request, &failure), 0);
	for (uint32_t piece = 0; piece < plan.piece_count; piece++) {
		uint64_t count = piece_records_of(&plan, piece);

		assert_in_range(count, 1, request.piece_records);
		sum += count;
	}
	assert_int_equal(sum, (uint64_t)run_count * blocks * block_records);
	assert_in_range(plan.piece_count, 5, 6);

	/* As many pieces as there may be, and one less. */
	request.piece_count_max = plan.piece_count;
	merge_plan_free(&plan);
	assert_int_equal(merge_plan_make(&plan, &request, &failure), 0);
	merge_plan_free(&plan);
	request.piece_count_max--;
	assert_int_equal(merge_plan_make(&plan, &request, &failure), -EINVAL);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	assert_non_null(strstr(failure.why, "more than"));
	merge_plan_free(&plan);
	run_index_free(&runs_index);
}

/* A random block's cut, and in *before how many of the sorted records, which
 * are all runs', lie before it. */
static struct run_cut random_cut(uint32_t *before)
{
	uint32_t block = (uint32_t)random_below(runs_index.block_count);
	unsigned run = run_count - 1;
	uint32_t record, i = 0;

	while (runs_index.runs[run].first_block > block)
		run--;
	/* A part has no blocks of the cut's run that lie before it, and so the
	 * plan does not look at the place. */
	while (block > runs_index.runs[run].first_block &&
	       record_compare(&runs_index.key_shape,
			      run_index_key(&runs_index, block - 1),
			      run_index_key(&runs_index, block)) == 0)
		block--;
	record = run_starts[run] + runs_index.blocks[block].first_record;
	while (order[i] != record)
		i++;
	while (unique && i > 0 &&
	       record_compare(&shape, sorted_at(order[i - 1]),
			      sorted_at(record)) == 0)
		i--;
	*before = i;
	return (struct run_cut){
		.key = run_index_key(&runs_index, block),
		.run = run,
		.place = block - runs_index.runs[run].first_block,
	};
}

/* What lies before a part comes in its lead: here, all that does. */
static void check_part(void)
{
	uint32_t count = run_starts[run_count], before, lead = 0;
	struct run_cut begin;
	const struct merge_request request = {
		.index = &runs_index,
		.run_count = run_count,
		.unique = unique,
		.piece_records = 2 * (uint64_t)count,
		.kernel = cpu_level_detect(),
		.begin = &begin,
	};
	struct failure failure;
	struct merge_plan plan;
	uint64_t slots = 0;

	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	stable_sort(&shape, sorted, order, count, scratch);
	begin = random_cut(&before);
	assert_int_equal(merge_plan_make(&plan, &request, &failure), 0);
	assert_true(merge_plan_is_lead(&plan, 0));
	assert_int_equal(plan.piece_count, 2);
	for (unsigned r = 0; r < run_count; r++)
		lead += (uint32_t)take_run(&plan, 0, r, 0, &slots);
	assert_int_equal(lead, before);
	check_pieces(&plan, order, count, request.piece_records);
	merge_plan_free(&plan);
}

static void merge_plan__part_of_a_merge(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 200; turn++) {
		unique = turn % 2 == 1;
		random_runs(turn, 1 + (uint32_t)random_below(20));
		check_part();
		run_index_free(&runs_index);
	}
	unique = false;
}

/* Each piece has as much of each source as it may, or a block less. */
static void merge_plan__bytes_of_each_source(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 100; turn++) {
		uint64_t most[3], got[3];
		struct merge_request request = {
			.index = &runs_index,
			.kernel = CPU_SCALAR,
			.rank_bytes_max = most,
			.rank_count = 3,
		};
		struct failure failure;
		struct merge_plan plan;

		random_runs(turn, 1 + (uint32_t)random_below(20));
		request.run_count = run_count;
		request.piece_records = 2 * (uint64_t)record_count;
		for (unsigned r = 0; r < run_count; r++)
			runs_index.runs[r].rank = r % 3;
		for (uint32_t b = 0; b < runs_index.block_count; b++)
			runs_index.blocks[b].stored_bytes =
				1 + (uint32_t)random_below(100);
		for (unsigned i = 0; i < 3; i++)
			most[i] = 100 + random_below(1000);
		assert_int_equal(merge_plan_make(&plan, &request, &failure), 0);
		for (uint32_t p = 0; p < plan.piece_count; p++) {
			memset(got, 0, sizeof(got));
			for (uint32_t i = plan.piece_start[p];
			     i < plan.piece_start[p + 1]; i++) {
				uint32_t block = plan.order[i];
				unsigned r = run_count - 1;

				while (runs_index.runs[r].first_block > block)
					r--;
				got[r % 3] +=
					runs_index.blocks[block].stored_bytes;
			}
			for (unsigned i = 0; i < 3; i++)
				assert_true(got[i] <= most[i]);
		}
		merge_plan_free(&plan);
		run_index_free(&runs_index);
	}
}

/* Rests of all runs fill a piece: nothing more can be read. */
static void merge_plan_make__too_many_runs(void **state)
{
	struct failure failure;
	struct merge_plan plan;

	(void)state;
	unique = false;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(8, 0, 8);
	run_count = 10;
	record_count = 4000;
	make_records(256);
	make_runs(20);
	assert_int_equal(make_plan(&plan, 0, run_count, unique, 19, CPU_SCALAR,
				   &failure),
			 -E2BIG);
	assert_null(plan.order);
	run_index_free(&runs_index);
}

static int make_memory(void **state)
{
	(void)state;
	records = malloc((size_t)RECORDS_MAX * SIZE_MAX_TESTED);
	sorted = malloc((size_t)RECORDS_MAX * SIZE_MAX_TESTED);
	order = malloc(RECORDS_MAX * sizeof(*order));
	scratch = malloc(RECORDS_MAX * sizeof(*scratch));
	return records && sorted && order && scratch ? 0 : -1;
}

static int free_memory(void **state)
{
	(void)state;
	free(records);
	free(sorted);
	free(order);
	free(scratch);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_plan__every_record_in_one_piece),
		cmocka_unit_test(merge_plan__unique_keys_meet),
		cmocka_unit_test(merge_plan__cuts_within_equal_keys),
		cmocka_unit_test(merge_plan__more_records_than_32_bits_count),
		cmocka_unit_test(merge_plan__part_of_a_merge),
		cmocka_unit_test(merge_plan__bytes_of_each_source),
		cmocka_unit_test(merge_plan_make__too_many_runs),
	};

	random_begin();
	return cmocka_run_group_tests(tests, make_memory, free_memory);
}
