#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "base/base.h"
#include "shell/outcome.h"

/* All states that a daemon may tell, and one that none does. */
static const enum wire_job_state states[] = {
	WIRE_JOB_UNKNOWN,	 WIRE_JOB_RUNNING,   WIRE_JOB_EXITED,
	WIRE_JOB_KILLED,	 WIRE_JOB_TIMED_OUT, WIRE_JOB_LEASE_EXPIRED,
	WIRE_JOB_CANCELLED,	 WIRE_JOB_REFUSED,   WIRE_JOB_FORGOTTEN,
	(enum wire_job_state)99,
};

static void expect(enum wire_job_state state, int code,
		   enum outcome_class class, int status)
{
	struct outcome outcome = outcome_of(state, code);

	assert_int_equal(outcome.class, class);
	assert_int_equal(outcome.status, status);
}

static void outcome_of__states(void **state)
{
	(void)state;
	expect(WIRE_JOB_EXITED, 0, OUTCOME_OK, 0);
	expect(WIRE_JOB_EXITED, 1, OUTCOME_APPLICATION, 1);
	expect(WIRE_JOB_EXITED, 255, OUTCOME_APPLICATION, 255);
	expect(WIRE_JOB_KILLED, SIGKILL, OUTCOME_APPLICATION, 137);
	expect(WIRE_JOB_KILLED, SIGTERM, OUTCOME_APPLICATION, 143);
	expect(WIRE_JOB_CANCELLED, 0, OUTCOME_APPLICATION, 143);
	expect(WIRE_JOB_TIMED_OUT, 0, OUTCOME_TIMEOUT, 124);
	expect(WIRE_JOB_REFUSED, 13, OUTCOME_REFUSED, 125);
	expect(WIRE_JOB_LEASE_EXPIRED, 0, OUTCOME_LOST, 127);
	expect(WIRE_JOB_UNKNOWN, 0, OUTCOME_LOST, 127);
	expect(WIRE_JOB_FORGOTTEN, 0, OUTCOME_LOST, 127);
	/* What never is an end, and what a daemon of tomorrow may say. */
	expect(WIRE_JOB_RUNNING, 0, OUTCOME_LOST, 127);
	expect((enum wire_job_state)99, 0, OUTCOME_LOST, 127);
}

/* A command's own status keeps its class, whatever it looks like. */
static void outcome_of__statuses_that_look_like_ours(void **state)
{
	static const int statuses[] = { 124, 125, 127, 128, 143 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(statuses); i++)
		expect(WIRE_JOB_EXITED, statuses[i], OUTCOME_APPLICATION,
		       statuses[i]);
}

/* Nothing but an exit with 0 is a success, to exit(2) and to whoever asks. */
static void outcome_of__success(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
		for (int code = 0; code < 65; code++) {
			struct outcome outcome = outcome_of(states[i], code);
			int good = states[i] == WIRE_JOB_EXITED && code == 0;

			assert_int_equal(outcome.class == OUTCOME_OK, good);
			assert_int_equal(outcome.status == 0, good);
			assert_in_range(outcome.status, 0, 255);
		}
	}
}

static void expect_worst(struct outcome better, struct outcome worse)
{
	struct outcome worst = outcome_worst(better, worse);

	assert_int_equal(worst.class, worse.class);
	assert_int_equal(worst.status, worse.status);
	worst = outcome_worst(worse, better);
	assert_int_equal(worst.class, worse.class);
	assert_int_equal(worst.status, worse.status);
}

/* Each before all that follow it, whatever the numbers say. */
static void outcome_worst__order(void **state)
{
	static const struct outcome order[] = {
		{ OUTCOME_OK, 0 },
		{ OUTCOME_APPLICATION, 1 },
		{ OUTCOME_APPLICATION, 127 },
		{ OUTCOME_APPLICATION, 143 },
		{ OUTCOME_APPLICATION, 255 },
		{ OUTCOME_TIMEOUT, 124 },
		{ OUTCOME_REFUSED, 125 },
		{ OUTCOME_LOST, 127 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(order); i++)
		for (unsigned k = i; k < ARRAY_LEN(order); k++)
			expect_worst(order[i], order[k]);
}

static void outcome_name__all_differ(void **state)
{
	(void)state;
	for (unsigned i = 0; i + 1 < ARRAY_LEN(states); i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(outcome_name(states[i]),
						outcome_name(states[k]));
}

/* What --json promises. */
static void outcome_name__words(void **state)
{
	(void)state;
	assert_string_equal(outcome_name(WIRE_JOB_EXITED), "exited");
	assert_string_equal(outcome_name(WIRE_JOB_KILLED), "killed");
	assert_string_equal(outcome_name(WIRE_JOB_TIMED_OUT), "timed out");
	assert_string_equal(outcome_name(WIRE_JOB_LEASE_EXPIRED),
			    "lease expired");
	assert_string_equal(outcome_name(WIRE_JOB_CANCELLED), "cancelled");
	assert_string_equal(outcome_name(WIRE_JOB_REFUSED), "refused");
	assert_string_equal(outcome_name(WIRE_JOB_UNKNOWN), "lost");
	assert_string_equal(outcome_name((enum wire_job_state)99), "lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcome_of__states),
		cmocka_unit_test(outcome_of__statuses_that_look_like_ours),
		cmocka_unit_test(outcome_of__success),
		cmocka_unit_test(outcome_worst__order),
		cmocka_unit_test(outcome_name__all_differ),
		cmocka_unit_test(outcome_name__words),
	};

	return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
