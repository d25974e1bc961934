/*
 * test_liveness.c - when a silent peer is queried, and when it is given up
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exchange/liveness.h"

#define MS ((uint64_t)1000000)
#define FIRST_NS MS
#define NUMBER 3
#define PEERS 64
#define TRIES 12
#define DEADLINE_NS (1600 * MS)

static uint64_t until_ns;

enum step { WAIT, QUERY, LOST };

static enum step wait_at(struct liveness *peer, bool urgent, uint64_t now_ns)
{
	if (liveness_is_lost(peer, DEADLINE_NS, now_ns))
		return LOST;
	return liveness_wants_query(peer, NUMBER, urgent, FIRST_NS, DEADLINE_NS,
				    now_ns, &until_ns)
		       ? QUERY
		       : WAIT;
}

/* The next query is due after the interval, and up to a quarter of it. */
static void check_until(uint64_t from_ns, uint64_t interval_ns)
{
	assert_in_range(until_ns, from_ns + interval_ns,
			from_ns + interval_ns * 5 / 4);
}

/* After 1 ms, then 2, 4, ... ms later, at most every 64 ms. */
static void liveness__urgent_queries_double(void **state)
{
	static const uint64_t after_ms[] = { 1, 2, 4, 8, 16, 32, 64, 64, 64 };
	struct liveness peer = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	peer.heard_ns = now_ns;
	assert_int_equal(wait_at(&peer, true, now_ns), WAIT);
	for (size_t i = 0; i < sizeof(after_ms) / sizeof(after_ms[0]); i++) {
		check_until(now_ns, after_ms[i] * MS);
		assert_int_equal(wait_at(&peer, true, until_ns - 1), WAIT);
		now_ns = until_ns;
		assert_int_equal(wait_at(&peer, true, now_ns), QUERY);
	}
}

/* When each query goes to a peer that never answers. */
static void query(unsigned number, uint64_t times_ns[TRIES])
{
	struct liveness peer = { 0 };
	uint64_t now_ns = 1000 * MS;

	for (unsigned i = 0; i < TRIES;)
		if (liveness_is_lost(&peer, UINT64_MAX / 2, now_ns))
			fail();
		else if (liveness_wants_query(&peer, number, true, FIRST_NS,
					      DEADLINE_NS, now_ns, &until_ns))
			times_ns[i++] = now_ns;
		else
			now_ns = until_ns;
}

/* Few peers are asked at one moment, and no two again and again. */
static void liveness__queries_are_spread(void **state)
{
	static uint64_t times_ns[PEERS][TRIES];

	(void)state;
	for (unsigned peer = 0; peer < PEERS; peer++)
		query(peer, times_ns[peer]);
	for (unsigned peer = 0; peer < PEERS; peer++) {
		unsigned together[TRIES] = { 0 };

		for (unsigned other = 0; other < PEERS; other++) {
			unsigned times = 0;

			for (unsigned i = 0; i < TRIES; i++)
				if (times_ns[peer][i] == times_ns[other][i]) {
					together[i]++;
					times++;
				}
			assert_true(peer == other || times < TRIES / 2);
		}
		for (unsigned i = 0; i < TRIES; i++)
			assert_in_range(together[i], 1, PEERS / 4);
	}
}

/* An answer without progress does not make queries more frequent; progress
 * begins anew. */
static void liveness__progress_begins_anew(void **state)
{
	struct liveness peer = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	peer.heard_ns = now_ns;
	wait_at(&peer, true, now_ns);
	for (unsigned i = 0; i < 5; i++) {
		now_ns = until_ns;
		assert_int_equal(wait_at(&peer, true, now_ns), QUERY);
	}
	peer.heard_ns = now_ns + 1;
	assert_int_equal(wait_at(&peer, true, now_ns + 2), WAIT);
	check_until(now_ns, 32 * MS);
	peer.progress_ns = now_ns + 3;
	assert_int_equal(wait_at(&peer, true, now_ns + 3), WAIT);
	check_until(now_ns + 3, FIRST_NS);
}

/* 16 in a deadline, at most. */
static void liveness__keep_alive_queries(void **state)
{
	struct liveness peer = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	peer.heard_ns = now_ns;
	assert_int_equal(wait_at(&peer, false, now_ns), WAIT);
	check_until(now_ns, 100 * MS);
	assert_int_equal(wait_at(&peer, false, until_ns), QUERY);
}

/* The deadline runs from the last sign of life, or from when we began to wait;
 * not while the peer has announced a delay. */
static void liveness__deadline(void **state)
{
	struct liveness peer = { .heard_ns = 500 * MS };
	uint64_t end_ns = 1000 * MS + DEADLINE_NS;

	(void)state;
	wait_at(&peer, true, 1000 * MS);
	assert_int_not_equal(wait_at(&peer, true, end_ns), LOST);
	peer.quiet_until_ns = end_ns + 5;
	assert_int_not_equal(wait_at(&peer, true, end_ns + 5), LOST);
	assert_int_equal(wait_at(&peer, true, end_ns + 6), LOST);
	peer.heard_ns = end_ns;
	assert_int_not_equal(wait_at(&peer, true, end_ns + 6), LOST);
}

/* Silence while we did not wait does not count. */
static void liveness__rest(void **state)
{
	struct liveness peer = { .heard_ns = 1 };

	(void)state;
	wait_at(&peer, true, 1000 * MS);
	liveness_rest(&peer);
	assert_int_equal(wait_at(&peer, true, 2000 * MS + DEADLINE_NS), WAIT);
}

/* --- debts ------------------------------------------------------------------
 */

/* The peer answers every 100 ms up to then, owes something, and pays so much.
 * Returns whether it was overdue at any time. */
static bool answers_until(struct debt *debt, uint64_t *now_ns, uint64_t end_ns,
			  bool owes, uint64_t paid)
{
	bool overdue = false;

	for (; *now_ns <= end_ns; *now_ns += 100 * MS)
		overdue |= debt_is_overdue(debt, owes, paid, *now_ns - MS,
					   DEADLINE_NS, *now_ns);
	return overdue;
}

static void debt__deadline(void **state)
{
	struct debt debt = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	assert_false(
		answers_until(&debt, &now_ns, now_ns + DEADLINE_NS, true, 5));
	assert_true(answers_until(&debt, &now_ns, now_ns, true, 5));
}

/* The smallest part of it is enough, and so is a moment without a debt. */
static void debt__paid(void **state)
{
	struct debt debt = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	for (uint64_t paid = 0; paid < 5; paid++)
		assert_false(answers_until(&debt, &now_ns, now_ns + DEADLINE_NS,
					   true, paid));
	/* From the last look that found none. */
	assert_false(answers_until(&debt, &now_ns, now_ns, false, 4));
	assert_false(answers_until(&debt, &now_ns,
				   now_ns + DEADLINE_NS - 100 * MS, true, 4));
	assert_true(answers_until(&debt, &now_ns, now_ns, true, 4));
}

/* A peer that was away, or that we could not look at, has the time anew. */
static void debt__away(void **state)
{
	struct debt debt = { 0 };
	uint64_t now_ns = 1000 * MS;

	(void)state;
	assert_false(
		answers_until(&debt, &now_ns, now_ns + DEADLINE_NS, true, 5));
	assert_false(debt_is_overdue(&debt, true, 5,
				     now_ns - DEADLINE_NS / 4 - MS, DEADLINE_NS,
				     now_ns));
	assert_false(answers_until(&debt, &now_ns, now_ns + DEADLINE_NS / 2,
				   true, 5));
	now_ns += DEADLINE_NS;
	assert_false(
		answers_until(&debt, &now_ns, now_ns + DEADLINE_NS, true, 5));
	assert_true(answers_until(&debt, &now_ns, now_ns, true, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(liveness__urgent_queries_double),
		cmocka_unit_test(liveness__queries_are_spread),
		cmocka_unit_test(liveness__progress_begins_anew),
		cmocka_unit_test(liveness__keep_alive_queries),
		cmocka_unit_test(liveness__deadline),
		cmocka_unit_test(liveness__rest),
		cmocka_unit_test(debt__deadline),
		cmocka_unit_test(debt__paid),
		cmocka_unit_test(debt__away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
