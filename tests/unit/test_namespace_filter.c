#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "shell/namespace_filter.h"
#include "skip.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* An argument that the kernel refuses by itself: what it says of it shows that
 * the filter let the call pass. */
#define BAD_FLAG 0x1

static const long namespaces[] = {
	CLONE_NEWCGROUP, CLONE_NEWIPC,	CLONE_NEWNET,  CLONE_NEWNS,
	CLONE_NEWPID,	 CLONE_NEWTIME, CLONE_NEWUSER, CLONE_NEWUTS,
};

static int error_of(long ret)
{
	return ret < 0 ? errno : 0;
}

/* Skips the test where filters are denied themselves, as QEMU's user mode does.
 */
static void set_filter(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &namespace_filter) == 0)
		return;
	skip_because("filters of system calls are not permitted");
}

static void filter__unshare(void **state)
{
	(void)state;
	set_filter();
	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++)
		assert_int_equal(error_of(syscall(SYS_unshare,
						  namespaces[i] | BAD_FLAG)),
				 EPERM);
	assert_int_equal(error_of(syscall(SYS_unshare, BAD_FLAG)), EINVAL);
	assert_int_equal(error_of(syscall(SYS_unshare, CLONE_FS)), 0);
}

/* CLONE_SIGHAND without CLONE_VM is what the kernel refuses. */
static void filter__clone(void **state)
{
	pid_t pid;

	(void)state;
	set_filter();
	for (unsigned i = 0; i < ARRAY_LEN(namespaces); i++)
		assert_int_equal(error_of(syscall(SYS_clone,
						  namespaces[i] | CLONE_SIGHAND,
						  0, 0, 0, 0)),
				 EPERM);
	assert_int_equal(
		error_of(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0)),
		EINVAL);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void filter__other_calls(void **state)
{
	(void)state;
	set_filter();
	assert_int_equal(error_of(syscall(SYS_setns, -1, 0)), EPERM);
	assert_int_equal(error_of(syscall(SYS_clone3, NULL, 0)), ENOSYS);
	assert_int_equal(error_of(syscall(SYS_getpid)), 0);
}

#ifdef __x86_64__

/* getpid() by the tables of i386 and x32, if the kernel has them. */
static void filter__other_tables(void **state)
{
	int status, ret;
	pid_t pid;

	(void)state;
	set_filter();
	pid = fork();
	if (pid == 0) {
		__asm__ volatile("int $0x80" : "=a"(ret) : "0"(20) : "memory");
		_exit(-ret);
	}
	/* The kernel without i386's table ends the process. */
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), ENOSYS);
	assert_int_equal(error_of(syscall(0x40000000 + SYS_getpid)), ENOSYS);
}

#else

static void filter__other_tables(void **state)
{
	(void)state;
	skip_because("this architecture has one table");
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter__unshare),
		cmocka_unit_test(filter__clone),
		cmocka_unit_test(filter__other_calls),
		cmocka_unit_test(filter__other_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
