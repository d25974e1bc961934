/*
 * test_roles_choice.c - predicted times of ranks with roles against what their
 * links, disks and file system must move; the fastest roles against all others
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "cluster/external/roles_choice.h"

#define GB 1000000000ull
#define WHOLE (120 * GB)
#define RANKS 12

#define READ (1u << CLUSTER_ROLE_READ)
#define SORT (1u << CLUSTER_ROLE_SORT)
#define KEEP (1u << CLUSTER_ROLE_KEEP)

static const struct sorter_config sort = {
	.shape = RECORD_SHAPE_OF_SLICE(100, 0, 10),
	.memory_bytes = GB,
	.threads = 2,
};
static struct external_config config = { .sort = &sort };
static struct cluster_roles roles;
static struct roles_choice choice = {
	.roles = &roles,
	.whole_records = WHOLE / 100,
	.rank_count = RANKS,
};
static struct external_explanation explanation;

/* What --suppose plans before roles are looked at. */
static void suppose(const struct external_rates *rates)
{
	struct failure failure;

	config.rates = *rates;
	config.ranks = (struct external_ranks){
		.rank_count = RANKS,
		.taker_count = RANKS - 1,
		.part_records = WHOLE / 100 / RANKS,
		.planned_records = WHOLE / 100 / RANKS,
		.own_records = WHOLE / 100 / RANKS,
	};
	assert_int_equal(external_sort_suppose(&config, WHOLE / 100 / RANKS,
					       &explanation, &failure),
			 0);
}

static int predict(const char *list, struct failure *failure)
{
	roles = (struct cluster_roles){ 0 };
	assert_int_equal(cluster_roles_add_list(&roles, list), 0);
	return roles_choice_make(&choice, &config, &explanation, failure);
}

static uint64_t predict_ns(const char *list, const struct external_rates *rates)
{
	struct failure failure;

	suppose(rates);
	assert_int_equal(predict(list, &failure), 0);
	return explanation.forecast.ns;
}

static uint64_t choose_ns(const struct external_rates *rates, unsigned readers,
			  unsigned keepers)
{
	struct failure failure;

	suppose(rates);
	roles = (struct cluster_roles){ .is_auto = true };
	choice.readers_max = readers;
	choice.keepers_max = keepers;
	assert_int_equal(
		roles_choice_make(&choice, &config, &explanation, &failure), 0);
	return explanation.forecast.ns;
}

static void check_pass(enum external_pass pass, enum external_limit limit,
		       uint64_t ns)
{
	assert_int_equal(explanation.forecast.passes[pass].limit, limit);
	assert_in_range(explanation.forecast.passes[pass].ns, ns - ns / 1000,
			ns + ns / 1000);
}

/* A link of 10 MB/s: nothing else matters. */
static const struct external_rates slow_link = { GB, GB, GB, GB / 100, 0, 0 };

/* Readers send 30 GB each, keepers get as much and send it on. */
static void roles_choice_make__given_links(void **state)
{
	(void)state;
	predict_ns("read:0-3,sort:4-7,keep:8-11", &slow_link);
	check_pass(EXTERNAL_RUNS, EXTERNAL_LINK, 3000 * GB);
	check_pass(EXTERNAL_OUTPUT, EXTERNAL_LINK, 3000 * GB);
	assert_int_equal(choice.groups[READ].rank_count, 4);
	assert_int_equal(choice.groups[SORT].rank_count, 4);
	assert_int_equal(choice.groups[KEEP].rank_count, 4);
	assert_int_equal(choice.groups[READ].forecast.passes[0].read_bytes,
			 30 * GB);
	assert_int_equal(choice.groups[READ].forecast.passes[0].limit,
			 EXTERNAL_LINK);
	assert_int_equal(choice.groups[READ].forecast.passes[0].sent_bytes,
			 30 * GB);
	assert_int_equal(choice.groups[SORT].forecast.passes[0].ns, 0);
	assert_int_equal(choice.groups[KEEP].forecast.passes[2].read_bytes,
			 30 * GB);
	/* A single keeper, which gets all of it. */
	predict_ns("read:0-3,sort:4-10,keep:11", &slow_link);
	check_pass(EXTERNAL_RUNS, EXTERNAL_LINK, 12000 * GB);
	check_pass(EXTERNAL_OUTPUT, EXTERNAL_LINK, 12000 * GB);
	/* Who keeps what he reads sends it once; what he sorts, he has. */
	predict_ns("read:0-3,sort:4-11,keep:0-3", &slow_link);
	assert_true(explanation.forecast.passes[EXTERNAL_RUNS].limit !=
		    EXTERNAL_LINK);
	check_pass(EXTERNAL_OUTPUT, EXTERNAL_LINK, 3000 * GB);
	predict_ns("read:0-3,sort:0-3,keep:0-3", &slow_link);
	check_pass(EXTERNAL_OUTPUT, EXTERNAL_LINK, 2250 * GB);
}

/* All by name is what ranks without roles are predicted to take. */
static void roles_choice_make__given_all(void **state)
{
	uint64_t ns;

	(void)state;
	suppose(&slow_link);
	ns = explanation.forecast.ns;
	assert_int_equal(predict_ns("read:0-11", &slow_link), ns);
	assert_int_equal(choice.groups[CLUSTER_ROLES_ALL].rank_count, RANKS);
}

/* The file system of all inputs and outputs has 120 GB to move each way,
 * however many read them; the disk what is kept, whoever has read it. */
static void roles_choice_make__given_storage(void **state)
{
	struct external_rates rates = { GB, GB, GB, 1000 * GB, GB / 10, 0 };

	(void)state;
	predict_ns("read:0-3,sort:4-11,keep:8-11", &rates);
	check_pass(EXTERNAL_RUNS, EXTERNAL_DISK, 1200 * GB);
	check_pass(EXTERNAL_OUTPUT, EXTERNAL_DISK, 1200 * GB);
	predict_ns("read:0,sort:1,keep:2", &rates);
	check_pass(EXTERNAL_RUNS, EXTERNAL_DISK, 1200 * GB);
	rates = (struct external_rates){ GB / 100,  GB / 100, GB / 100,
					 1000 * GB, GB,	      0 };
	predict_ns("read:0-3,sort:4-7,keep:8-11", &rates);
	check_pass(EXTERNAL_RUNS, EXTERNAL_DISK, 3000 * GB);
	/* What a rank reads there itself does not keep its disk busy. */
	predict_ns("read:0-3,sort:4-11,keep:0-3", &rates);
	assert_in_range(explanation.forecast.passes[EXTERNAL_RUNS].ns,
			2900 * GB, 3000 * GB);
}

static void roles_choice_make__given_refuses(void **state)
{
	struct failure failure;

	(void)state;
	suppose(&slow_link);
	assert_true(predict("read:0-12", &failure) < 0);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_non_null(strstr(failure.why, "there is no rank 12"));
	choice.whole_records = INT64_MAX / 1000;
	assert_true(predict("keep:0", &failure) < 0);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	choice.whole_records = WHOLE / 100;
}

/* Nothing is won where ranks that are alike do not do all. */
static void roles_choice_make__all_alike(void **state)
{
	(void)state;
	choose_ns(&slow_link, RANKS, RANKS);
	assert_string_equal(choice.list, "read:0-11,sort:0-11,keep:0-11");
}

/* A disk that is slow as soon as it does both is kept from that. */
static void roles_choice_make__seeking_disks(void **state)
{
	const struct external_rates rates = { GB / 10,	GB / 10, GB / 100,
					      100 * GB, 0,	 0 };

	(void)state;
	choose_ns(&rates, RANKS, RANKS);
	assert_int_equal(choice.groups[READ | KEEP].rank_count, 0);
	assert_int_equal(choice.groups[CLUSTER_ROLES_ALL].rank_count, 0);
}

/* No other roles of these numbers are faster. */
static void roles_choice_make__is_the_fastest(void **state)
{
	const struct external_rates rates = {
		GB, GB / 2, GB, GB / 20, GB / 5, 0
	};
	uint64_t best_ns = choose_ns(&rates, 4, 3);
	char best[sizeof(choice.list)], list[sizeof(choice.list)];

	(void)state;
	snprintf(best, sizeof(best), "%s", choice.list);
	assert_int_equal(predict_ns(best, &rates), best_ns);
	for (unsigned r = 0; r < 4; r++)
		for (unsigned k = 9; k < RANKS; k++)
			for (unsigned s = 0; s < RANKS; s++) {
				snprintf(list, sizeof(list),
					 "read:0-%u,sort:%u-11,keep:%u-11", r,
					 s, k);
				if (predict_ns(list, &rates) < best_ns)
					fail_msg("%s beats %s", list, best);
			}
}

/* More nodes with data never make it slower, and here faster: DEPSort's Figure
 * 3. */
static void roles_choice_make__more_data_nodes(void **state)
{
	uint64_t ns, before_ns = UINT64_MAX;

	(void)state;
	for (unsigned n = 1; n <= 4; n *= 2) {
		ns = choose_ns(&slow_link, 4, n);
		assert_true(ns < before_ns);
		before_ns = ns;
	}
	before_ns = UINT64_MAX;
	for (unsigned n = 1; n <= 4; n *= 2) {
		ns = choose_ns(&slow_link, n, 4);
		assert_true(ns < before_ns);
		before_ns = ns;
	}
}

static void roles_choice_make__refuses(void **state)
{
	const struct external_rates unknown = { 0 };
	struct failure failure;

	(void)state;
	suppose(&unknown);
	roles = (struct cluster_roles){ .is_auto = true };
	assert_true(roles_choice_make(&choice, &config, &explanation,
				      &failure) < 0);
	assert_non_null(strstr(failure.why, "--disk-rates and --link-rate"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roles_choice_make__given_links),
		cmocka_unit_test(roles_choice_make__given_all),
		cmocka_unit_test(roles_choice_make__given_storage),
		cmocka_unit_test(roles_choice_make__given_refuses),
		cmocka_unit_test(roles_choice_make__all_alike),
		cmocka_unit_test(roles_choice_make__seeking_disks),
		cmocka_unit_test(roles_choice_make__is_the_fastest),
		cmocka_unit_test(roles_choice_make__more_data_nodes),
		cmocka_unit_test(roles_choice_make__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
