/*
 * test_external_papers.c - what the model says of two published sorts, beside
 * what their papers say
 *
 * Rates are those that the papers publish, not fitted.  The model plans for
 * blinksort, which merges runs, on their machines; both of them distribute by
 * key range and then sort, so that they read back what they have spilled in
 * large pieces.  The comments say what each difference comes from, and the test
 * allows no larger one.  All of it is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/plan/external_model.h"
#include "external/plan/external_plan.h"

#define MB 1000000ull
#define GB 1000000000ull
#define TB 1000000000000ull
#define RECORD_BYTES 100

static struct external_request request;
static struct external_plan plan;

static void plan_for(uint64_t bytes, unsigned ranks, uint64_t memory_bytes,
		     unsigned threads)
{
	uint64_t records = bytes / RECORD_BYTES / ranks;

	request = (struct external_request){
		.shape = RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, 10),
		.record_count = records,
		.memory_bytes = memory_bytes,
		.worker_count = threads,
		.ranks = { .rank_count = ranks, .part_records = records },
	};
	assert_int_equal(external_plan_make(&plan, &request), 0);
}

/* Reading and writing are on different disks: both at once is the sum. */
static double pass_s(enum external_pass pass, uint64_t read, uint64_t write,
		     uint64_t link)
{
	const struct external_rates rates = {
		.read = read,
		.write = write,
		.both = read + write,
		.link = link,
	};
	struct external_forecast forecast;

	external_model_forecast(&forecast, &plan, &request, &rates);
	assert_int_equal(forecast.passes[pass].limit, EXTERNAL_DISK);
	return (double)forecast.passes[pass].ns / 1e9;
}

/* As if what is spilled came back in one piece, as it does in the papers. */
static double distributed_s(enum external_pass pass, uint64_t read,
			    uint64_t write, uint64_t link)
{
	uint64_t read_bytes = plan.read_bytes;
	double seconds;

	plan.read_bytes = plan.spilled_records * RECORD_BYTES;
	seconds = pass_s(pass, read, write, link);
	plan.read_bytes = read_bytes;
	return seconds;
}

static void check(const char *what, double predicted, double published,
		  double least, double most)
{
	double ratio = predicted / published;

	print_message("%-44s predicted %7.2f, published %7.2f: %.2f\n", what,
		      predicted, published, ratio);
	if (ratio < least || ratio > most)
		fail_msg("%s: %.3f is not from %.2f to %.2f", what, ratio,
			 least, most);
}

/*
 * TritonSort (Rasmussen et al., NSDI 2011): 100 TB on 52 nodes, at 0.916 TB a
 * minute, so 6550 s in all.  A node has 24 GB of memory, eight disks for input
 * and output, eight for what is between, and 10 Gbit/s.  Each stage alone
 * brought, in MB/s of a node: in phase 1 the reader 683 and the writer 601, in
 * phase 2 the reader 740 and the writer 717.  In phase 1 a disk got 69.8 MB/s
 * in fact; phase 2 has the rest of the time.
 */
#define TRITON_S (100 / 0.916 * 60)
#define TRITON_PHASE_1_S (100e6 / 52 / (8 * 69.8))

static void papers__tritonsort(void **state)
{
	const uint64_t link = 10 * GB / 8;
	double first, second, distributed;

	(void)state;
	plan_for(100 * TB, 52, 24 * GB, 8);
	first = pass_s(EXTERNAL_RUNS, 683 * MB, 601 * MB, link);
	second = pass_s(EXTERNAL_OUTPUT, 740 * MB, 717 * MB, link);
	distributed = distributed_s(EXTERNAL_OUTPUT, 740 * MB, 717 * MB, link);

	/* The writer is what limits it.  601 MB/s is what it brings alone, 558
	 * what it brought when all stages ran: 0.93. */
	check("TritonSort, phase 1, s", first, TRITON_PHASE_1_S, 0.90, 1.00);
	/* By the stages alone.  What is left is the barrier between the phases,
	 * the begin and the end, of which the paper tells no times and the
	 * model knows none, and slow nodes. */
	check("TritonSort, phase 2, s", distributed,
	      TRITON_S - TRITON_PHASE_1_S, 0.80, 0.90);
	check("TritonSort, both, s", first + distributed, TRITON_S, 0.85, 0.95);
	/* A piece of blinksort's merge has 177 KB of each of 52 * 221 runs: by
	 * what a read costs on an SSD 478 s more, which is about what
	 * TritonSort lost there.  On its disks a read costs a seek of about 10
	 * ms, thirty times that: its authors dropped merging for that reason.
	 */
	check("TritonSort's nodes, merging, phase 2, s", second,
	      TRITON_S - TRITON_PHASE_1_S, 0.95, 1.05);
	assert_in_range(plan.read_bytes, 150 * KIB, 200 * KIB);
}

/*
 * SPsort (Wyllie 1999): 1 TB in 1057 s, of which 872 s were sorting.  400 nodes
 * sort, 2.5 GB each, with 1.5 GB of memory and 150 MB/s to the switch.  GPFS,
 * which has input and output, brought 2.8 GB/s, and the local disks 1.9 GB/s,
 * both over all nodes.  Of 16 buckets 11 were spilled: 1.6875 passes.
 */
#define SP_NODES 400

static void papers__spsort(void **state)
{
	const uint64_t gpfs = 2800 * MB / SP_NODES;
	const uint64_t local = 1900 * MB / SP_NODES;
	const uint64_t link = 150 * MB;
	double first, second, distributed, passes;

	(void)state;
	plan_for(TB, SP_NODES, 1500 * MB, 4);
	first = pass_s(EXTERNAL_RUNS, gpfs, local, link);
	second = pass_s(EXTERNAL_OUTPUT, local, gpfs, link);
	distributed = distributed_s(EXTERNAL_OUTPUT, local, gpfs, link);
	passes =
		1 + (double)plan.spilled_records / (double)request.record_count;

	/* SPsort keeps 780 MB, and blinksort one of two batches of 514: the
	 * other one is for what the merge reads, sends and gets, of which a
	 * distribution needs less. */
	check("SPsort, passes", passes, 1.6875, 1.00, 1.10);
	/* More is spilled, at the pace of the local disks, which limit both
	 * phases.  Both rates were sustained; 2 TB at 2.8 GB/s are 714 s, and
	 * what is left of 872 are nodes that wait for the last ones, as the
	 * paper says.  So the two differences meet. */
	check("SPsort, both phases, s", first + distributed, 872, 0.95, 1.05);
	/* 400 ranks with 5 runs leave 40 KB of each for a piece: reads of less
	 * than what a read costs on an SSD.  It is the price of merging with
	 * little memory and many ranks. */
	check("SPsort's nodes, merging, both, s", first + second, 872, 1.20,
	      1.40);
	assert_in_range(plan.read_bytes, 30 * KIB, 50 * KIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(papers__tritonsort),
		cmocka_unit_test(papers__spsort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
