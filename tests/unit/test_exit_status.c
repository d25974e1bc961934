#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>

#include "base/base.h"
#include "shell/exit_status.h"

/* All states that a daemon may tell, and one that none does. */
static const enum wire_job_state states[] = {
	WIRE_JOB_UNKNOWN,	 WIRE_JOB_RUNNING,   WIRE_JOB_EXITED,
	WIRE_JOB_KILLED,	 WIRE_JOB_TIMED_OUT, WIRE_JOB_LEASE_EXPIRED,
	WIRE_JOB_CANCELLED,	 WIRE_JOB_REFUSED,   WIRE_JOB_FORGOTTEN,
	(enum wire_job_state)99,
};

static void expect(enum wire_job_state state, int code,
		   enum exit_status_class class, int status)
{
	struct node_exit exit = exit_status_of(state, code);

	assert_int_equal(exit.class, class);
	assert_int_equal(exit.status, status);
}

static void exit_status_of__states(void **state)
{
	(void)state;
	expect(WIRE_JOB_EXITED, 0, EXIT_STATUS_OK, 0);
	expect(WIRE_JOB_EXITED, 1, EXIT_STATUS_APPLICATION, 1);
	expect(WIRE_JOB_EXITED, 255, EXIT_STATUS_APPLICATION, 255);
	expect(WIRE_JOB_KILLED, SIGKILL, EXIT_STATUS_APPLICATION, 137);
	expect(WIRE_JOB_KILLED, SIGTERM, EXIT_STATUS_APPLICATION, 143);
	expect(WIRE_JOB_CANCELLED, 0, EXIT_STATUS_APPLICATION, 143);
	expect(WIRE_JOB_TIMED_OUT, 0, EXIT_STATUS_TIMEOUT, 124);
	expect(WIRE_JOB_REFUSED, 13, EXIT_STATUS_REFUSED, 125);
	expect(WIRE_JOB_LEASE_EXPIRED, 0, EXIT_STATUS_LOST, 127);
	expect(WIRE_JOB_UNKNOWN, 0, EXIT_STATUS_LOST, 127);
	expect(WIRE_JOB_FORGOTTEN, 0, EXIT_STATUS_LOST, 127);
	/* What never is an end, and what a daemon of tomorrow may say. */
	expect(WIRE_JOB_RUNNING, 0, EXIT_STATUS_LOST, 127);
	expect((enum wire_job_state)99, 0, EXIT_STATUS_LOST, 127);
}

/* A command's own status keeps its class, whatever it looks like. */
static void exit_status_of__statuses_that_look_like_ours(void **state)
{
	static const int statuses[] = { 124, 125, 127, 128, 143 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(statuses); i++)
		expect(WIRE_JOB_EXITED, statuses[i], EXIT_STATUS_APPLICATION,
		       statuses[i]);
}

/* Only an exit with 0 is a success, by its class and by its status. */
static void exit_status_of__success(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
		for (int code = 0; code < 65; code++) {
			struct node_exit exit = exit_status_of(states[i], code);
			int good = states[i] == WIRE_JOB_EXITED && code == 0;

			assert_int_equal(exit.class == EXIT_STATUS_OK, good);
			assert_int_equal(exit.status == 0, good);
			assert_in_range(exit.status, 0, 255);
		}
	}
}

static void expect_worst(struct node_exit better, struct node_exit worse)
{
	struct node_exit worst = exit_status_worst(better, worse);

	assert_int_equal(worst.class, worse.class);
	assert_int_equal(worst.status, worse.status);
	worst = exit_status_worst(worse, better);
	assert_int_equal(worst.class, worse.class);
	assert_int_equal(worst.status, worse.status);
}

/* Each before all that follow it, whatever the numbers say. */
static void exit_status_worst__order(void **state)
{
	static const struct node_exit order[] = {
		{ EXIT_STATUS_OK, 0 },
		{ EXIT_STATUS_APPLICATION, 1 },
		{ EXIT_STATUS_APPLICATION, 127 },
		{ EXIT_STATUS_APPLICATION, 143 },
		{ EXIT_STATUS_APPLICATION, 255 },
		{ EXIT_STATUS_TIMEOUT, 124 },
		{ EXIT_STATUS_REFUSED, 125 },
		{ EXIT_STATUS_LOST, 127 },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(order); i++)
		for (unsigned k = i; k < ARRAY_LEN(order); k++)
			expect_worst(order[i], order[k]);
}

static void exit_status_state_name__all_differ(void **state)
{
	(void)state;
	for (unsigned i = 0; i + 1 < ARRAY_LEN(states); i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(
				exit_status_state_name(states[i]),
				exit_status_state_name(states[k]));
}

/* What --json promises. */
static void exit_status_state_name__words(void **state)
{
	(void)state;
	assert_string_equal(exit_status_state_name(WIRE_JOB_EXITED), "exited");
	assert_string_equal(exit_status_state_name(WIRE_JOB_KILLED), "killed");
	assert_string_equal(exit_status_state_name(WIRE_JOB_TIMED_OUT),
			    "timed out");
	assert_string_equal(exit_status_state_name(WIRE_JOB_LEASE_EXPIRED),
			    "lease expired");
	assert_string_equal(exit_status_state_name(WIRE_JOB_CANCELLED),
			    "cancelled");
	assert_string_equal(exit_status_state_name(WIRE_JOB_REFUSED),
			    "refused");
	assert_string_equal(exit_status_state_name(WIRE_JOB_UNKNOWN), "lost");
	assert_string_equal(exit_status_state_name((enum wire_job_state)99),
			    "lost");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_status_of__states),
		cmocka_unit_test(exit_status_of__statuses_that_look_like_ours),
		cmocka_unit_test(exit_status_of__success),
		cmocka_unit_test(exit_status_worst__order),
		cmocka_unit_test(exit_status_state_name__all_differ),
		cmocka_unit_test(exit_status_state_name__words),
	};

	return cmocka_run_group_tests_name("exit_status", tests, NULL, NULL);
}
