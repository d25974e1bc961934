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
#include "base/failure.h"
#include "system/thread_pool.h"
#include "system/topology.h"

#define WORKERS 8
#define ROUNDS 1000

static struct thread_pool pool;
static struct topology topology;
static cpu_set_t all_cpus;

/* A run leaves the caller bound to a CPU. */
static int setup(void **state)
{
	(void)state;
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
	topology_read(&topology);
	memset(&pool, 0xff, sizeof(pool));
	return 0;
}

struct task {
	unsigned worker_count;
	unsigned slow_worker; /* sleeps before some barriers */
	/* Written by one worker before a barrier, read by all after it: not
	 * atomic, so that TSan sees what the barrier orders. */
	struct {
		_Alignas(128) uint64_t value;
	} cells[WORKERS];
	unsigned calls[WORKERS];
	unsigned mistakes[WORKERS];
	unsigned stop_round[WORKERS];
	cpu_set_t cpus[WORKERS];
	sigset_t masks[WORKERS];
	_Atomic bool stop;
};

static void start_pool(unsigned worker_count)
{
	struct failure failure;

	assert_int_equal(thread_pool_start(&pool, worker_count, THREAD_POOL_ALL,
					   &topology, &failure),
			 0);
}

static void run_once(thread_pool_fn *run, struct task *task,
		     unsigned worker_count)
{
	task->worker_count = worker_count;
	start_pool(worker_count);
	thread_pool_run_last(&pool, run, task);
}

/* --- thread_pool_run_last
 * --------------------------------------------------------------
 */

static void note_call(void *context, unsigned worker)
{
	struct task *task = context;

	task->calls[worker]++;
	sched_getaffinity(0, sizeof(task->cpus[worker]), &task->cpus[worker]);
	pthread_sigmask(SIG_SETMASK, NULL, &task->masks[worker]);
}

static void thread_pool_run_last__each_worker_once(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++) {
		struct task task = { 0 };

		run_once(note_call, &task, count);
		for (unsigned i = 0; i < WORKERS; i++)
			assert_int_equal(task.calls[i], i < count);
	}
}

static void thread_pool_run_last__each_on_its_cpu(void **state)
{
	struct task task = { 0 };

	(void)state;
	/* On the last CPU, so that it is not the first one by chance. */
	topology_pin_self(topology.cpus[topology.cpu_count - 1]);
	run_once(note_call, &task, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++) {
		unsigned place =
			(topology.cpu_count - 1 + i) % topology.cpu_count;

		assert_int_equal(CPU_COUNT(&task.cpus[i]), 1);
		assert_true(CPU_ISSET(topology.cpus[place], &task.cpus[i]));
	}
}

static void thread_pool_run_last__alone_is_not_bound(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_once(note_call, &task, 1);
	assert_true(CPU_EQUAL(&task.cpus[0], &all_cpus));
}

static void thread_pool_run_last__left_to_the_scheduler(void **state)
{
	struct task task = { 0 };

	(void)state;
	topology.unpinned = true;
	run_once(note_call, &task, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_true(CPU_EQUAL(&task.cpus[i], &all_cpus));
}

static void thread_pool_run_last__signals_go_to_the_caller(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_once(note_call, &task, 3);
	assert_false(sigismember(&task.masks[0], SIGINT));
	for (unsigned i = 1; i < 3; i++) {
		assert_true(sigismember(&task.masks[i], SIGINT));
		assert_true(sigismember(&task.masks[i], SIGTERM));
		assert_false(sigismember(&task.masks[i], SIGBUS));
		assert_false(sigismember(&task.masks[i], SIGSEGV));
	}
}

/* --- thread_pool_barrier
 * -------------------------------------------------------------
 */

/* Each worker writes its cell, comes to a barrier, reads all cells, and comes
 * to another barrier before it writes again. */
static void cross_often(void *context, unsigned worker)
{
	struct task *task = context;

	for (unsigned round = 1; round <= ROUNDS; round++) {
		/* Longer than any waits before it sleeps. */
		if (worker == task->slow_worker && round % 100 == 0)
			usleep(200);
		task->cells[worker].value = round * 100 + worker;
		task->mistakes[worker] += thread_pool_barrier(&pool, NULL);
		for (unsigned i = 0; i < task->worker_count; i++)
			task->mistakes[worker] +=
				task->cells[i].value != round * 100 + i;
		task->mistakes[worker] += thread_pool_barrier(&pool, NULL);
	}
}

static void check_barriers(unsigned worker_count)
{
	struct task task = { .slow_worker = worker_count / 2 };

	run_once(cross_often, &task, worker_count);
	for (unsigned i = 0; i < worker_count; i++)
		assert_int_equal(task.mistakes[i], 0);
}

static void thread_pool_barrier__all_see_what_was_written(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++)
		check_barriers(count);
}

static void thread_pool_barrier__sleeping_only(void **state)
{
	(void)state;
	topology.cpu_count = 1;
	for (unsigned count = 2; count <= 4; count++)
		check_barriers(count);
}

/* Spinning where it does not pay must still be right. */
static void thread_pool_barrier__spinning_on_one_cpu(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3; i++)
		topology.cpus[i] = topology.cpus[0];
	topology.cpu_count = 3;
	check_barriers(3);
}

/* One worker sets stop at a moment that races with the others' barriers. */
static void stop_somewhere(void *context, unsigned worker)
{
	struct task *task = context;

	for (unsigned round = 0; round < 100; round++) {
		if (worker == task->slow_worker && round == 10)
			atomic_store(&task->stop, true);
		if (thread_pool_barrier(&pool, &task->stop)) {
			task->stop_round[worker] = round;
			/* Not asked, so no. */
			task->mistakes[worker] +=
				thread_pool_barrier(&pool, NULL);
			/* Still set. */
			task->mistakes[worker] +=
				!thread_pool_barrier(&pool, &task->stop);
			return;
		}
		/* Worker 0 sets it while others may not have left yet. */
		if (task->slow_worker == WORKERS && worker == 0 && round == 10)
			atomic_store(&task->stop, true);
	}
	task->stop_round[worker] = UINT32_MAX;
}

static void thread_pool_barrier__all_stop_in_the_same_round(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++) {
		for (unsigned repeat = 0; repeat < 20; repeat++) {
			struct task task = { .slow_worker = count - 1 };
			unsigned expected = 10;

			if (repeat % 2 == 1) {
				task.slow_worker = WORKERS;
				expected = 11;
			}
			run_once(stop_somewhere, &task, count);
			for (unsigned i = 0; i < count; i++) {
				assert_int_equal(task.stop_round[i], expected);
				assert_int_equal(task.mistakes[i], 0);
			}
		}
	}
}

static void never_stop(void *context, unsigned worker)
{
	struct task *task = context;

	for (unsigned round = 0; round < 100; round++)
		task->mistakes[worker] +=
			thread_pool_barrier(&pool, &task->stop);
}

static void thread_pool_barrier__nothing_stops(void **state)
{
	struct task task = { 0 };

	(void)state;
	run_once(never_stop, &task, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(task.mistakes[i], 0);
}

/* --- thread_pool_start, thread_pool_stop -----------------------------------
 */

static void thread_pool_stop__runs_nothing(void **state)
{
	sigset_t before, after;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (unsigned count = 1; count <= WORKERS; count++) {
		start_pool(count);
		thread_pool_stop(&pool);
		/* A second time, as an error path may. */
		thread_pool_stop(&pool);
		assert_int_equal(pool.thread_count, 0);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int i = 1; i < SIGRTMAX; i++)
		assert_int_equal(sigismember(&before, i),
				 sigismember(&after, i));
	memset(&pool, 0, sizeof(pool));
	thread_pool_stop(&pool);
}

/* A user of our own may have few threads: the start of the others fails, and
 * those that did start are gone when thread_pool_start() returns. */
static void thread_pool_start__too_many_threads(void **state)
{
	struct rlimit limit = { .rlim_cur = 4, .rlim_max = 4 };
	uid_t user = 1000000 + (uid_t)getpid();
	struct failure failure;
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
		_exit(thread_pool_start(&pool, WORKERS, THREAD_POOL_ALL,
					&topology, &failure) == -EAGAIN &&
				      pool.thread_count == 0
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_because("can't become another user here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- job after job ---------------------------------------------------------
 */

/* Not atomic, so that TSan sees what orders them. */
struct jobs {
	uint32_t worker_count;
	struct {
		_Alignas(128) uint32_t value;
	} calls[WORKERS];
	uint32_t value; /* the caller writes it between jobs */
	unsigned mistakes[WORKERS];
	bool sleeps; /* a worker takes longer than the caller spins */
	/* Jobs wait until it is set. */
	_Atomic uint32_t gate;
};

static void check_job(void *context, unsigned worker)
{
	struct jobs *jobs = context;

	jobs->calls[worker].value++;
	jobs->mistakes[worker] += jobs->calls[worker].value != jobs->value;
	if (jobs->sleeps && worker == jobs->worker_count - 1)
		usleep(1000);
}

/* Each job sees what the caller wrote, and the caller what the jobs wrote. */
static void run_often(unsigned count, unsigned times, bool launches)
{
	struct jobs jobs = { .worker_count = count, .sleeps = times < 100 };

	start_pool(count);
	for (uint32_t i = 1; i <= times; i++) {
		jobs.value = i;
		if (launches) {
			thread_pool_launch(&pool, check_job, &jobs);
			thread_pool_wait(&pool);
		} else {
			thread_pool_run(&pool, check_job, &jobs);
		}
		for (unsigned w = 0; w < count; w++)
			assert_int_equal(jobs.calls[w].value,
					 w == 0 && launches ? 0 : i);
	}
	thread_pool_stop(&pool);
	for (unsigned w = 0; w < count; w++)
		assert_int_equal(jobs.mistakes[w], 0);
}

static void thread_pool_run__many_times(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++)
		run_often(count, 300, false);
	run_often(3, 5, false);
}

static void thread_pool_launch__many_times(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++)
		run_often(count, 300, true);
	run_often(3, 5, true);
}

static void thread_pool_wait__sleeping_only(void **state)
{
	(void)state;
	topology.cpu_count = 1;
	run_often(2, 300, true);
	run_often(4, 300, false);
}

/* Started again, it is as new. */
static void thread_pool_start__again_and_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		struct jobs jobs = { .worker_count = 3, .value = 1 };

		start_pool(3);
		if (i % 2)
			thread_pool_run(&pool, check_job, &jobs);
		else
			thread_pool_run_last(&pool, check_job, &jobs);
		if (i % 2)
			thread_pool_stop(&pool);
		for (unsigned w = 0; w < 3; w++)
			assert_int_equal(jobs.calls[w].value, 1);
	}
}

static void count_at_gate(void *context, unsigned worker)
{
	struct jobs *jobs = context;

	while (atomic_load(&jobs->gate) == 0)
		thread_pool_wait_while(&pool, &jobs->gate, 0);
	jobs->calls[worker].value++;
}

/* While the first job still runs a second one is launched, and the caller goes
 * on; the workers then do one after the other. */
static void thread_pool_launch__does_not_wait(void **state)
{
	(void)state;
	for (unsigned count = 1; count <= WORKERS; count++) {
		struct jobs jobs = { .worker_count = count };

		start_pool(count);
		thread_pool_launch(&pool, count_at_gate, &jobs);
		thread_pool_launch(&pool, count_at_gate, &jobs);
		thread_pool_set(&pool, &jobs.gate, 1);
		thread_pool_launch(&pool, count_at_gate, &jobs);
		thread_pool_run_last(&pool, count_at_gate, &jobs);
		for (unsigned w = 0; w < count; w++)
			assert_int_equal(jobs.calls[w].value, w == 0 ? 1 : 4);
	}
}

/* What was launched is done before the threads end. */
static void thread_pool_stop__finishes_the_jobs(void **state)
{
	struct jobs jobs = { .worker_count = 4, .gate = 1 };

	(void)state;
	start_pool(4);
	thread_pool_launch(&pool, count_at_gate, &jobs);
	thread_pool_launch(&pool, count_at_gate, &jobs);
	thread_pool_stop(&pool);
	for (unsigned w = 1; w < 4; w++)
		assert_int_equal(jobs.calls[w].value, 2);
}

/* Two pools at the same time do not know of each other. */
static void *run_own_pool(void *context)
{
	struct thread_pool *own = calloc(1, sizeof(*own));
	struct jobs jobs = { .worker_count = 3 };
	struct failure failure;

	(void)context;
	if (!own ||
	    thread_pool_start(own, 3, THREAD_POOL_ALL, &topology, &failure))
		return own;
	for (uint32_t i = 1; i <= 200; i++) {
		jobs.value = i;
		thread_pool_run(own, check_job, &jobs);
	}
	thread_pool_stop(own);
	free(own);
	for (unsigned w = 0; w < 3; w++)
		if (jobs.mistakes[w] || jobs.calls[w].value != 200)
			return &topology;
	return NULL;
}

static void thread_pool_run__two_pools(void **state)
{
	pthread_t threads[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, run_own_pool, NULL),
			0);
	for (unsigned i = 0; i < 2; i++) {
		void *mistake;

		pthread_join(threads[i], &mistake);
		assert_null(mistake);
	}
}

#define TEST(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(thread_pool_run_last__each_worker_once),
		TEST(thread_pool_run_last__each_on_its_cpu),
		TEST(thread_pool_run_last__alone_is_not_bound),
		TEST(thread_pool_run_last__left_to_the_scheduler),
		TEST(thread_pool_run_last__signals_go_to_the_caller),
		TEST(thread_pool_barrier__all_see_what_was_written),
		TEST(thread_pool_barrier__sleeping_only),
		TEST(thread_pool_barrier__spinning_on_one_cpu),
		TEST(thread_pool_barrier__all_stop_in_the_same_round),
		TEST(thread_pool_barrier__nothing_stops),
		TEST(thread_pool_run__many_times),
		TEST(thread_pool_run__two_pools),
		TEST(thread_pool_launch__many_times),
		TEST(thread_pool_launch__does_not_wait),
		TEST(thread_pool_wait__sleeping_only),
		TEST(thread_pool_stop__runs_nothing),
		TEST(thread_pool_stop__finishes_the_jobs),
		TEST(thread_pool_start__again_and_again),
		TEST(thread_pool_start__too_many_threads),
	};

	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
