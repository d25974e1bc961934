/*
 * test_external_plan.c - what the plan of an external sort promises
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "external/plan/external_plan.h"
#include "external/external_request.h"
#include "external/plan/merge_plan.h"
#include "random_shape.h"

#define GB ((uint64_t)1000000000)
#define MB ((uint64_t)1000000)

/* A request that is planned by runs: sums of records keep the plan from sorting
 * their keys alone. */
static struct external_request request_of(uint32_t record_size, uint64_t bytes,
					  uint64_t memory_bytes)
{
	uint32_t key_length = MIN(record_size, 10);

	return (struct external_request){
		.shape = RECORD_SHAPE_OF_SLICE(record_size, 0, key_length),
		.record_count = bytes / record_size,
		.memory_bytes = memory_bytes,
		.worker_count = 2,
		.sums_up = true,
	};
}

static struct external_request random_request(void)
{
	static const uint32_t sizes[] = { 3,   5,    7,	     16,     100,
					  500, 4096, 100000, 1 << 20 };
	uint64_t bytes = (MB << random_below(14)) + random_below(MB);
	struct external_request request =
		request_of(sizes[random_below(ARRAY_LEN(sizes))], bytes,
			   (MB << random_below(14)) + random_next() % bytes);

	request.shape = random_shape(request.shape.size);
	request.worker_count = 1 + random_below(8);
	if (random_below(4) == 0)
		request.runs_max = 2 + random_below(20);
	if (random_below(4) == 0)
		request.record_count = EXTERNAL_RECORDS_UNKNOWN;
	return request;
}

/* Bytes that the first pass and all merges write and read. */
static uint64_t moved_bytes(const struct external_plan *plan,
			    const struct external_request *request)
{
	return (plan->spilled_records + plan->merged_records) *
	       request->shape.size;
}

/* The same, with what reads cost. */
static double moved_with_reads(const struct external_plan *plan,
			       const struct external_request *request)
{
	return plan->cost * (double)request->record_count * request->shape.size;
}

/* --- the parts --------------------------------------------------------------
 */

static uint64_t staging_bytes(const struct external_plan *plan,
			      const struct external_request *request)
{
	return (uint64_t)request->worker_count * plan->read_depth *
		       plan->read_slot_bytes +
	       (uint64_t)plan->slot_count * plan->slot_bytes;
}

static void check_memory(const struct external_plan *plan,
			 const struct external_request *request)
{
	uint64_t batches = plan->batch_count * plan->batch_bytes;

	assert_true(plan->memory_bytes + plan->index_bytes <
		    request->memory_bytes);
	assert_true(batches + staging_bytes(plan, request) <=
		    plan->memory_bytes);
	assert_true(batch_bytes(&plan->batch) <= plan->batch_bytes);
	assert_true(plan->index_bytes >=
		    plan->index_blocks *
			    run_index_block_bytes(&request->shape));
	if (request->record_count != EXTERNAL_RECORDS_UNKNOWN)
		assert_true(plan->index_blocks >=
			    request->record_count / plan->block_records);
}

/* What must fit into what. */
static void check_sizes(const struct external_plan *plan,
			const struct external_request *request)
{
	uint64_t block_bytes =
		(uint64_t)plan->block_records * request->shape.size;
	bool has_arm = external_request_has_arm(request);
	bool may_turn = has_arm && !external_request_is_stream(request);

	assert_true(plan->batch_count >= (may_turn ? 1 : 2));
	assert_int_equal(plan->merge_areas, has_arm ? 1 : 2);
	assert_true(plan->free_batches >= 1 &&
		    plan->free_batches <= plan->batch_count);
	assert_true(plan->block_records > 0);
	assert_true(plan->run_chunk_bytes > 0 && block_bytes > 0 &&
		    plan->run_chunk_bytes % block_bytes == 0);
	assert_int_equal(plan->slot_bytes % PAGE_BYTES, 0);
	assert_int_equal(plan->read_slot_bytes % PAGE_BYTES, 0);
	assert_true(plan->slot_bytes >= plan->run_chunk_bytes);
	assert_true(plan->slot_bytes >= plan->output_chunk_bytes);
	assert_true(plan->read_slot_bytes >= block_bytes + 2 * PAGE_BYTES);
	assert_true(plan->read_depth > 0 && plan->write_depth > 0);
	assert_true(plan->slot_count > request->worker_count);
	assert_true(plan->batch.capacity > 0);
	assert_true(external_plan_runs_max(plan, request, plan->batch_count) >=
		    2);
}

static void check_expectation(const struct external_plan *plan,
			      const struct external_request *request)
{
	if (request->record_count == EXTERNAL_RECORDS_UNKNOWN) {
		assert_int_equal(plan->spilled_records, 0);
		assert_int_equal(plan->run_count, 0);
		return;
	}
	assert_int_equal(plan->merge_count > 0, plan->merged_records > 0);
	assert_true(plan->run_count * plan->batch.capacity >=
		    request->record_count);
	assert_true(plan->spilled_records <= request->record_count);
	assert_true(plan->scratch_bytes >=
		    plan->spilled_records * request->shape.size);
	/* One batch at least is free for what is merged. */
	if (request->record_count >
	    (plan->batch_count - 1) * plan->batch.capacity)
		assert_true(plan->spilled_records > 0);
}

static void external_plan__parts_fit(void **state)
{
	unsigned made = 0;

	(void)state;
	for (unsigned turn = 0; turn < 400; turn++) {
		struct external_request request = random_request();
		struct external_plan plan = { 0 };
		int error;

		request.seek_bytes = turn % 4 == 0 ? MIB : 0;
		error = external_plan_make(&plan, &request);
		if (error) {
			assert_int_equal(error, -ENOMEM);
			continue;
		}
		made++;
		check_memory(&plan, &request);
		check_sizes(&plan, &request);
		check_expectation(&plan, &request);
	}
	assert_true(made > 100);
}

/* --- more memory ------------------------------------------------------------
 */

static void check_larger_memory(const struct external_request *request)
{
	struct external_request larger = *request;
	struct external_plan plan, better;
	int error = external_plan_make(&plan, request);

	larger.memory_bytes *= 2;
	if (error)
		return;
	assert_int_equal(external_plan_make(&better, &larger), 0);
	/* Larger requests, which more memory gets, leave less for records. */
	assert_true(moved_with_reads(&better, &larger) <=
		    1.06 * moved_with_reads(&plan, request));
}

static void external_plan__twice_the_memory_moves_no_more(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 300; turn++) {
		struct external_request request = random_request();

		if (request.record_count == EXTERNAL_RECORDS_UNKNOWN)
			continue;
		/* Merges of so few runs have passes by the dozen, in which the
		 * size of reads decides. */
		request.runs_max = 0;
		check_larger_memory(&request);
	}
}

/* The least memory for which nothing is spilled. */
static uint64_t memory_without_spill(struct external_request request)
{
	uint64_t low = 0, high = 4 * request.record_count * request.shape.size;

	while (high - low > MIB) {
		struct external_plan plan;

		request.memory_bytes = low + (high - low) / 2;
		if (external_plan_make(&plan, &request) == 0 &&
		    plan.spilled_records == 0)
			high = request.memory_bytes;
		else
			low = request.memory_bytes;
	}
	return high;
}

/* What is missing, and a batch: no step from the one way to the other. */
static void external_plan__little_is_missing(void **state)
{
	static const unsigned missing_percent[] = { 1, 5, 10, 25 };

	(void)state;
	for (uint64_t bytes = 500 * MB; bytes <= 100 * GB; bytes *= 5) {
		struct external_request request = request_of(100, bytes, 0);
		uint64_t whole = memory_without_spill(request);

		for (unsigned i = 0; i < ARRAY_LEN(missing_percent); i++) {
			unsigned percent = missing_percent[i];
			struct external_plan plan;

			request.memory_bytes = whole / 100 * (100 - percent);
			assert_int_equal(external_plan_make(&plan, &request),
					 0);
			assert_int_equal(plan.merge_count, 0);
			/* A batch is a part of 6 to 32. */
			assert_true(moved_bytes(&plan, &request) <=
				    bytes / 100 * percent + bytes / 10);
		}
	}
}

/* What is moved, with what reads cost: from the least memory to nearly enough,
 * 2 % of memory more never save more than 11 %, neither where runs need not be
 * merged twice any more, nor where blocks get another size; and never cost more
 * than larger requests do. */
static void external_plan__no_step(void **state)
{
	struct external_request request = request_of(100, 8 * GB, 50 * MB);
	double before = 0;

	(void)state;
	for (; request.memory_bytes < 8 * GB;
	     request.memory_bytes += request.memory_bytes / 50) {
		struct external_plan plan;
		double moved;

		assert_int_equal(external_plan_make(&plan, &request), 0);
		/* The input and the output are moved, too. */
		moved = moved_with_reads(&plan, &request) + 16.0 * (double)GB;
		if (before > 0 &&
		    (before > moved * 1.11 || moved > before * 1.03))
			fail_msg("%llu bytes: from %.0f to %.0f",
				 (unsigned long long)request.memory_bytes,
				 before, moved);
		/* Of little that is spilled, 2 % of the memory are much. */
		before = plan.spilled_records > 0 &&
					 request.memory_bytes < 4 * GB
				 ? moved
				 : 0;
	}
}

/* --- too little memory ------------------------------------------------------
 */

static void external_plan__refuses_too_little(void **state)
{
	struct external_request request = request_of(100, GB, MIB);
	struct external_plan plan;

	(void)state;
	assert_int_equal(external_plan_make(&plan, &request), -ENOMEM);
	/* Four records at least are in each of two batches. */
	request =
		request_of(RECORD_SIZE_MAX, GB, 7 * (uint64_t)RECORD_SIZE_MAX);
	assert_int_equal(external_plan_make(&plan, &request), -ENOMEM);
}

static void external_request_memory_min__suffices(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < 100; turn++) {
		struct external_request request = random_request();
		struct external_plan plan;

		request.memory_bytes = external_request_memory_min(&request);
		assert_int_equal(request.memory_bytes % MIB, 0);
		assert_int_equal(external_plan_make(&plan, &request), 0);
		check_memory(&plan, &request);
		/* It is not far above the least. */
		request.memory_bytes /= 2;
		assert_int_equal(external_plan_make(&plan, &request), -ENOMEM);
	}
}

static void external_request_memory_min__none(void **state)
{
	struct external_request request = request_of(100, 0, GB);

	(void)state;
	/* Its index would number more blocks than 32 bits do. */
	request.record_count = (uint64_t)1 << 56;
	assert_true(external_request_memory_min(&request) == UINT64_MAX);
}

/* --- keys and threads -------------------------------------------------------
 */

/* The plan of a sort whose scratch files are on disks. */
static int choose(struct external_request *request, struct external_plan *plan)
{
	const struct sorter_config sort = { 0 };
	const struct external_config config = { .sort = &sort };
	struct failure failure;

	return external_request_plan(request, &config, plan, &failure);
}

/* Every record, key, source and number of threads can be sorted in a memory
 * that follows from the largest record and the index of a file; and of a stream
 * as much can as would fill a third of that memory. */
static void check_any_key(uint32_t record_size, uint32_t key_end,
			  bool is_stream)
{
	struct external_request request = request_of(record_size, 100 * MB, 0);
	uint64_t memory = 64 * MIB + 48 * (uint64_t)record_size;
	uint64_t least_records =
		is_stream ? memory / 3 / record_size : request.record_count;

	request.shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(record_size,
								   0, key_end);
	request.may_have_fewer = true;
	if (is_stream)
		request.record_count = EXTERNAL_RECORDS_UNKNOWN;
	else
		memory += 2 * request.record_count * key_end;
	request.memory_bytes = memory;
	assert_true(external_request_memory_min(&request) <= memory);
	for (; request.memory_bytes < 1000 * GB; request.memory_bytes *= 60) {
		struct external_plan plan;

		request.worker_count = 256;
		assert_int_equal(choose(&request, &plan), 0);
		assert_in_range(request.worker_count, 1, 256);
		assert_true(plan.way == EXTERNAL_BY_COUNTS ||
			    plan.index_blocks * plan.block_records >=
				    least_records);
	}
}

static void external_request_plan__any_key(void **state)
{
	static const uint32_t sizes[] = {
		1, 4, 100, 4000, 5000, 70000, 1 << 20, RECORD_SIZE_MAX
	};
	static const uint32_t ends[] = {
		1, 10, 1595, 1596, 4000, 70000, 1 << 20, RECORD_SIZE_MAX
	};

	(void)state;
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++)
		for (unsigned e = 0; e < ARRAY_LEN(ends); e++) {
			if (ends[e] > sizes[s])
				continue;
			check_any_key(sizes[s], ends[e], false);
			check_any_key(sizes[s], ends[e], true);
		}
}

static void external_request_plan__all_that_are_given(void **state)
{
	struct external_request request = request_of(16, 4 * GB, 512 * MIB);
	struct external_plan plan;

	(void)state;
	request.worker_count = 256;
	assert_true(choose(&request, &plan) < 0);
	assert_int_equal(request.worker_count, 256);
	assert_true(external_request_memory_min(&request) > 512 * MIB);
	request.may_have_fewer = true;
	assert_int_equal(choose(&request, &plan), 0);
	assert_in_range(request.worker_count, 16, 128);
	assert_true(external_request_memory_min(&request) < 20 * MIB);
}

/* Where so many threads leave room for merges of two runs only, and half of
 * them do not, hundreds of merges are spared. */
static void external_request_plan__no_merges_for_threads(void **state)
{
	struct external_request request = request_of(16, 100 * MB, 8 * MIB);
	struct external_plan plan, chosen;

	(void)state;
	request.shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(16, 0, 8);
	assert_int_equal(external_plan_make(&plan, &request), 0);
	request.may_have_fewer = true;
	assert_int_equal(choose(&request, &chosen), 0);
	assert_int_equal(request.worker_count, 1);
	assert_true(chosen.merge_count < plan.merge_count / 4);
	/* In twice the memory both threads are as good. */
	request.worker_count = 2;
	request.memory_bytes = 16 * MIB;
	assert_int_equal(choose(&request, &chosen), 0);
	assert_int_equal(request.worker_count, 2);
}

/* On a disk with an arm a run and a piece have nearly all of the memory, and
 * requests are as large as what its way costs. */
static void external_plan__an_arm_takes_turns(void **state)
{
	struct external_request request = request_of(100, 2 * GB, 100 * MIB);
	struct external_plan plan, arm;

	(void)state;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_true(plan.batch_count > 1);
	assert_int_equal(plan.merge_areas, 2);
	request.seek_bytes = MIB;
	request.worker_count = 1;
	assert_int_equal(external_plan_make(&arm, &request), 0);
	assert_int_equal(arm.batch_count, 1);
	assert_int_equal(arm.merge_areas, 1);
	assert_true(arm.batch.capacity * 100 > 65 * MIB);
	assert_true(arm.output_chunk_bytes == MIB);
	assert_true(arm.read_bytes > 3 * plan.read_bytes);
	/* Neither a stream nor ranks. */
	request.ranks.rank_count = 2;
	assert_int_equal(external_plan_make(&arm, &request), 0);
	assert_true(arm.batch_count > 1);
	request.ranks.rank_count = 0;
	request.record_count = EXTERNAL_RECORDS_UNKNOWN;
	assert_int_equal(external_plan_make(&arm, &request), 0);
	assert_true(arm.batch_count > 1);
}

/* Small reads from anywhere take so long that runs are merged twice, unless
 * scratch files, which are memory, have no room for that. */
static void external_request_plan__merges_twice_for_an_arm(void **state)
{
	const struct external_request request =
		request_of(100, 8 * GB, 70 * MIB);
	struct external_request tried = request;
	struct external_plan once, twice;

	(void)state;
	tried.seek_bytes = MIB;
	tried.worker_count = 1;
	assert_int_equal(external_plan_make(&once, &tried), 0);
	assert_int_equal(once.merge_count, 0);
	assert_int_equal(choose(&tried, &twice), 0);
	assert_true(twice.merge_count > 0);
	assert_true(twice.cost < once.cost);
	assert_true(twice.read_bytes > 4 * once.read_bytes);
	assert_true((uint64_t)tried.runs_max * tried.runs_max >=
		    twice.run_count);
	/* The files of one merge fit, with those of two they do not. */
	tried = request;
	tried.seek_bytes = MIB;
	tried.worker_count = 1;
	tried.available_bytes = tried.memory_bytes + once.scratch_bytes;
	assert_true(twice.scratch_bytes > once.scratch_bytes);
	assert_int_equal(choose(&tried, &twice), 0);
	assert_int_equal(twice.merge_count, 0);
	assert_int_equal(tried.memory_bytes, request.memory_bytes);
}

static void external_plan_piece_records__halves_a_lone_one(void **state)
{
	struct external_request request = request_of(100, GB, 100 * MB);
	struct external_plan plan;

	(void)state;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(external_plan_piece_records(&plan, 2),
			 plan.batch.capacity);
	assert_true(external_plan_piece_records(&plan, 1) <=
		    plan.batch.capacity / 2);
	request.runs_max = 3;
	assert_int_equal(external_plan_runs_max(&plan, &request, 2), 3);
}

/* --- large records ----------------------------------------------------------
 */

static void external_plan__sorts_keys_of_large_records(void **state)
{
	struct external_request request = request_of(MIB, 8 * GB, GB);
	struct external_plan plan;

	(void)state;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_RUNS);
	request.sums_up = false;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_KEYS);
	assert_int_equal(plan.spilled_records, 0);
	assert_int_equal(plan.batch.capacity, request.record_count);
	assert_true(batch_bytes(&plan.batch) <= plan.batch_bytes);
	assert_true(plan.batch_bytes + staging_bytes(&plan, &request) <=
		    plan.memory_bytes);
	assert_true(plan.memory_bytes < request.memory_bytes);
	/* As many small records are not worth a read for each. */
	request = request_of(1000, 8 * GB, GB);
	request.sums_up = false;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_RUNS);
	/* A pipe cannot be read twice. */
	request = request_of(MIB, 8 * GB, GB);
	request.sums_up = false;
	request.record_count = EXTERNAL_RECORDS_UNKNOWN;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_RUNS);
}

/* In little memory, as long as the keys cover all of the record. */
static void external_plan__counts_small_records(void **state)
{
	struct external_request request = request_of(2, 1000 * GB, 20 * MIB);
	struct external_plan plan;

	(void)state;
	request.shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(2, 0, 2);
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_COUNTS);
	assert_int_equal(plan.scratch_bytes, 0);
	assert_true(plan.memory_bytes < request.memory_bytes);
	request.record_count = EXTERNAL_RECORDS_UNKNOWN;
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_COUNTS);
	request = request_of(2, GB, 100 * MIB);
	request.shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(2, 0, 1);
	assert_int_equal(external_plan_make(&plan, &request), 0);
	assert_int_equal(plan.way, EXTERNAL_BY_RUNS);
}

/* As much as a rank may have at all, in whatever memory: 32 bits suffice for
 * what they number. */
static void external_plan__ranks_of_32_tib(void **state)
{
	const uint64_t share_bytes = (uint64_t)1 << 45;
	unsigned refused = 0, planned = 0;

	(void)state;
	for (uint64_t memory = GB; memory < 5000 * GB; memory += memory / 16) {
		uint32_t size = random_below(2) ? 2 : 100;
		struct external_request request =
			request_of(size, share_bytes, memory);
		struct external_plan plan;

		request.ranks.rank_count = 2 + (unsigned)random_below(127);
		request.ranks.part_records = request.record_count;
		if (external_plan_make(&plan, &request) < 0) {
			refused++;
			assert_true(memory < 200 * GB);
			continue;
		}
		planned++;
		assert_true(plan.piece_count <= EXTERNAL_RANK_PIECES_MAX / 2);
		/* Of our runs, and of our part of all runs. */
		assert_true(plan.index_blocks <= UINT32_MAX / 4);
		assert_true(request.ranks.part_records / plan.block_records <=
			    UINT32_MAX / 4);
	}
	assert_true(refused > 0 && planned > 0);
}

/* One rank keeps what another one reads: the index of that and the one that it
 * is appended to, while each rank's part of all runs is small. */
static void external_plan__has_room_for_kept_indexes(void **state)
{
	unsigned made = 0;

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		uint64_t memory = 100 * MIB + random_below(GB);
		struct external_request request =
			request_of(20 + random_below(200),
				   memory * (2 + random_below(100)), memory);
		struct external_plan plan;
		uint64_t blocks;

		request.ranks.rank_count = 2 + (unsigned)random_below(100);
		request.ranks.keeper_count = 1;
		request.ranks.giver_count = 1;
		request.ranks.kept_records = request.ranks.kept_most =
			request.record_count;
		request.ranks.part_records =
			request.record_count / (request.ranks.rank_count - 1);
		if (external_plan_make(&plan, &request) < 0)
			continue;
		made++;
		blocks = request.record_count / plan.block_records;
		assert_true(plan.index_bytes >=
			    (2 * blocks + blocks / 4) *
				    run_index_block_bytes(&request.shape));
	}
	assert_true(made > 0);
}

/* The last merge has room for runs of each rank, also where one has one. */
static void external_plan__ranks_merge_runs_of_each(void **state)
{
	unsigned made = 0;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		uint64_t memory = 4 * MIB + random_below(60 * MIB);
		struct external_request request =
			request_of(1 + random_below(200),
				   1 + random_below(3 * memory), memory);
		struct external_plan plan;

		request.ranks.rank_count = 2 + (unsigned)random_below(7);
		request.ranks.part_records = request.record_count;
		if (external_plan_make(&plan, &request) < 0)
			continue;
		made++;
		assert_true(external_plan_runs_max(&plan, &request,
						   plan.free_batches) >= 4);
	}
	assert_true(made > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(external_plan__ranks_merge_runs_of_each),
		cmocka_unit_test(external_plan__sorts_keys_of_large_records),
		cmocka_unit_test(external_plan__counts_small_records),
		cmocka_unit_test(external_plan__ranks_of_32_tib),
		cmocka_unit_test(external_plan__has_room_for_kept_indexes),
		cmocka_unit_test(external_plan__parts_fit),
		cmocka_unit_test(external_plan__twice_the_memory_moves_no_more),
		cmocka_unit_test(external_plan__little_is_missing),
		cmocka_unit_test(external_plan__no_step),
		cmocka_unit_test(external_plan__refuses_too_little),
		cmocka_unit_test(external_request_memory_min__suffices),
		cmocka_unit_test(external_request_memory_min__none),
		cmocka_unit_test(external_request_plan__any_key),
		cmocka_unit_test(external_request_plan__all_that_are_given),
		cmocka_unit_test(external_request_plan__no_merges_for_threads),
		cmocka_unit_test(external_plan__an_arm_takes_turns),
		cmocka_unit_test(
			external_request_plan__merges_twice_for_an_arm),
		cmocka_unit_test(
			external_plan_piece_records__halves_a_lone_one),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
