#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base.h"
#include "descriptors.h"
#include "pipepool.h"

static struct pipepool pool;

static int tear_down(void **state)
{
	(void)state;
	pipepool_close(&pool);
	return 0;
}

static int flag_of(int fd, int flag)
{
	return (fcntl(fd, F_GETFL) & flag) != 0;
}

static void expect_new(const int pipe[2])
{
	int unread = -1;

	assert_int_equal(fcntl(pipe[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(pipe[1], F_GETFD), FD_CLOEXEC);
	assert_true(flag_of(pipe[0], O_NONBLOCK));
	assert_false(flag_of(pipe[1], O_NONBLOCK | O_APPEND | O_DIRECT));
	assert_int_equal(ioctl(pipe[0], FIONREAD, &unread), 0);
	assert_int_equal(unread, 0);
	assert_int_equal(fcntl(pipe[0], F_GETPIPE_SZ), 65536);
}

static void take(int pipe[2])
{
	assert_int_equal(pipepool_take(&pool, pipe), 0);
	expect_new(pipe);
}

/* Gives it back and looks whether it was kept. */
static void give(int pipe[2], unsigned kept)
{
	unsigned before = open_descriptors();
	unsigned count = pool.count;

	pipepool_give(&pool, pipe);
	assert_int_equal(pipe[0], -1);
	assert_int_equal(pipe[1], -1);
	assert_int_equal(pool.count, count + kept);
	assert_int_equal(open_descriptors(), before - (kept ? 0 : 2));
}

static void pool__used_again(void **state)
{
	int first[2], second[2], copy;
	char bytes[4];

	(void)state;
	take(first);
	copy = first[0];
	assert_int_equal(write(first[1], "abc", 3), 3);
	assert_int_equal(read(first[0], bytes, sizeof(bytes)), 3);
	give(first, 1);
	take(second);
	assert_int_equal(second[0], copy);
	assert_int_equal(read(second[0], bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EAGAIN);
	/* The next one is another. */
	take(first);
	assert_int_not_equal(first[0], copy);
	give(first, 1);
	give(second, 1);
}

static void pool__something_unread(void **state)
{
	int pipe[2];

	(void)state;
	take(pipe);
	assert_int_equal(write(pipe[1], "x", 1), 1);
	give(pipe, 0);
}

/* As programs do to their stdout, and leave it so. */
static void pool__other_flags(void **state)
{
	int pipe[2];

	(void)state;
	take(pipe);
	assert_int_equal(
		fcntl(pipe[1], F_SETFL, O_NONBLOCK | O_APPEND | O_DIRECT), 0);
	give(pipe, 1);
	take(pipe);
	give(pipe, 1);
}

static void pool__another_size(void **state)
{
	static const int sizes[] = { 4096, 32768, 131072 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
		int pipe[2];

		take(pipe);
		assert_int_equal(fcntl(pipe[1], F_SETPIPE_SZ, sizes[i]),
				 sizes[i]);
		give(pipe, 0);
	}
}

static void pool__closed(void **state)
{
	int pipe[2], none[2] = { -1, -1 };
	unsigned before = open_descriptors();

	(void)state;
	pipepool_give(&pool, none);
	assert_int_equal(pool.count, 0);
	for (unsigned end = 0; end < 2; end++) {
		take(pipe);
		close(pipe[end]);
		pipe[end] = -1;
		pipepool_give(&pool, pipe);
		assert_int_equal(pool.count, 0);
		assert_int_equal(open_descriptors(), before);
	}
}

static void pool__full(void **state)
{
	unsigned before = open_descriptors();
	int pipes[PIPEPOOL_MAX + 1][2];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(pipes); i++)
		take(pipes[i]);
	for (unsigned i = 0; i < ARRAY_LEN(pipes); i++)
		give(pipes[i], i < PIPEPOOL_MAX);
	pipepool_close(&pool);
	assert_int_equal(pool.count, 0);
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pool__used_again, tear_down),
		cmocka_unit_test_teardown(pool__something_unread, tear_down),
		cmocka_unit_test_teardown(pool__other_flags, tear_down),
		cmocka_unit_test_teardown(pool__another_size, tear_down),
		cmocka_unit_test_teardown(pool__closed, tear_down),
		cmocka_unit_test_teardown(pool__full, tear_down),
	};

	return cmocka_run_group_tests_name("pipepool", tests, NULL, NULL);
}
