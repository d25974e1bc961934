#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "shell/replay.h"

#define WINDOW REPLAY_WINDOW
#define AHEAD REPLAY_AHEAD

static struct replay replay;

/* The nonce of this number. */
struct nonce {
	uint8_t bytes[16];
};

static struct nonce nonce_of(uint64_t number)
{
	struct nonce nonce = { { 0 } };

	memcpy(nonce.bytes, &number, sizeof(number));
	return nonce;
}

struct id {
	uint8_t bytes[WIRE_SESSION_BYTES];
};

/* A copy, since sessions move out. */
static struct id open_session(uint64_t number)
{
	const uint8_t *session =
		replay_open_session(&replay, nonce_of(number).bytes);
	struct id id;

	assert_non_null(session);
	memcpy(id.bytes, session, sizeof(id.bytes));
	return id;
}

static bool accept_counter(struct id id, uint64_t counter)
{
	return replay_accept(&replay, id.bytes, counter) == REPLAY_ACCEPTED;
}

static bool is_known(struct id id)
{
	return replay_accept(&replay, id.bytes, 0) == REPLAY_REFUSED;
}

static int setup(void **state)
{
	(void)state;
	replay_init(&replay);
	return 0;
}

/* --- the window ---------------------------------------------------------- */

/* As in WireGuard's selftest: one session, step after step. */
static void replay_accept__table(void **state)
{
	static const struct {
		uint64_t counter;
		bool accepted;
	} steps[] = {
		/*  0 */ { 0, false },
		/*  1 */ { 1, true },
		/*  2 */ { 1, false },
		/*  3 */ { 9, true },
		/*  4 */ { 8, true },
		/*  5 */ { 7, true },
		/*  6 */ { 7, false },
		/*  7 */ { WINDOW, true },
		/*  8 */ { WINDOW - 1, true },
		/*  9 */ { WINDOW - 1, false },
		/* 10 */ { WINDOW - 2, true },
		/* 11 */ { 2, true },
		/* 12 */ { 2, false },
		/* 13 */ { WINDOW + 16, true },
		/* 14 */ { 3, false }, /* too old by now */
		/* 15 */ { 16, false },
		/* 16 */ { 17, true }, /* the oldest that is not */
		/* 17 */ { 17, false },
		/* 18 */ { WINDOW + 16, false },
		/* 19 */ { WINDOW * 4, true },
		/* 20 */ { WINDOW * 4 - (WINDOW - 1), true },
		/* 21 */ { 10, false },
		/* 22 */ { WINDOW * 4 - WINDOW, false },
		/* 23 */ { WINDOW * 4 - (WINDOW + 1), false },
		/* 24 */ { WINDOW * 4 - (WINDOW - 2), true },
		/* 25 */ { WINDOW * 4 + 1 - WINDOW, false },
		/* 26 */ { 0, false },
		/* 27 */ { WINDOW * 4 + 1, true },
		/* 28 */ { WINDOW * 4 + 1 + WINDOW, true }, /* all move out */
		/* 29 */ { WINDOW * 4 + 1, false },
		/* 30 */ { WINDOW * 4 + 2, true },
		/* 31 */ { WINDOW * 4 + 2 + WINDOW - 1, false },
		/* 32 */ { WINDOW * 4 + WINDOW, true },
		/* 33 */ { WINDOW * 5 + 64, true },
		/* 34 */ { WINDOW * 5 + 63, true },
		/* 35 */ { WINDOW * 5 + 65, true },
		/* 36 */ { WINDOW * 5 + 64, false },
		/* 37 */ { UINT64_MAX, false }, /* from the future */
		/* 38 */ { UINT64_MAX - 1, false },
		/* 39 */ { (uint64_t)1 << 63, false },
		/* 40 */ { WINDOW * 5 + 65 + AHEAD + 1, false },
		/* 41 */ { WINDOW * 5 + 66, true }, /* nothing has moved */
		/* 42 */ { WINDOW * 5 + 66 + AHEAD, true },
		/* 43 */ { WINDOW * 5 + 67, false },
		/* 44 */ { WINDOW * 5 + 66 + AHEAD - (WINDOW - 1), true },
		/* 45 */ { WINDOW * 5 + 66 + AHEAD - WINDOW, false },
	};
	struct id id = open_session(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (accept_counter(id, steps[i].counter) != steps[i].accepted)
			fail_msg("step %zu: counter %llu", i,
				 (unsigned long long)steps[i].counter);
}

static void replay_accept__in_order(void **state)
{
	struct id id = open_session(1);

	(void)state;
	for (uint64_t i = 1; i <= 3 * WINDOW; i++) {
		assert_true(accept_counter(id, i));
		assert_false(accept_counter(id, i));
	}
	for (uint64_t i = 1; i <= 3 * WINDOW; i++)
		assert_false(accept_counter(id, i));
}

static void replay_accept__backwards(void **state)
{
	struct id id = open_session(1);

	(void)state;
	for (uint64_t i = 2 * WINDOW; i > WINDOW; i--)
		assert_true(accept_counter(id, i));
	for (uint64_t i = 2 * WINDOW; i > 0; i--)
		assert_false(accept_counter(id, i));
}

/* All lengths of a step, from all places within a word. */
static void replay_accept__leaps(void **state)
{
	(void)state;
	for (uint64_t leap = 1; leap < 2 * WINDOW; leap += 61) {
		struct id id = open_session(leap);
		uint64_t counter = 1 + leap % 64;

		for (int i = 0; i < 20; i++, counter += leap) {
			assert_true(accept_counter(id, counter));
			assert_false(accept_counter(id, counter));
			if (leap > 1)
				assert_true(accept_counter(id, counter - 1));
		}
	}
}

/* Against the simplest thing that is right: a note of each counter. */
static void replay_accept__random(void **state)
{
	enum { RANGE = 20000 };
	static bool taken[RANGE + 1];
	const char *text = getenv("SEED");
	unsigned seed =
		text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)time(NULL);
	struct id id = open_session(1);
	uint64_t highest = 0;

	(void)state;
	print_message("SEED=%u\n", seed);
	srandom(seed);
	memset(taken, 0, sizeof(taken));
	for (int i = 0; i < 200000; i++) {
		uint64_t spread = (uint64_t)random() % (2 * WINDOW);
		uint64_t counter = highest + spread % 8;
		bool want;

		if (random() % 4 > 0)
			counter = highest > spread ? highest - spread : spread;
		if (counter > RANGE)
			break;
		want = counter > 0 && !taken[counter] &&
		       (counter > highest || highest - counter < WINDOW);
		if (accept_counter(id, counter) != want)
			fail_msg("counter %llu of highest %llu",
				 (unsigned long long)counter,
				 (unsigned long long)highest);
		taken[counter] = taken[counter] || want;
		highest = MAX(highest, want ? counter : 0);
	}
	assert_true(highest > 4 * WINDOW);
}

/* --- sessions ------------------------------------------------------------ */

static void replay_accept__nobodys_session(void **state)
{
	struct id zero = { { 0 } }, drawn;

	(void)state;
	assert_false(accept_counter(zero, 1));
	drawn = open_session(1);
	assert_false(accept_counter(zero, 1));
	drawn.bytes[15] ^= 1;
	assert_false(accept_counter(drawn, 1));
	drawn.bytes[15] ^= 1;
	assert_true(accept_counter(drawn, 1));
}

static void replay_accept__sessions_do_not_share(void **state)
{
	struct id a = open_session(1), b = open_session(2);

	(void)state;
	assert_memory_not_equal(a.bytes, b.bytes, sizeof(a.bytes));
	assert_true(accept_counter(a, 5));
	assert_true(accept_counter(b, 5));
	assert_false(accept_counter(a, 5));
	assert_false(accept_counter(b, 5));
}

/* What was recorded before a restart, or sent to another daemon. */
static void replay_accept__after_a_restart(void **state)
{
	struct id before = open_session(1), after;

	(void)state;
	assert_true(accept_counter(before, 1));
	replay_init(&replay);
	assert_false(accept_counter(before, 1));
	assert_false(accept_counter(before, 2));
	after = open_session(1);
	assert_memory_not_equal(before.bytes, after.bytes, sizeof(after.bytes));
	assert_false(accept_counter(before, 2));
}

static void replay_open_session__longest_unused_makes_room(void **state)
{
	struct id ids[REPLAY_SESSIONS + 1];

	(void)state;
	for (uint64_t i = 0; i < REPLAY_SESSIONS; i++) {
		ids[i] = open_session(i);
		assert_true(accept_counter(ids[i], 1));
	}
	assert_true(accept_counter(ids[0], 2)); /* now 1 is the oldest */
	ids[REPLAY_SESSIONS] = open_session(REPLAY_SESSIONS);
	assert_false(accept_counter(ids[1], 2));
	assert_true(accept_counter(ids[0], 3));
	for (uint64_t i = 2; i < REPLAY_SESSIONS; i++)
		assert_true(accept_counter(ids[i], 2));
	assert_true(accept_counter(ids[REPLAY_SESSIONS], 1));
}

/* HELLOs from long ago, sent again without end, do not push out a session that
 * is in use, once there is one unused for each that may be. */
static void replay_open_session__flood_spares_those_in_use(void **state)
{
	enum { IN_USE = REPLAY_SESSIONS - REPLAY_SESSIONS_FRESH };
	struct id in_use[IN_USE], last = { { 0 } };

	(void)state;
	for (uint64_t i = 0; i < IN_USE; i++) {
		in_use[i] = open_session(i);
		assert_true(accept_counter(in_use[i], 1));
	}
	for (uint64_t i = 0; i < 3 * REPLAY_SESSIONS; i++)
		last = open_session(1000 + i);
	for (uint64_t i = 0; i < IN_USE; i++)
		assert_true(accept_counter(in_use[i], 2));
	assert_true(accept_counter(last, 1));
}

/* Newcomers that come at once when all sessions are in use do not push out each
 * other. */
static void replay_open_session__newcomers_have_room(void **state)
{
	struct id fresh[REPLAY_SESSIONS_FRESH];

	(void)state;
	for (uint64_t i = 0; i < REPLAY_SESSIONS; i++)
		assert_true(accept_counter(open_session(i), 1));
	for (uint64_t i = 0; i < REPLAY_SESSIONS_FRESH; i++)
		fresh[i] = open_session(1000 + i);
	for (uint64_t i = 0; i < REPLAY_SESSIONS_FRESH; i++)
		assert_true(accept_counter(fresh[i], 1));
}

/* The room of one that made way begins empty. */
static void replay_open_session__nothing_is_inherited(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * REPLAY_SESSIONS; i++) {
		struct id id = open_session(i);

		assert_true(accept_counter(id, 2));
		assert_true(accept_counter(id, 1));
	}
}

/* Each of the others was used later, and all of them make room. */
static void replay_hold__never_makes_room(void **state)
{
	enum { HELD = REPLAY_SESSIONS - REPLAY_SESSIONS_FRESH - 1 };
	struct id held[HELD];

	(void)state;
	for (uint64_t i = 0; i < HELD; i++) {
		held[i] = open_session(i);
		assert_true(accept_counter(held[i], 1));
		replay_hold(&replay, held[i].bytes);
		replay_hold(&replay, held[i].bytes);
	}
	for (uint64_t i = 0; i < 3 * REPLAY_SESSIONS; i++) {
		struct id id = open_session(1000 + i);

		assert_true(accept_counter(id, 1));
		assert_true(accept_counter(id, 2));
	}
	for (uint64_t i = 0; i < HELD; i++) {
		assert_true(is_known(held[i]));
		replay_release(&replay, held[i].bytes);
	}
	/* As often as it was held. */
	for (uint64_t i = 0; i < REPLAY_SESSIONS; i++)
		assert_true(accept_counter(open_session(5000 + i), 1));
	for (uint64_t i = 0; i < HELD; i++) {
		assert_true(accept_counter(held[i], 2));
		replay_release(&replay, held[i].bytes);
	}
	for (uint64_t i = 0; i < REPLAY_SESSIONS; i++)
		assert_true(accept_counter(open_session(9000 + i), 1));
	for (uint64_t i = 0; i < HELD; i++)
		assert_false(is_known(held[i]));
}

/* Released once too often, it makes room as any other; and to hold one that is
 * not known holds no other. */
static void replay_release__too_often(void **state)
{
	struct id first = open_session(1);

	(void)state;
	assert_true(accept_counter(first, 1));
	replay_hold(&replay, first.bytes);
	replay_release(&replay, first.bytes);
	replay_release(&replay, first.bytes);
	for (uint64_t i = 0; i < REPLAY_SESSIONS; i++)
		assert_true(accept_counter(open_session(100 + i), 1));
	assert_false(is_known(first));
	replay_hold(&replay, first.bytes);
	for (size_t i = 0; i < REPLAY_SESSIONS; i++)
		assert_int_equal(replay.sessions[i].holds, 0);
}

static void replay_accept__says_why_not(void **state)
{
	struct id id = open_session(1), other = id;

	(void)state;
	other.bytes[0] ^= 1;
	assert_int_equal(replay_accept(&replay, id.bytes, 3), REPLAY_ACCEPTED);
	assert_int_equal(replay_accept(&replay, id.bytes, 3), REPLAY_REFUSED);
	assert_int_equal(replay_accept(&replay, id.bytes, 0), REPLAY_REFUSED);
	assert_int_equal(replay_accept(&replay, id.bytes, UINT64_MAX),
			 REPLAY_REFUSED);
	assert_int_equal(replay_accept(&replay, other.bytes, 3),
			 REPLAY_NO_SESSION);
}

static void replay_init__an_epoch_of_its_own(void **state)
{
	uint8_t before[WIRE_EPOCH_BYTES];

	(void)state;
	memcpy(before, replay.epoch, sizeof(before));
	replay_init(&replay);
	assert_memory_not_equal(before, replay.epoch, sizeof(before));
}

/* --- nonces -------------------------------------------------------------- */

static void replay_open_session__nonce_again(void **state)
{
	(void)state;
	open_session(7);
	assert_null(replay_open_session(&replay, nonce_of(7).bytes));
	open_session(8);
	assert_null(replay_open_session(&replay, nonce_of(7).bytes));
	assert_null(replay_open_session(&replay, nonce_of(8).bytes));
}

/* An empty place of the ring is not a nonce of zeros that was seen. */
static void replay_open_session__nonce_of_zeros(void **state)
{
	(void)state;
	open_session(0);
	assert_null(replay_open_session(&replay, nonce_of(0).bytes));
}

static void replay_open_session__nonce_ring(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < REPLAY_NONCES; i++)
		open_session(i);
	for (uint64_t i = 0; i < REPLAY_NONCES; i++)
		assert_null(replay_open_session(&replay, nonce_of(i).bytes));
	open_session(REPLAY_NONCES);
	assert_null(replay_open_session(&replay, nonce_of(1).bytes));
	assert_null(
		replay_open_session(&replay, nonce_of(REPLAY_NONCES).bytes));
	open_session(0); /* forgotten, as documented */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(replay_accept__table, setup),
		cmocka_unit_test_setup(replay_accept__in_order, setup),
		cmocka_unit_test_setup(replay_accept__backwards, setup),
		cmocka_unit_test_setup(replay_accept__leaps, setup),
		cmocka_unit_test_setup(replay_accept__random, setup),
		cmocka_unit_test_setup(replay_accept__nobodys_session, setup),
		cmocka_unit_test_setup(replay_accept__sessions_do_not_share,
				       setup),
		cmocka_unit_test_setup(replay_accept__after_a_restart, setup),
		cmocka_unit_test_setup(
			replay_open_session__longest_unused_makes_room, setup),
		cmocka_unit_test_setup(
			replay_open_session__flood_spares_those_in_use, setup),
		cmocka_unit_test_setup(replay_open_session__newcomers_have_room,
				       setup),
		cmocka_unit_test_setup(
			replay_open_session__nothing_is_inherited, setup),
		cmocka_unit_test_setup(replay_hold__never_makes_room, setup),
		cmocka_unit_test_setup(replay_release__too_often, setup),
		cmocka_unit_test_setup(replay_accept__says_why_not, setup),
		cmocka_unit_test_setup(replay_init__an_epoch_of_its_own, setup),
		cmocka_unit_test_setup(replay_open_session__nonce_again, setup),
		cmocka_unit_test_setup(replay_open_session__nonce_of_zeros,
				       setup),
		cmocka_unit_test_setup(replay_open_session__nonce_ring, setup),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
