#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "system/proctree.h"

static struct proctree tree;

/* A process that ends with this test at the latest: a case that failed leaves
 * none that would keep the log open. */
static pid_t start_program(char *const *arguments, char *const *environment)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve(arguments[0], arguments, environment);
		_exit(127);
	}
	return pid;
}

/* sh with this script and variable; it ends or lives until it is killed. */
static pid_t start(const char *script, char *variable)
{
	char *const arguments[] = { "/bin/sh", "-c", (char *)script, NULL };
	char *const environment[] = { "PATH=/usr/bin:/bin", variable, NULL };

	return start_program(arguments, environment);
}

/* It becomes sleep at once.  A shell in between would show the variable, and
 * then, while it starts sleep, no environment for a moment. */
static pid_t start_sleep(char *variable)
{
	static char *const arguments[] = { "/bin/sleep", "1000", NULL };
	char *const environment[] = { "PATH=/usr/bin:/bin", variable, NULL };

	return start_program(arguments, environment);
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	assert_int_equal(errno, ECHILD);
}

static void pause_1_ms(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Until the child has become its program. */
static void wait_for_variable(pid_t pid, const char *variable)
{
	while (!proctree_has_variable(pid, variable))
		pause_1_ms();
}

static bool is_that(const struct proctree_process *process, void *context)
{
	return process->pid == *(pid_t *)context;
}

static bool is_any(const struct proctree_process *process, void *context)
{
	(void)process;
	(void)context;
	return true;
}

/* Reap, and kill again, as a daemon does, until none is left. */
static void kill_until_gone(proctree_choice *choice, void *context)
{
	while (proctree_kill_children(&tree, choice, context) > 0) {
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		pause_1_ms();
	}
}

/* A case that failed leaves no child to the next one, which would wait for it.
 */
static int end_children(void **state)
{
	(void)state;
	kill_until_gone(is_any, NULL);
	return 0;
}

/* ThreadSanitizer gives each process a thread of its own, and lets a first
 * thread that ends wait for the others. */
static void skip_where_threads_are_added(void)
{
#ifdef __SANITIZE_THREAD__
	puts("ThreadSanitizer has threads of its own");
	skip();
#endif
}

static void read_children__living_ones(void **state)
{
	pid_t zombie = start("exit 0", "A=1");
	pid_t lives = start("exec sleep 1000", "A=1");
	siginfo_t info;

	(void)state;
	assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT),
			 0);
	proctree_read_children(&tree);
	assert_int_equal(tree.count, 1);
	assert_int_equal(tree.processes[0].pid, lives);
	assert_int_equal(tree.processes[0].parent, getpid());
	assert_int_equal(tree.processes[0].group, getpgrp());
	assert_int_equal(tree.processes[0].session, getsid(0));
	assert_true(tree.processes[0].start_ticks > 0);
	kill(lives, SIGKILL);
	reap_all();
	proctree_read_children(&tree);
	assert_int_equal(tree.count, 0);
}

static void *wait_for_signal(void *context)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
	return context;
}

/* Its first thread has ended, and another one has not. */
static void read_children__first_thread_ended(void **state)
{
	pid_t pid;

	(void)state;
	skip_where_threads_are_added();
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_for_signal, NULL);
		syscall(SYS_exit, 0);
	}
	do {
		pause_1_ms();
		proctree_read_children(&tree);
		assert_int_equal(tree.count, 1);
	} while (tree.processes[0].state != 'Z');
	assert_int_equal(tree.processes[0].pid, pid);
	assert_int_equal(tree.processes[0].thread_count, 2);
	kill(pid, SIGKILL);
	reap_all();
	proctree_read_children(&tree);
	assert_int_equal(tree.count, 0);
}

/* A name of any kind stands between the number and the rest. */
static void read_children__a_strange_name(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		prctl(PR_SET_NAME, ") Z 1 (\n");
		for (;;)
			pause();
	}
	/* It runs yet, waits for the disk, or all of us were stopped. */
	do {
		pause_1_ms();
		proctree_read_children(&tree);
		assert_int_equal(tree.count, 1);
	} while (strchr("RDT", tree.processes[0].state));
	assert_int_equal(tree.processes[0].pid, pid);
	assert_int_equal(tree.processes[0].state, 'S');
	assert_int_equal(tree.processes[0].parent, getpid());
	kill(pid, SIGKILL);
	reap_all();
}

static void has_variable__whole_only(void **state)
{
	pid_t pid = start_sleep("BLINK_JOB=abc");

	(void)state;
	wait_for_variable(pid, "BLINK_JOB=abc");
	assert_false(proctree_has_variable(pid, "BLINK_JOB=ab"));
	assert_false(proctree_has_variable(pid, "BLINK_JOB=abcd"));
	assert_false(proctree_has_variable(pid, "LINK_JOB=abc"));
	assert_false(proctree_has_variable(pid, "bin:/bin"));
	assert_true(proctree_has_variable(pid, "PATH=/usr/bin:/bin"));
	kill(pid, SIGKILL);
	reap_all();
	assert_false(proctree_has_variable(pid, "BLINK_JOB=abc"));
}

/* Behind an environment of any length, at each place relative to the pieces
 * that it is read in. */
static void has_variable__in_a_long_environment(void **state)
{
	static char filler[20000];

	(void)state;
	for (unsigned length = 8100; length < 8300; length += 7) {
		char *const arguments[] = { "/bin/sleep", "1000", NULL };
		char *const environment[] = { filler, "BLINK_JOB=abcdefgh",
					      "LAST=1", NULL };
		pid_t pid;

		memset(filler, 'x', length);
		filler[length] = '\0';
		pid = start_program(arguments, environment);
		wait_for_variable(pid, "LAST=1");
		assert_true(proctree_has_variable(pid, "BLINK_JOB=abcdefgh"));
		assert_false(proctree_has_variable(pid, "JOB=abcdefgh"));
		kill(pid, SIGKILL);
		reap_all();
	}
}

/* The chosen child with all below it, orphans included; not the other. */
static void kill_children__chosen_with_descendants(void **state)
{
	pid_t chosen = start("sleep 1001 & (sleep 1002 & sleep 1003) & "
			     "setsid sh -c 'sleep 1004 & sleep 1005' & wait",
			     "A=1");
	pid_t other = start("exec sleep 1006", "A=1");

	(void)state;
	kill_until_gone(is_that, &chosen);
	assert_int_equal(kill(other, 0), 0);
	/* Those whose parent was killed first are ours now. */
	proctree_read_children(&tree);
	for (unsigned i = 0; i < tree.count; i++)
		if (tree.processes[i].pid != other)
			kill(tree.processes[i].pid, SIGKILL);
	assert_true(tree.count >= 1);
	kill_until_gone(is_any, NULL);
	reap_all();
}

static void kill_children__that_fork(void **state)
{
	static const char script[] = "f() { if [ $1 -gt 0 ]; then f $(($1 - "
				     "1)) & f $(($1 - 1)) & fi;"
				     " exec sleep 1000; }; f 5";

	(void)state;
	start(script, "A=1");
	pause_1_ms();
	kill_until_gone(is_any, NULL);
	reap_all();
	proctree_read_children(&tree);
	assert_int_equal(tree.count, 0);
}

static void kill_marked__by_the_variable_only(void **state)
{
	pid_t marked = start_sleep("BLINK_NODE=test:1");
	pid_t stopped = start_sleep("BLINK_NODE=test:1");
	pid_t other = start_sleep("BLINK_NODE=test:11");
	int status;

	(void)state;
	wait_for_variable(marked, "BLINK_NODE=test:1");
	wait_for_variable(stopped, "BLINK_NODE=test:1");
	wait_for_variable(other, "BLINK_NODE=test:11");
	kill(stopped, SIGSTOP);
	assert_int_equal(proctree_kill_marked(&tree, "BLINK_NODE=test:1"), 2);
	assert_int_equal(waitpid(marked, &status, 0), marked);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(waitpid(stopped, &status, 0), stopped);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(proctree_kill_marked(&tree, "BLINK_NODE=test:1"), 0);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

#define TEST(name) cmocka_unit_test_teardown(name, end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(read_children__living_ones),
		TEST(read_children__first_thread_ended),
		TEST(read_children__a_strange_name),
		TEST(has_variable__whole_only),
		TEST(has_variable__in_a_long_environment),
		TEST(kill_children__chosen_with_descendants),
		TEST(kill_children__that_fork),
		TEST(kill_marked__by_the_variable_only),
	};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return 1;
	return cmocka_run_group_tests_name("proctree", tests, NULL, NULL);
}
