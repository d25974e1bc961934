#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "skip.h"
#include "system/team.h"
#include "system/topology.h"

#define MEMBERS 8
#define ROUNDS 1000

static struct team team;
static struct topology topology;
static cpu_set_t all_cpus;

/* team_run leaves the caller bound to a CPU. */
static int setup(void **state)
{
	(void)state;
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
	topology_read(&topology);
	memset(&team, 0xff, sizeof(team));
	return 0;
}

struct task {
	unsigned member_count;
	unsigned slow_member; /* sleeps before some meetings */
	/* Written by one member before a meeting, read by all after it: not
	 * atomic, so that TSan sees what the barrier orders. */
	struct {
		_Alignas(128) uint64_t value;
	} cells[MEMBERS];
	unsigned calls[MEMBERS];
	unsigned mistakes[MEMBERS];
	unsigned stop_round[MEMBERS];
	cpu_set_t cpus[MEMBERS];
	sigset_t masks[MEMBERS];
	_Atomic bool stop;
};

static void run_team(team_fn *run, struct task *task, unsigned member_count)
{
	task->member_count = member_count;
	assert_int_equal(team_start(&team, member_count, &topology), 0);
	team_run(&team, run, task);
}

/* --- team_run --------------------------------------------------------------
 */

static void note_call(void *context, unsigned member)
{
	struct task *task = context;

	task->calls[member]++;
	sched_getaffinity(0, sizeof(task->cpus[member]), &task->cpus[member]);
	pthread_sigmask(SIG_SETMASK, NULL, &task->masks[member]);
}

static void team_run__each_member_once(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= MEMBERS; count++) {
		struct task task = { 0 };

		run_team(note_call, &task, count);
		for (unsigned i = 0; i < MEMBERS; i++)
			assert_int_equal(task.calls[i], i < count);
	}
}

static void team_run__each_on_its_cpu(void **state)
{
	struct task task = { 0 };

	(void)state;
	/* On the last CPU, so that it is not the first one by chance. */
	topology_pin_self(topology.cpus[topology.cpu_count - 1]);
	run_team(note_call, &task, MEMBERS);
	for (unsigned i = 0; i < MEMBERS; i++) {
		unsigned place =
			(topology.cpu_count - 1 + i) % topology.cpu_count;

		assert_int_equal(CPU_COUNT(&task.cpus[i]), 1);
		assert_true(CPU_ISSET(topology.cpus[place], &task.cpus[i]));
	}
}

static void team_run__alone_is_not_bound(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_team(note_call, &task, 1);
	assert_true(CPU_EQUAL(&task.cpus[0], &all_cpus));
}

static void team_run__signals_go_to_the_caller(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_team(note_call, &task, 3);
	assert_false(sigismember(&task.masks[0], SIGINT));
	for (unsigned i = 1; i < 3; i++) {
		assert_true(sigismember(&task.masks[i], SIGINT));
		assert_true(sigismember(&task.masks[i], SIGTERM));
		assert_false(sigismember(&task.masks[i], SIGBUS));
		assert_false(sigismember(&task.masks[i], SIGSEGV));
	}
}

/* --- team_meet -------------------------------------------------------------
 */

/* Each writes its cell, meets, reads all, and meets again before writing. */
static void meet_often(void *context, unsigned member)
{
	struct task *task = context;

	for (unsigned round = 1; round <= ROUNDS; round++) {
		/* Longer than any waits before it sleeps. */
		if (member == task->slow_member && round % 100 == 0)
			usleep(200);
		task->cells[member].value = round * 100 + member;
		task->mistakes[member] += team_meet(&team, NULL);
		for (unsigned i = 0; i < task->member_count; i++)
			task->mistakes[member] +=
				task->cells[i].value != round * 100 + i;
		task->mistakes[member] += team_meet(&team, NULL);
	}
}

static void check_meetings(unsigned member_count)
{
	struct task task = { .slow_member = member_count / 2 };

	run_team(meet_often, &task, member_count);
	for (unsigned i = 0; i < member_count; i++)
		assert_int_equal(task.mistakes[i], 0);
}

static void team_meet__all_see_what_was_written(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= MEMBERS; count++)
		check_meetings(count);
}

static void team_meet__sleeping_only(void **state)
{
	(void)state;
	topology.cpu_count = 1;
	for (unsigned count = 2; count <= 4; count++)
		check_meetings(count);
}

/* Spinning where it does not pay must still be right. */
static void team_meet__spinning_on_one_cpu(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++)
		topology.cpus[i] = topology.cpus[0];
	topology.cpu_count = 3;
	check_meetings(3);
}

/* One member sets stop at a moment that races with the others' meetings. */
static void stop_somewhere(void *context, unsigned member)
{
	struct task *task = context;

	for (unsigned round = 0; round < 100; round++) {
		if (member == task->slow_member && round == 10)
			atomic_store(&task->stop, true);
		if (team_meet(&team, &task->stop)) {
			task->stop_round[member] = round;
			/* Not asked, so no. */
			task->mistakes[member] += team_meet(&team, NULL);
			/* Still set. */
			task->mistakes[member] +=
				!team_meet(&team, &task->stop);
			return;
		}
		/* Member 0 sets it while others may not have left yet. */
		if (task->slow_member == MEMBERS && member == 0 && round == 10)
			atomic_store(&task->stop, true);
	}
	task->stop_round[member] = UINT32_MAX;
}

static void team_meet__all_stop_in_the_same_round(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= MEMBERS; count++) {
		for (unsigned repeat = 0; repeat < 20; repeat++) {
			struct task task = { .slow_member = count - 1 };
			unsigned expected = 10;

			if (repeat % 2 == 1) {
				task.slow_member = MEMBERS;
				expected = 11;
			}
			run_team(stop_somewhere, &task, count);
			for (unsigned i = 0; i < count; i++) {
				assert_int_equal(task.stop_round[i], expected);
				assert_int_equal(task.mistakes[i], 0);
			}
		}
	}
}

static void never_stop(void *context, unsigned member)
{
	struct task *task = context;

	for (unsigned round = 0; round < 100; round++)
		task->mistakes[member] += team_meet(&team, &task->stop);
}

static void team_meet__nobody_stops(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_team(never_stop, &task, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(task.mistakes[i], 0);
}

/* --- team_start, team_dismiss ----------------------------------------------
 */

static void team_dismiss__runs_nothing(void **state)
{
	sigset_t before, after;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (unsigned count = 1; count <= MEMBERS; count++) {
		assert_int_equal(team_start(&team, count, &topology), 0);
		team_dismiss(&team);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < SIGRTMAX; i++)
		assert_int_equal(sigismember(&before, i),
				 sigismember(&after, i));
}

/* A user of our own may have few threads: the start of the others fails, and
 * those that did start are gone when team_start returns. */
static void team_start__too_many_threads(void **state)
{
	struct rlimit limit = { .rlim_cur = 4, .rlim_max = 4 };
	uid_t user = 1000000 + (uid_t)getpid();
	pid_t child;
	int status;

	(void)state;
	if (getuid() != 0)
		skip_because("needs root");
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (setrlimit(RLIMIT_NPROC, &limit) || setuid(user))
			_exit(77);
		_exit(team_start(&team, MEMBERS, &topology) == -EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_because("can't become another user here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- team_send -------------------------------------------------------------
 */

struct errand {
	_Atomic unsigned calls[MEMBERS];
	_Atomic bool goes_on;	/* until it is awaited */
	unsigned done[MEMBERS]; /* errands each member saw done when it ran */
};

static void note_errand(void *context, unsigned member)
{
	struct errand *errand = context;

	atomic_fetch_add(&errand->calls[member], 1);
	while (atomic_load(&errand->goes_on) && !team_is_awaited(&team))
		;
}

static void note_done(void *context, unsigned member)
{
	struct errand *errand = context;

	errand->done[member] = atomic_load(&errand->calls[member]);
}

static void send_and_run(struct errand *errand, unsigned count)
{
	assert_int_equal(team_start(&team, count, &topology), 0);
	assert_false(team_is_awaited(&team));
	team_send(&team, note_errand, errand);
	for (unsigned i = 1; i < count; i++)
		while (atomic_load(&errand->calls[i]) == 0)
			sched_yield();
	team_run(&team, note_done, errand);
	assert_true(count == 1 || team_is_awaited(&team));
}

static void team_send__others_once_before_they_run(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= MEMBERS; count++) {
		struct errand errand = { .goes_on = count % 2 == 0 };

		send_and_run(&errand, count);
		for (unsigned i = 0; i < MEMBERS; i++) {
			bool sent = i > 0 && i < count;

			assert_int_equal(errand.calls[i], sent);
			assert_int_equal(errand.done[i], sent);
		}
	}
}

/* The members may come to either first. */
static void team_send__run_at_once(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct errand errand = { .goes_on = true };

		assert_int_equal(team_start(&team, 3, &topology), 0);
		team_send(&team, note_errand, &errand);
		team_run(&team, note_done, &errand);
		for (unsigned i = 0; i < 3; i++)
			assert_true(errand.calls[i] <= (i > 0));
	}
}

static void team_send__and_dismiss(void **state)
{
	struct errand errand = { .goes_on = true };

	(void)state;
	assert_int_equal(team_start(&team, MEMBERS, &topology), 0);
	team_send(&team, note_errand, &errand);
	team_dismiss(&team);
	assert_int_equal(errand.calls[0], 0);
}

#define TEST(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(team_run__each_member_once),
		TEST(team_run__each_on_its_cpu),
		TEST(team_run__alone_is_not_bound),
		TEST(team_run__signals_go_to_the_caller),
		TEST(team_meet__all_see_what_was_written),
		TEST(team_meet__sleeping_only),
		TEST(team_meet__spinning_on_one_cpu),
		TEST(team_meet__all_stop_in_the_same_round),
		TEST(team_meet__nobody_stops),
		TEST(team_dismiss__runs_nothing),
		TEST(team_send__others_once_before_they_run),
		TEST(team_send__run_at_once),
		TEST(team_send__and_dismiss),
		TEST(team_start__too_many_threads),
	};

	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
