/*
 * test_plan.c - sizes of runs from nothing to the largest
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sort/buckets.h"
#include "sort/plan.h"
#include "kernels/splitters.h"
#include "system/thread_pool.h"

/* Of records as in the benchmark, mapped, one slot a record. */
static struct plan_request request_for(uint64_t record_count, unsigned workers)
{
	return (struct plan_request){
		.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
		.record_count = record_count,
		.slot_count = record_count,
		.worker_count = workers,
		.staging_slots = workers + 1,
		.chunk_bytes_max = MIB,
	};
}

/* What every plan keeps. */
static void check_plan(const struct plan *plan,
		       const struct plan_request *request)
{
	uint64_t records = request->record_count;
	uint32_t sampled_buckets = 2 * plan->splitters_wanted + 1;

	/* The fewest bits, at least 1. */
	assert_true(request->slot_count <= (uint64_t)1 << plan->index_bits);
	assert_true(plan->index_bits == 1 ||
		    request->slot_count > (uint64_t)1
						  << (plan->index_bits - 1));
	assert_true(plan->bucket_count >= 1);
	assert_in_range(plan->splitters_wanted, 1, SPLITTERS_MAX);
	assert_true(plan->list_count >= plan->bucket_count);
	assert_true(plan->list_count >= sampled_buckets);
	assert_true(plan->sample_count <= records);
	assert_true(records == 0 || plan->sample_count >= 1);
	/* Not less than the pool of either kind can need; all its entries are
	 * found by 32 bits. */
	assert_true(plan->block_count >=
		    buckets_blocks_needed(records, plan->bucket_count,
					  request->worker_count));
	assert_true(plan->block_count >=
		    buckets_blocks_needed(records, sampled_buckets,
					  request->worker_count));
	assert_true((uint64_t)plan->block_count * BUCKETS_BLOCK_ENTRIES <=
		    UINT32_MAX);
	assert_true(plan->chunk_bytes > 0);
	assert_int_equal(plan->chunk_bytes % PAGE_BYTES, 0);
	assert_true(plan->chunk_bytes <= HUGE_PAGE_BYTES);
	/* The chunk's records, two of them cut, what else lies in the largest
	 * small buckets at its ends, and a line copied whole. */
	assert_true(plan->chunk_entries >=
		    plan->chunk_bytes / request->shape.size + 2 +
			    2 * (PLAN_OVERSIZED_ENTRIES - 1) + LINE_ENTRIES -
			    1);
}

static uint64_t sum_of_parts(const struct plan *plan,
			     const struct plan_request *request)
{
	uint64_t lists = plan->list_count *
			 (sizeof(struct bucket_list) + sizeof(uint32_t));
	uint64_t starts = 2 * plan->list_count * sizeof(uint32_t);
	uint64_t pool =
		(uint64_t)plan->block_count *
			(BUCKETS_BLOCK_ENTRIES * sizeof(uint64_t) +
			 2 * sizeof(uint32_t)) +
		plan->block_count / BUCKETS_GRANT_BLOCKS * sizeof(uint32_t);
	uint64_t big = request->record_count * sizeof(uint64_t);
	uint64_t sample = (uint64_t)plan->sample_count *
			  (sizeof(uint8_t *) + sizeof(uint64_t));
	uint64_t chunks = plan->chunk_entries * sizeof(uint64_t);

	return request->input_memory_bytes + request->worker_count * lists +
	       starts + pool + big + sample + request->worker_count * chunks +
	       request->staging_slots * plan->chunk_bytes;
}

/* Ascending. */
static const uint64_t record_counts[] = { 0,
					  1,
					  2,
					  3,
					  119,
					  120,
					  240,
					  65536,
					  65537,
					  1000000,
					  10000000,
					  3u << 29,
					  1u << 31,
					  PLAN_RECORDS_MAX - 1,
					  PLAN_RECORDS_MAX };

static void plan_make__every_size_keeps_the_promises(void **state)
{
	static const unsigned workers[] = { 1, 2, 7, THREAD_POOL_WORKERS_MAX };
	static const uint32_t sizes[] = { 1,	7,	 100,
					  4096, 1000000, RECORD_SIZE_MAX };

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(record_counts); r++)
		for (size_t m = 0; m < ARRAY_LEN(workers); m++)
			for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
				struct plan_request request = request_for(
					record_counts[r], workers[m]);
				struct plan plan;

				request.shape = (struct record_shape)
					RECORD_SHAPE_OF_SLICE(sizes[s], 0, 1);
				assert_int_equal(plan_make(&plan, &request), 0);
				check_plan(&plan, &request);
				assert_int_equal(plan.memory_bytes,
						 sum_of_parts(&plan, &request));
			}
}

static void plan_make__input_memory_is_added(void **state)
{
	struct plan_request request = request_for(1000, 2);
	struct plan mapped, read;

	(void)state;
	assert_int_equal(plan_make(&mapped, &request), 0);
	request.input_memory_bytes = (uint64_t)1 << 40;
	assert_int_equal(plan_make(&read, &request), 0);
	assert_int_equal(read.memory_bytes - mapped.memory_bytes,
			 (uint64_t)1 << 40);
}

static void plan_make__more_records_never_need_less(void **state)
{
	struct plan before = { 0 };

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(record_counts); r++) {
		struct plan_request request = request_for(record_counts[r], 2);
		struct plan plan;

		assert_int_equal(plan_make(&plan, &request), 0);
		assert_true(plan.index_bits >= before.index_bits);
		assert_true(plan.bucket_count >= before.bucket_count);
		assert_true(plan.sample_count >= before.sample_count);
		assert_true(plan.chunk_bytes >= before.chunk_bytes);
		assert_true(plan.memory_bytes > before.memory_bytes);
		before = plan;
	}
}

/* Holes between the files of an input count as slots. */
static void plan_make__index_bits_of_slots(void **state)
{
	static const struct {
		uint64_t slots;
		unsigned bits;
	} cases[] = { { 0, 1 },		 { 1, 1 },
		      { 2, 1 },		 { 3, 2 },
		      { 4, 2 },		 { 5, 3 },
		      { 1u << 20, 20 },	 { (1u << 20) + 1, 21 },
		      { 1u << 31, 31 },	 { (1u << 31) + 1, 32 },
		      { UINT32_MAX, 32 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct plan_request request = request_for(1, 1);
		struct plan plan;

		request.slot_count = cases[i].slots;
		assert_int_equal(plan_make(&plan, &request), 0);
		assert_int_equal(plan.index_bits, cases[i].bits);
	}
}

static void plan_make__too_many_are_refused(void **state)
{
	struct plan_request request = request_for(PLAN_RECORDS_MAX, 2);
	struct plan plan;

	(void)state;
	assert_int_equal(plan_make(&plan, &request), 0);
	request.record_count = PLAN_RECORDS_MAX + 1;
	assert_int_equal(plan_make(&plan, &request), -EOVERFLOW);
	request = request_for(UINT64_MAX, 2);
	assert_int_equal(plan_make(&plan, &request), -EOVERFLOW);
	request = request_for(1000, 2);
	request.slot_count = UINT32_MAX;
	assert_int_equal(plan_make(&plan, &request), 0);
	request.slot_count = (uint64_t)UINT32_MAX + 1;
	assert_int_equal(plan_make(&plan, &request), -EOVERFLOW);
}

/* Half of the input at most, however many workers share it. */
static void check_memory(uint64_t record_count, unsigned workers_max)
{
	uint64_t size_bytes = record_count * RECORD_SIZE_DEFAULT;

	for (unsigned workers = 1; workers <= workers_max; workers++) {
		struct plan_request request =
			request_for(record_count, workers);
		struct plan plan;

		assert_int_equal(plan_make(&plan, &request), 0);
		assert_true(plan.memory_bytes <= size_bytes / 2);
		/* A worker that ends last holds up the others by little. */
		assert_true(plan.chunk_bytes * workers * 4 <= size_bytes);
	}
}

/* As few as they are with hundreds of workers, none grows big by chance. */
static void plan_make__buckets_stay_small(void **state)
{
	static const uint64_t counts[] = { 20000, 1000000, 10000000,
					   100000000 };

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(counts); r++)
		for (unsigned m = 1; m <= THREAD_POOL_WORKERS_MAX; m++) {
			struct plan_request request = request_for(counts[r], m);
			struct plan plan;

			assert_int_equal(plan_make(&plan, &request), 0);
			assert_true(counts[r] / plan.bucket_count <=
				    PLAN_OVERSIZED_ENTRIES * 2 / 3);
		}
}

static void plan_make__benchmark_memory(void **state)
{
	(void)state;
	check_memory(1000000, 16);
	check_memory(10000000, 48);
	check_memory(100000000, 256);
}

static void plan_workers__one_to_allowed(void **state)
{
	(void)state;
	assert_int_equal(plan_workers(0, false, 8), 1);
	assert_int_equal(plan_workers(1, false, 8), 1);
	assert_int_equal(plan_workers(UINT64_MAX, false, 1), 1);
	assert_int_equal(plan_workers(UINT64_MAX, false, 8), 8);
	assert_int_equal(
		plan_workers(UINT64_MAX, false, THREAD_POOL_WORKERS_MAX),
		THREAD_POOL_WORKERS_MAX);
	assert_int_equal(plan_workers(100000000, false, 2), 2);
	/* Never fewer for more. */
	for (uint64_t size = 0, before = 1; size < 64 * MIB; size += 100000) {
		unsigned workers = plan_workers(size, false, 8);

		assert_in_range(workers, before, 8);
		assert_in_range(plan_workers(size, true, 8), 1, workers);
		before = workers;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan_make__every_size_keeps_the_promises),
		cmocka_unit_test(plan_make__input_memory_is_added),
		cmocka_unit_test(plan_make__more_records_never_need_less),
		cmocka_unit_test(plan_make__index_bits_of_slots),
		cmocka_unit_test(plan_make__too_many_are_refused),
		cmocka_unit_test(plan_make__buckets_stay_small),
		cmocka_unit_test(plan_make__benchmark_memory),
		cmocka_unit_test(plan_workers__one_to_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
