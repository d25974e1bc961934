/*
 * test_file_hold.c - files that are held after their descriptors are closed
 *
 * A pipe tells whether its other end is still open.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/file_hold.h"
#include "skip.h"

/* True when the pipe has no writer any more. */
static bool has_hung_up(int fd, int wait_ms)
{
	struct pollfd poll_fd = { .fd = fd };

	return poll(&poll_fd, 1, wait_ms) == 1 &&
	       (poll_fd.revents & POLLHUP) != 0;
}

static void file_hold__keeps_a_file(void **state)
{
	struct file_hold hold = { 0 };
	int ends[2];

	(void)state;
	assert_return_code(pipe(ends), errno);
	file_hold_open(&hold, &ends[1], 1);
	if (!hold.ring)
		skip_because("no io_uring");
	close(ends[1]);
	assert_false(has_hung_up(ends[0], 0));
	file_hold_close(&hold);
	assert_true(has_hung_up(ends[0], 5000));
	close(ends[0]);
}

/* What the process leaves behind when it ends, it does not hold for ever. */
static void file_hold__ends_with_the_process(void **state)
{
	int ends[2], status;
	pid_t child;

	(void)state;
	assert_return_code(pipe(ends), errno);
	child = fork();
	assert_return_code(child, errno);
	if (child == 0) {
		struct file_hold hold = { 0 };

		file_hold_open(&hold, &ends[1], 1);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(has_hung_up(ends[0], 20000));
	close(ends[0]);
}

static void file_hold__refuses_nothing(void **state)
{
	struct file_hold hold = { 0 };
	int bad = -2;

	(void)state;
	file_hold_close(&hold);
	file_hold_open(&hold, &bad, 1);
	assert_null(hold.ring);
	file_hold_close(&hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_hold__keeps_a_file),
		cmocka_unit_test(file_hold__ends_with_the_process),
		cmocka_unit_test(file_hold__refuses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
