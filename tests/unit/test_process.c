#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "descriptors.h"
#include "shell/namespace_filter.h"
#include "shell/process.h"

static int null_fd, out[2];
static const struct process_limit limits[] = { { RLIMIT_NOFILE, 321 } };

static struct process_request request(const char *path, const char *script)
{
	static const char *arguments[] = { "sh", "-c", NULL, NULL };
	static const char *const environment[] = { "NAME=value", NULL };

	arguments[2] = script;
	return (struct process_request){
		.path = path,
		.arguments = arguments,
		.environment = environment,
		.stdin_fd = null_fd,
		.stdout_fd = out[1],
		.stderr_fd = out[1],
		.secret_fd = null_fd,
		.cgroup_fd = -1,
		.limits = limits,
		.limit_count = ARRAY_LEN(limits),
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
	close(null_fd);
	close(out[0]);
	close(out[1]);
	return 0;
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

/* Runs it, and returns what it wrote; it has to end with 0. */
static const char *output_of(const struct process_request *wanted)
{
	static char text[1024];
	ssize_t bytes;

	assert_int_equal(status_of(process_start(wanted)), 0);
	bytes = read(out[0], text, sizeof(text) - 1);
	assert_true(bytes >= 0);
	text[bytes] = '\0';
	return text;
}

static void start__what_it_is_given(void **state)
{
	struct process_request wanted = request(
		"/bin/sh", "echo $NAME $(ulimit -n) $(($$ - $(ps -o pgid= $$)))"
			   "; exec ls /proc/self/fd");

	(void)state;
	/* The last descriptor is that of the folder. */
	assert_string_equal(output_of(&wanted), "value 321 0\n0\n1\n2\n3\n4\n");
}

/* None is blocked or ignored, whatever the caller blocks. */
static void start__signals(void **state)
{
	struct process_request wanted = request(
		"/bin/sh", "exec grep -E '^Sig(Blk|Ign)' /proc/self/status");
	sigset_t term, before;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	assert_string_equal(output_of(&wanted), "SigBlk:\t0000000000000000\n"
						"SigIgn:\t0000000000000000\n");
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void start__session(void **state)
{
	struct process_request wanted =
		request("/bin/sh", "echo $(($$ - $(ps -o sid= $$)))");

	(void)state;
	assert_string_not_equal(output_of(&wanted), "0\n");
	wanted.own_session = true;
	assert_string_equal(output_of(&wanted), "0\n");
}

/* Each leaves no process and no descriptor behind. */
static void start__fails(void **state)
{
	static const struct process_limit too_many_files = { RLIMIT_NOFILE,
							     UINT64_C(1)
								     << 40 };
	unsigned before = open_descriptors();
	struct process_request good = request("/bin/sh", "exit 0");
	struct {
		struct process_request wanted;
		int error;
	} cases[] = {
		{ good, ENOENT }, { good, EACCES }, { good, EBADF },
		{ good, EBADF },  { good, EPERM },
	};

	(void)state;
	cases[0].wanted.path = "/bin/none";
	cases[1].wanted.path = "/dev/null";
	cases[2].wanted.stderr_fd = 1000;
	cases[3].wanted.cgroup_fd = 1000;
	cases[4].wanted.limits = &too_many_files;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(process_start(&cases[i].wanted),
				 -cases[i].error);
		expect_no_child();
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(status_of(process_start(&good)), 0);
}

static void start__dies_with_us(void **state)
{
	struct process_request wanted = request("/bin/sh", "exec sleep 10");
	pid_t parent, pid;

	(void)state;
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		pid = process_start(&wanted);
		if (write(out[1], &pid, sizeof(pid)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(out[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(kill(pid, 0), 0);
	kill(parent, SIGKILL);
	assert_int_equal(status_of(parent), SIGKILL);
	/* We are its subreaper. */
	assert_int_equal(status_of(pid), SIGKILL);
}

/* The count has those that this test itself is under. */
static void start__no_namespaces(void **state)
{
	struct process_request wanted = request(
		"/bin/sh", "sed -n 's/^Seccomp_filters:\t//p' /proc/$$/status");
	long before = strtol(output_of(&wanted), NULL, 10);

	(void)state;
	wanted.no_namespaces = true;
	assert_int_equal(strtol(output_of(&wanted), NULL, 10), before + 1);
}

#define PROCESS_TEST(function)                                                 \
	cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROCESS_TEST(start__what_it_is_given),
		PROCESS_TEST(start__signals),
		PROCESS_TEST(start__session),
		PROCESS_TEST(start__fails),
		PROCESS_TEST(start__dies_with_us),
		PROCESS_TEST(start__no_namespaces),
	};
	int ret;

	process_default_signals();
	/* The descriptors that we were given are not ours to test. */
	syscall(SYS_close_range, 3, ~0u, /* CLOSE_RANGE_CLOEXEC */ 4);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	ret = cmocka_run_group_tests_name("process", tests, NULL, NULL);
	/* It denies clone3(), from now on. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &namespace_filter) == 0)
		ret += cmocka_run_group_tests_name("process, without clone3",
						   tests, NULL, NULL);
	return ret;
}
