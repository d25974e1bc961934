/*
 * test_codec_choice.c - when compression pays, by the model, and what a sort
 * chooses
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/plan/codec_choice.h"
#include "random.h"

#define BLOCK_BYTES (64 * KIB)
#define GB 1000000000ull
#define SECOND_NS 1000000000ull

/* Ascii records on two CPUs: the sort takes 0.7 s of CPU a GB in a pass, and
 * lz4 1.67 s a GB; the disk takes 1.3 s for the 2 GB that it moves. */
static const struct codec_sample ascii = {
	.plain_bytes = 10 * BLOCK_BYTES,
	.stored_bytes = 4 * BLOCK_BYTES,
	.cpu_ns = 10 * BLOCK_BYTES * 5 / 3,
};
static const struct codec_pace slow_disk = {
	.spilled_bytes = GB,
	.elapsed_ns = 13 * SECOND_NS / 10,
	.cpu_ns = 7 * SECOND_NS / 10,
	.cpu_count = 2,
};

/* Of a stream, all of which is spilled. */
static const struct codec_work alone = { 0 };
static struct codec_verdict verdict;

static bool pays(const struct codec_sample *sample,
		 const struct codec_pace *pace)
{
	memset(&verdict, 0, sizeof(verdict));
	return codec_pays(sample, pace, &alone, &verdict);
}

static void codec_pays__on_a_slow_disk(void **state)
{
	struct codec_pace pace = slow_disk;

	(void)state;
	assert_true(pays(&ascii, &pace));
	pace.elapsed_ns *= 10;
	assert_true(pays(&ascii, &pace));
}

static void codec_pays__not_on_a_fast_disk(void **state)
{
	struct codec_pace pace = slow_disk;

	(void)state;
	pace.elapsed_ns /= 2;
	assert_false(pays(&ascii, &pace));
	/* With more CPUs it does. */
	pace.cpu_count = 8;
	assert_true(pays(&ascii, &pace));
}

/* The threads are what is waited for already. */
static void codec_pays__not_for_busy_threads(void **state)
{
	struct codec_pace pace = slow_disk;

	(void)state;
	pace.cpu_ns = pace.elapsed_ns * pace.cpu_count;
	assert_false(pays(&ascii, &pace));
	pace.cpu_count = 64;
	pace.cpu_ns = pace.elapsed_ns * pace.cpu_count;
	assert_false(pays(&ascii, &pace));
}

static void codec_pays__not_for_noise(void **state)
{
	struct codec_sample noise = ascii;
	struct codec_pace pace = slow_disk;

	(void)state;
	pace.elapsed_ns *= 100;
	noise.cpu_ns /= 10;
	noise.stored_bytes = noise.plain_bytes;
	assert_false(pays(&noise, &pace));
	/* A twentieth of the time is not sure. */
	noise.stored_bytes = noise.plain_bytes / 100 * 92;
	assert_false(pays(&noise, &pace));
	noise.stored_bytes = noise.plain_bytes / 100 * 80;
	assert_true(pays(&noise, &pace));
}

static void codec_pays__not_if_nothing_is_known(void **state)
{
	const struct codec_sample no_sample = { 0 };
	const struct codec_pace no_pace = { 0 };

	(void)state;
	assert_false(pays(&no_sample, &slow_disk));
	assert_false(pays(&ascii, &no_pace));
}

/* Two CPUs compress 1 GB in 0.83 s, and one decompresses it in 0.42 s. */
static void codec_sending__compresses_first(void **state)
{
	double second_ns = (double)SECOND_NS;

	(void)state;
	assert_in_range(codec_sending_ns(&ascii, 2, GB, 10 * second_ns),
			10.83 * second_ns, 10.84 * second_ns);
	assert_in_range(codec_sending_ns(&ascii, 2, GB, 0), 1.24 * second_ns,
			1.26 * second_ns);
	assert_in_range(codec_sending_ns(&ascii, 8, GB, 0), 0.62 * second_ns,
			0.63 * second_ns);
}

static void codec_gains__by_a_twentieth(void **state)
{
	(void)state;
	assert_true(codec_gains(100, 94));
	assert_false(codec_gains(100, 96));
	assert_false(codec_gains(0, 0));
}

/* --- many ranks ----------------------------------------------------------- */

/* A fast disk, on which lz4 does not pay, and 4 ranks that have 100 GB each. */
static const struct codec_pace fast_disk = {
	.spilled_bytes = GB,
	.elapsed_ns = 7 * SECOND_NS / 10,
	.cpu_ns = 7 * SECOND_NS / 10,
	.cpu_count = 2,
};
static const struct codec_work of_ranks = {
	.whole_bytes = 100 * GB,
	.spilled_bytes = 100 * GB,
	.rank_count = 4,
};

static bool pays_over(uint64_t link, const struct codec_work *work,
		      const struct codec_sample *sample)
{
	struct codec_work linked = *work;

	linked.link = link;
	memset(&verdict, 0, sizeof(verdict));
	return codec_pays(sample, &fast_disk, &linked, &verdict);
}

static void codec_pays__on_a_slow_link(void **state)
{
	(void)state;
	/* 300 Mbit/s: three quarters of 100 GB take 2000 s. */
	assert_true(pays_over(37500000, &of_ranks, &ascii));
	assert_int_equal(verdict.none.passes[EXTERNAL_RUNS].limit,
			 EXTERNAL_DISK);
	assert_int_equal(verdict.none.passes[EXTERNAL_OUTPUT].limit,
			 EXTERNAL_LINK);
	assert_int_equal(verdict.none.passes[EXTERNAL_OUTPUT].ns,
			 2000 * SECOND_NS);
	assert_in_range(verdict.lz4.passes[EXTERNAL_OUTPUT].ns, 799 * SECOND_NS,
			801 * SECOND_NS);
	/* It is slower at that, for the threads. */
	assert_int_equal(verdict.lz4.passes[EXTERNAL_RUNS].limit, EXTERNAL_CPU);
	assert_true(verdict.lz4.passes[EXTERNAL_RUNS].ns >
		    verdict.none.passes[EXTERNAL_RUNS].ns);
	assert_int_equal(verdict.sample.plain_bytes, ascii.plain_bytes);
}

static void codec_pays__not_on_a_fast_link(void **state)
{
	(void)state;
	/* 25 Gbit/s; and a link of which nothing is known. */
	assert_false(pays_over(3125000000, &of_ranks, &ascii));
	assert_int_equal(verdict.none.passes[EXTERNAL_OUTPUT].limit,
			 EXTERNAL_DISK);
	assert_false(pays_over(0, &of_ranks, &ascii));
}

/* From some rate on it does not pay, and nowhere above it: what the last pass
 * saves on the link is then what the first one loses by its threads. */
static void codec_pays__up_to_some_link(void **state)
{
	uint64_t last = 0, first = 0;

	(void)state;
	for (uint64_t link = GB / 100; link < 10 * GB; link += link / 100) {
		if (pays_over(link, &of_ranks, &ascii))
			last = link;
		else if (first == 0)
			first = link;
	}
	assert_true(last > 0 && first > last);
	/* Without lz4 the passes take 70 s each, and the last one as long as
	 * the link; with it 118 and 56 s.  By a twentieth less it pays where
	 * the link takes 113 s for 75 GB. */
	assert_in_range(last, GB * 65 / 100, GB * 67 / 100);
}

/* What does not become smaller is sent as it is; so is what stays in memory. */
static void codec_pays__not_for_what_stays(void **state)
{
	struct codec_sample noise = ascii;
	struct codec_work small = of_ranks;

	(void)state;
	noise.stored_bytes = noise.plain_bytes;
	assert_false(pays_over(37500000, &of_ranks, &noise));
	small.spilled_bytes = small.whole_bytes / 20;
	assert_false(pays_over(37500000, &small, &ascii));
	small.spilled_bytes = small.whole_bytes / 2;
	assert_true(pays_over(37500000, &small, &ascii));
}

/* One process has no link. */
static void codec_pays__not_without_ranks(void **state)
{
	struct codec_work lone = of_ranks;

	(void)state;
	lone.rank_count = 1;
	assert_false(pays_over(1, &lone, &ascii));
}

/* Runs that are merged before are compressed once more. */
static void codec_pays__counts_merges(void **state)
{
	struct codec_work merges = of_ranks;

	(void)state;
	merges.merged_bytes = merges.spilled_bytes;
	pays_over(0, &merges, &ascii);
	assert_int_equal(verdict.none.passes[EXTERNAL_MERGES].ns,
			 verdict.none.passes[EXTERNAL_RUNS].ns);
	assert_true(verdict.lz4.passes[EXTERNAL_MERGES].ns >
		    verdict.lz4.passes[EXTERNAL_RUNS].ns);
}

/* --- the choice of a sort ------------------------------------------------- */

static void choice__keeps_what_the_user_wants(void **state)
{
	const struct codec wanted[] = { { CODEC_NONE, 0 },
					{ CODEC_LZ4, 0 },
					{ CODEC_ZSTD, 5 } };
	struct codec_choice choice;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		codec_choice_init(&choice, &wanted[i], 2, &alone);
		codec_choice_begin_run(&choice, GB, 0, 0);
		assert_false(codec_choice_wants(&choice, 0, 1));
		codec_choice_begin_run(&choice, GB, 10 * SECOND_NS, 0);
		assert_int_equal(choice.codec.kind, wanted[i].kind);
		assert_int_equal(choice.codec.level, wanted[i].level);
	}
}

/* At second 5 of some clock, when the process has had 1 s of CPU. */
static void open_choice(struct codec_choice *choice)
{
	const struct codec wanted = { CODEC_AUTO, 0 };

	codec_choice_init(choice, &wanted, 2, &alone);
	codec_choice_begin_run(choice, GB, 5 * SECOND_NS, SECOND_NS);
	assert_int_equal(choice->codec.kind, CODEC_NONE);
	assert_true(choice->is_open);
	assert_int_equal(choice->verdict.sample.plain_bytes, 0);
}

static void choice__waits_for_a_pace(void **state)
{
	struct codec_choice choice;

	(void)state;
	open_choice(&choice);
	codec_choice_add(&choice.sample, &ascii);
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS + SECOND_NS / 3,
			       SECOND_NS);
	assert_true(choice.is_open);
	codec_choice_begin_run(&choice, GB, 9 * SECOND_NS, 2 * SECOND_NS);
	assert_false(choice.is_open);
	assert_int_equal(choice.codec.kind, CODEC_LZ4);
	assert_true(choice.verdict.sample.plain_bytes > 0);
	assert_true(choice.verdict.lz4.passes[EXTERNAL_RUNS].ns <
		    choice.verdict.none.passes[EXTERNAL_RUNS].ns);
	/* It is remembered. */
	codec_choice_begin_run(&choice, GB, 10 * SECOND_NS, 1000 * SECOND_NS);
	assert_int_equal(choice.codec.kind, CODEC_LZ4);
}

/* The link is so slow that the disk's pace is not waited for. */
static void choice__may_be_sure_at_once(void **state)
{
	const struct codec wanted = { CODEC_AUTO, 0 };
	struct codec_work work = of_ranks;
	struct codec_choice choice;

	(void)state;
	work.link = GB / 100;
	codec_choice_init(&choice, &wanted, 2, &work);
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS, SECOND_NS);
	codec_choice_add(&choice.sample, &ascii);
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS + SECOND_NS / 100,
			       SECOND_NS + SECOND_NS / 100);
	assert_false(choice.is_open);
	assert_int_equal(choice.codec.kind, CODEC_LZ4);
	/* Threads take time from the first moment on: of a faster link it is
	 * not sure. */
	work.link = GB;
	codec_choice_init(&choice, &wanted, 2, &work);
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS, SECOND_NS);
	codec_choice_add(&choice.sample, &ascii);
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS + SECOND_NS / 100,
			       SECOND_NS + SECOND_NS / 100);
	assert_true(choice.is_open);
	assert_int_equal(choice.verdict.sample.plain_bytes, 0);
}

/* CPU time counts from the first run on, as bytes and time do. */
static void choice__counts_from_the_first_run(void **state)
{
	const struct codec wanted = { CODEC_AUTO, 0 };
	struct codec_choice choice;

	(void)state;
	codec_choice_init(&choice, &wanted, 2, &alone);
	codec_choice_begin_run(&choice, GB, 50 * SECOND_NS, 100 * SECOND_NS);
	codec_choice_add(&choice.sample, &ascii);
	codec_choice_begin_run(&choice, GB, 53 * SECOND_NS, 101 * SECOND_NS);
	assert_int_equal(choice.codec.kind, CODEC_LZ4);
	codec_choice_init(&choice, &wanted, 2, &alone);
	codec_choice_begin_run(&choice, 3 * GB, 50 * SECOND_NS,
			       100 * SECOND_NS);
	codec_choice_add(&choice.sample, &ascii);
	codec_choice_begin_run(&choice, GB, 53 * SECOND_NS, 106 * SECOND_NS);
	assert_false(choice.is_open);
	assert_int_equal(choice.codec.kind, CODEC_NONE);
}

static void choice__ends_for_noise(void **state)
{
	struct codec_sample noise = ascii;
	struct codec_choice choice;

	(void)state;
	noise.stored_bytes = noise.plain_bytes;
	open_choice(&choice);
	codec_choice_add(&choice.sample, &noise);
	codec_choice_begin_run(&choice, GB, 60 * SECOND_NS, SECOND_NS);
	assert_false(choice.is_open);
	assert_int_equal(choice.codec.kind, CODEC_NONE);
}

/* A few blocks of the first run, from all of it; and of no other run. */
static void choice__samples_a_few_blocks(void **state)
{
	struct codec_choice choice;

	(void)state;
	for (unsigned chunks = 1; chunks < 1000; chunks++) {
		unsigned wanted = 0, last = 0;

		open_choice(&choice);
		for (unsigned i = 0; i < chunks; i++)
			if (codec_choice_wants(&choice, i, chunks)) {
				wanted++;
				last = i;
			}
		assert_in_range(wanted, 1, 8);
		assert_true(last >= chunks / 2);
	}
	codec_choice_begin_run(&choice, GB, 5 * SECOND_NS, SECOND_NS);
	assert_true(choice.is_open);
	assert_false(codec_choice_wants(&choice, 0, 1));
}

static void choice__tests_a_block(void **state)
{
	const struct codec codec = { CODEC_AUTO, 0 };
	uint8_t *memory = aligned_alloc(
		PAGE_BYTES, codec_encoder_bytes(&codec, BLOCK_BYTES));
	uint8_t *block = calloc(BLOCK_BYTES, 1);
	struct codec_encoder encoder;
	struct codec_sample sample;

	(void)state;
	assert_non_null(memory);
	assert_non_null(block);
	codec_encoder_init(&encoder, &codec, BLOCK_BYTES, memory);
	codec_choice_test(&encoder, block, BLOCK_BYTES, &sample);
	assert_int_equal(sample.plain_bytes, BLOCK_BYTES);
	assert_in_range(sample.stored_bytes, 1, BLOCK_BYTES / 100);
	assert_true(sample.cpu_ns > 0);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		block[i] = (uint8_t)random_next();
	codec_choice_test(&encoder, block, BLOCK_BYTES, &sample);
	assert_int_equal(sample.stored_bytes, BLOCK_BYTES);
	free(memory);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codec_pays__on_a_slow_disk),
		cmocka_unit_test(codec_pays__not_on_a_fast_disk),
		cmocka_unit_test(codec_pays__not_for_busy_threads),
		cmocka_unit_test(codec_pays__not_for_noise),
		cmocka_unit_test(codec_pays__not_if_nothing_is_known),
		cmocka_unit_test(codec_sending__compresses_first),
		cmocka_unit_test(codec_gains__by_a_twentieth),
		cmocka_unit_test(codec_pays__on_a_slow_link),
		cmocka_unit_test(codec_pays__not_on_a_fast_link),
		cmocka_unit_test(codec_pays__up_to_some_link),
		cmocka_unit_test(codec_pays__not_for_what_stays),
		cmocka_unit_test(codec_pays__not_without_ranks),
		cmocka_unit_test(codec_pays__counts_merges),
		cmocka_unit_test(choice__keeps_what_the_user_wants),
		cmocka_unit_test(choice__waits_for_a_pace),
		cmocka_unit_test(choice__may_be_sure_at_once),
		cmocka_unit_test(choice__counts_from_the_first_run),
		cmocka_unit_test(choice__ends_for_noise),
		cmocka_unit_test(choice__samples_a_few_blocks),
		cmocka_unit_test(choice__tests_a_block),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
