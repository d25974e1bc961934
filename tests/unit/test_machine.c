/*
 * test_machine.c - what of another process is opened when a peer tells of it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/machine.h"
#include "skip.h"

static uint64_t self(void)
{
	return (uint64_t)getpid();
}

static void machine_open__a_file(void **state)
{
	int made = memfd_create("made", MFD_CLOEXEC);
	struct stat status;
	int fd;
	char byte;

	(void)state;
	assert_int_equal(write(made, "abc", 3), 3);
	fd = machine_open(self(), (uint64_t)made, O_RDONLY, &status);
	assert_true(fd >= 0 && fd != made);
	assert_int_equal(status.st_size, 3);
	assert_int_equal(pread(fd, &byte, 1, 2), 1);
	assert_int_equal(byte, 'c');
	assert_int_equal(write(fd, "d", 1), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	fd = machine_open(self(), (uint64_t)made, O_RDWR, &status);
	assert_int_equal(pwrite(fd, "d", 1, 0), 1);
	close(fd);
	close(made);
}

/* Opening it would wait, or do something to it. */
static void machine_open__nothing_but_files(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int folder = open("/", O_RDONLY | O_CLOEXEC);
	struct stat status;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(machine_open(self(), (uint64_t)null, O_RDWR, &status),
			 -EBADF);
	assert_int_equal(
		machine_open(self(), (uint64_t)folder, O_RDONLY, &status),
		-EBADF);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(machine_open(self(), (uint64_t)ends[i], O_RDWR,
					      &status),
				 -EBADF);
	close(null);
	close(folder);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(machine_open(self(), (uint64_t)null, O_RDWR, &status),
			 -ENOENT);
}

static void machine_open__numbers_that_cannot_be(void **state)
{
	static const uint64_t numbers[] = { UINT64_MAX, (uint64_t)1 << 63,
					    (uint64_t)1 << 32 };
	struct stat status;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(machine_open(self(), numbers[i], O_RDONLY,
					 &status) < 0);
		assert_true(machine_open(numbers[i], 0, O_RDONLY, &status) < 0);
	}
}

/* Root could, and is told any process. */
static void machine_open__of_another_user(void **state)
{
	int made = memfd_create("made", MFD_CLOEXEC);
	struct stat status;
	pid_t child;
	int ends[2];
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (setresuid(65534, 65534, 65534) < 0 ||
		    write(ends[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(machine_open((uint64_t)child, (uint64_t)made, O_RDONLY,
				      &status),
			 -EPERM);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machine_open__a_file),
		cmocka_unit_test(machine_open__nothing_but_files),
		cmocka_unit_test(machine_open__numbers_that_cannot_be),
		cmocka_unit_test(machine_open__of_another_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
