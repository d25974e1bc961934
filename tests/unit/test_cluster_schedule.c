/*
 * test_cluster_schedule.c - what ranks do of what users want
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "cluster/agreement/cluster_schedule.h"

#define KB ((uint64_t)1024)

static struct cluster_schedule wish, choice;
static struct cluster_traffic traffic;
static struct failure failure;

static void want(enum exchange_schedule kind, unsigned rows, unsigned columns)
{
	wish = (struct cluster_schedule){ kind, rows, columns };
}

/* Between machines and in memory, messages of message_bytes in the mean. */
static void send_between(unsigned node_count, uint64_t message_bytes)
{
	traffic = (struct cluster_traffic){
		.node_count = node_count,
		.byte_count = message_bytes * node_count * node_count,
		.thread_count = 1,
	};
}

static void expect_kind(enum exchange_schedule kind)
{
	memset(&choice, 0xee, sizeof(choice));
	assert_int_equal(
		cluster_schedule_choose(&choice, &wish, &traffic, &failure), 0);
	assert_int_equal(choice.kind, kind);
}

static void expect_grid(unsigned rows, unsigned columns)
{
	expect_kind(EXCHANGE_GRID);
	assert_int_equal(choice.rows, rows);
	assert_int_equal(choice.columns, columns);
}

static void expect_refused(const char *what, const char *why)
{
	memset(&failure, 0, sizeof(failure));
	assert_int_equal(
		cluster_schedule_choose(&choice, &wish, &traffic, &failure),
		-EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_string_equal(failure.what, what);
	assert_string_equal(failure.why, why);
}

/* Wishes that differ have different numbers, up to the largest grid. */
static void cluster_schedule__numbers(void **state)
{
	static const struct cluster_schedule wishes[] = {
		{ EXCHANGE_ROUNDS, 0, 0 },
		{ EXCHANGE_ALL_AT_ONCE, 0, 0 },
		{ EXCHANGE_AUTO, 0, 0 },
		{ EXCHANGE_GRID, 0, 0 },
		{ EXCHANGE_GRID, 1, 2 },
		{ EXCHANGE_GRID, 2, 1 },
		{ EXCHANGE_GRID, 16, 1 },
		{ EXCHANGE_GRID, 1, 16 },
		{ EXCHANGE_GRID, 1, RANK_NODES_MAX },
		{ EXCHANGE_GRID, RANK_NODES_MAX, 1 },
		{ EXCHANGE_GRID, RANK_NODES_MAX, RANK_NODES_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(
				cluster_schedule_number(&wishes[i]),
				cluster_schedule_number(&wishes[k]));
}

static void cluster_schedule__first(void **state)
{
	static const struct {
		enum exchange_schedule wish, between, here;
	} cases[] = {
		{ EXCHANGE_ROUNDS, EXCHANGE_ROUNDS, EXCHANGE_ROUNDS },
		{ EXCHANGE_ALL_AT_ONCE, EXCHANGE_ALL_AT_ONCE,
		  EXCHANGE_ALL_AT_ONCE },
		{ EXCHANGE_AUTO, EXCHANGE_ROUNDS, EXCHANGE_ALL_AT_ONCE },
		{ EXCHANGE_GRID, EXCHANGE_ROUNDS, EXCHANGE_ALL_AT_ONCE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		want(cases[i].wish, 0, 0);
		assert_int_equal(cluster_schedule_first(&wish, false),
				 cases[i].between);
		assert_int_equal(cluster_schedule_first(&wish, true),
				 cases[i].here);
	}
}

/* By the mean message, and the number of ranks. */
static void cluster_schedule__auto(void **state)
{
	(void)state;
	want(EXCHANGE_AUTO, 0, 0);
	send_between(32, 8 * KB - 1);
	expect_grid(6, 6);
	send_between(32, 8 * KB);
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	send_between(31, 1);
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	send_between(32, 128 * KB + 1);
	expect_kind(EXCHANGE_ROUNDS);
	traffic.thread_count = 2;
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	send_between(32, 4 * KB);
	expect_grid(6, 6);
	traffic.thread_count = 4;
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	send_between(RANK_NODES_MAX, 1);
	expect_grid(64, 64);

	send_between(32, 1);
	traffic.on_one_machine = true;
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	traffic.is_external = true;
	expect_kind(EXCHANGE_ALL_AT_ONCE);
	traffic.on_one_machine = false;
	expect_kind(EXCHANGE_ROUNDS);
}

/* What is wanted is done, whatever the messages are. */
static void cluster_schedule__wanted(void **state)
{
	(void)state;
	for (unsigned here = 0; here < 2; here++) {
		send_between(32, 1);
		traffic.on_one_machine = here;
		want(EXCHANGE_ROUNDS, 0, 0);
		expect_kind(EXCHANGE_ROUNDS);
		want(EXCHANGE_GRID, 0, 0);
		expect_grid(6, 6);
		want(EXCHANGE_GRID, 8, 4);
		expect_grid(8, 4);
		traffic.byte_count = UINT64_MAX;
		want(EXCHANGE_ALL_AT_ONCE, 0, 0);
		expect_kind(EXCHANGE_ALL_AT_ONCE);
		want(EXCHANGE_GRID, 1, 32);
		expect_grid(1, 32);
	}
	send_between(1, 0);
	want(EXCHANGE_GRID, 0, 0);
	expect_grid(1, 1);
}

/* Are there a place for each rank, and a rank in each row and column? */
static bool has_all_places(unsigned rows, unsigned columns, unsigned ranks)
{
	unsigned last_row = (ranks - 1) / columns;

	return last_row == rows - 1 && columns <= ranks;
}

static void cluster_schedule__grids_that_suit(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 20; n++)
		for (unsigned i = 0; i < 25 * 25; i++) {
			unsigned rows = i / 25 + 1, columns = i % 25 + 1;

			want(EXCHANGE_GRID, rows, columns);
			send_between(n, 1);
			if (has_all_places(rows, columns, n))
				expect_grid(rows, columns);
			else
				assert_int_equal(cluster_schedule_choose(
							 &choice, &wish,
							 &traffic, &failure),
						 -EINVAL);
		}
}

static void cluster_schedule__refused(void **state)
{
	(void)state;
	want(EXCHANGE_GRID, 4, 3);
	send_between(8, 1);
	expect_refused("--schedule",
		       "a grid of 4x3 has no place for each of 8 ranks, or a "
		       "row or column without a rank");
	want(EXCHANGE_GRID, 2, 3);
	expect_refused("--schedule",
		       "a grid of 2x3 has no place for each of 8 ranks, or a "
		       "row or column without a rank");
	want(EXCHANGE_GRID, RANK_NODES_MAX, RANK_NODES_MAX);
	expect_refused("--schedule",
		       "a grid of 4096x4096 has no place for each of 8 ranks, "
		       "or a row or column without a rank");
	want(EXCHANGE_GRID, 2, 4);
	traffic.is_external = true;
	expect_refused("--schedule=grid",
		       "not beyond memory, where --roles, --shared-input and "
		       "large inputs lead");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cluster_schedule__numbers),
		cmocka_unit_test(cluster_schedule__first),
		cmocka_unit_test(cluster_schedule__auto),
		cmocka_unit_test(cluster_schedule__wanted),
		cmocka_unit_test(cluster_schedule__grids_that_suit),
		cmocka_unit_test(cluster_schedule__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
