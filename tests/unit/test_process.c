#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "descriptors.h"
#include "shell/process.h"

static struct process_standby standby;
static int null_fd, out[2];
static const struct process_limit limits[] = { { RLIMIT_NOFILE, 321 } };

static struct process_place place(void)
{
	return (struct process_place){
		.stdin_fd = null_fd,
		.stdout_fd = out[1],
		.stderr_fd = out[1],
		.secret_fd = null_fd,
		.cgroup_fd = -1,
		.limits = limits,
		.limit_count = ARRAY_LEN(limits),
	};
}

static struct process_program program(const char *path, const char *script)
{
	static const char *arguments[] = { "sh", "-c", NULL, NULL };
	static const char *const environment[] = { "NAME=value", NULL };

	arguments[2] = script;
	return (struct process_program){
		.path = path,
		.arguments = arguments,
		.environment = environment,
	};
}

static int set_up(void **state)
{
	(void)state;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return null_fd < 0 || pipe2(out, O_CLOEXEC) < 0;
}

static int tear_down(void **state)
{
	(void)state;
	process_dismiss(&standby);
	close(null_fd);
	close(out[0]);
	close(out[1]);
	return 0;
}

static void prepare(void)
{
	struct process_place here = place();

	assert_int_equal(process_prepare(&standby, &here), 0);
	assert_true(standby.pid > 0);
}

/* The end of what it wrote. */
static const char *output(void)
{
	static char text[1024];
	ssize_t bytes = read(out[0], text, sizeof(text) - 1);

	assert_true(bytes >= 0);
	text[bytes] = '\0';
	return text;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	return status;
}

static void expect_no_child(void)
{
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

/* Asleep, and so as far as it goes without us. */
static void wait_until_it_sleeps(void)
{
	char path[64], text[512] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)standby.pid);
	while (!strstr(text, "(blinkd-standby) S ")) {
		int fd = open(path, O_RDONLY);
		ssize_t bytes = read(fd, text, sizeof(text) - 1);

		assert_true(bytes > 0);
		text[bytes] = '\0';
		close(fd);
		usleep(1000);
	}
}

/* Dead, but not reaped. */
static void wait_until_it_is_dead(void)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)standby.pid, &info,
				WEXITED | WNOWAIT | __WALL),
			 0);
}

/* --- a standby ---------------------------------------------------------------
 */

static void release__runs_the_program(void **state)
{
	struct process_program all =
		program("/bin/sh",
			"echo $NAME $(ulimit -n) $$ $(ps -o pgid= $$) $(echo "
			"/proc/self/fd/*)");
	char expected[128];
	pid_t pid, released;

	(void)state;
	prepare();
	pid = standby.pid;
	released = process_release(&standby, &all);
	assert_int_equal(released, pid);
	assert_int_equal(standby.pid, 0);
	assert_int_equal(status_of(pid), 0);
	snprintf(expected, sizeof(expected), "value 321 %d %d ", (int)pid,
		 (int)pid);
	assert_memory_equal(output(), expected, strlen(expected));
	expect_no_child();
}

/* Whether it has settled down by then or not. */
static void release__at_any_moment(void **state)
{
	struct process_program all = program("/bin/sh", "exit 7");

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		pid_t pid;

		prepare();
		usleep(i % 10 * 10);
		pid = process_release(&standby, &all);
		assert_true(pid > 0);
		assert_int_equal(status_of(pid), 7 << 8);
	}
	expect_no_child();
}

static void release__no_program(void **state)
{
	struct process_program all = program("/bin/none", "");

	(void)state;
	prepare();
	assert_int_equal(process_release(&standby, &all), -ENOENT);
	assert_int_equal(standby.pid, 0);
	expect_no_child();
	all.path = "/dev/null";
	prepare();
	assert_int_equal(process_release(&standby, &all), -EACCES);
	expect_no_child();
}

static void release__there_is_none(void **state)
{
	struct process_program all = program("/bin/sh", "");

	(void)state;
	assert_int_equal(process_release(&standby, &all), 0);
	prepare();
	kill(standby.pid, SIGKILL);
	wait_until_it_is_dead();
	assert_int_equal(process_release(&standby, &all), 0);
	assert_int_equal(standby.pid, 0);
	expect_no_child();
}

/* Its calls that fail leave our errno as it is: we may be about to read it. */
static void release__one_that_could_not_settle(void **state)
{
	struct process_program all = program("/bin/sh", "");
	struct process_place here = place();

	(void)state;
	here.stderr_fd = 1000;
	errno = 0;
	assert_int_equal(process_prepare(&standby, &here), 0);
	wait_until_it_is_dead();
	assert_int_equal(errno, 0);
	assert_int_equal(standby.birth.error, EBADF);
	assert_int_equal(process_release(&standby, &all), 0);
	expect_no_child();
	assert_int_equal(process_start(&here, &all), -EBADF);
}

/* Nothing of ours: our socket would stay bound, our pipes without an end. */
static void prepare__descriptors(void **state)
{
	char path[64], link[64];

	(void)state;
	prepare();
	wait_until_it_sleeps();
	for (int fd = 0; fd < 64; fd++) {
		ssize_t bytes;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)standby.pid,
			 fd);
		bytes = readlink(path, link, sizeof(link));
		assert_int_equal(bytes > 0, fd <= PROCESS_SECRET_FD);
	}
}

/* As we have them wait: it sees them when its program does. */
static void prepare__signals_wait(void **state)
{
	struct process_program all = program("/bin/sh", "exit 7");
	sigset_t term;
	pid_t pid;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	prepare();
	sigprocmask(SIG_UNBLOCK, &term, NULL);
	kill(standby.pid, SIGTERM);
	wait_until_it_sleeps();
	pid = process_release(&standby, &all);
	assert_true(pid > 0);
	assert_int_equal(status_of(pid), SIGTERM);
}

static void release__somebody_stopped_it(void **state)
{
	struct process_program all = program("/bin/sh", "exit 7");
	pid_t pid;

	(void)state;
	prepare();
	wait_until_it_sleeps();
	kill(standby.pid, SIGSTOP);
	pid = process_release(&standby, &all);
	assert_true(pid > 0);
	assert_int_equal(status_of(pid), 7 << 8);
}

static void prepare__dies_with_us(void **state)
{
	int told[2];
	pid_t parent, pid;

	(void)state;
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		prepare();
		wait_until_it_sleeps();
		if (write(told[1], &standby.pid, sizeof(standby.pid)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(told[0], &pid, sizeof(pid)), sizeof(pid));
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	/* We are its subreaper. */
	assert_int_equal(status_of(pid) & 0x7f, SIGKILL);
	close(told[0]);
	close(told[1]);
}

static void dismiss__is_gone(void **state)
{
	unsigned before = open_descriptors();
	pid_t pid;

	(void)state;
	process_dismiss(&standby);
	prepare();
	pid = standby.pid;
	process_dismiss(&standby);
	assert_int_equal(standby.pid, 0);
	assert_int_equal(kill(pid, 0), -1);
	expect_no_child();
	assert_int_equal(open_descriptors(), before);
}

#define PROCESS_TEST(function)                                                 \
	cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROCESS_TEST(release__runs_the_program),
		PROCESS_TEST(release__at_any_moment),
		PROCESS_TEST(release__no_program),
		PROCESS_TEST(release__there_is_none),
		PROCESS_TEST(release__one_that_could_not_settle),
		PROCESS_TEST(release__somebody_stopped_it),
		PROCESS_TEST(prepare__descriptors),
		PROCESS_TEST(prepare__signals_wait),
		PROCESS_TEST(prepare__dies_with_us),
		PROCESS_TEST(dismiss__is_gone),
	};

	process_default_signals();
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
