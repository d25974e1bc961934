/* thread_pool.c - a fixed set of threads that run job after job */
#include "system/thread_pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/failure.h"
#include "system/thread.h"
#include "system/topology.h"

/* A futex sleep and wake cost 50 us and more in a virtual machine.  Workers
 * wait for the files to be opened, 0.2 to 0.3 ms, and for each other, less:
 * with 0.5 ms here instead of 0.05 a sort of 6 MB takes 4 % less. */
#define SPIN_NS 500000
/* Times that a waiting thread reads the word between two readings of the clock.
 */
#define SPINS_PER_CLOCK 64

/* --- waiting ---------------------------------------------------------------
 */

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void thread_pool_wait_while(const struct thread_pool *pool,
			    _Atomic uint32_t *word, uint32_t value)
{
	const bool spins = pool->spins;
	uint64_t end_ns = spins ? clock_now_ns() + SPIN_NS : 0;

	do {
		for (unsigned i = 0; i < SPINS_PER_CLOCK && spins; i++) {
			if (atomic_load_explicit(word, memory_order_acquire) !=
			    value)
				return;
			pause_cpu();
		}
	} while (spins && clock_now_ns() < end_ns);
	while (atomic_load_explicit(word, memory_order_acquire) == value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL,
			0);
}

/* Sleeping threads are not counted: waking none costs one system call a phase.
 */
void thread_pool_set(const struct thread_pool *pool, _Atomic uint32_t *word,
		     uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	if (pool->worker_count > 1)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL,
			NULL, 0);
}

bool thread_pool_barrier(struct thread_pool *pool, const _Atomic bool *stop_if)
{
	/* The barrier cannot end before this worker has arrived. */
	uint32_t number =
		atomic_load_explicit(&pool->barriers, memory_order_relaxed);
	uint32_t before = atomic_fetch_add_explicit(&pool->arrived, 1,
						    memory_order_acq_rel);

	if (before + 1 < pool->worker_count) {
		thread_pool_wait_while(pool, &pool->barriers, number);
		return pool->stop;
	}
	/* The last worker: its acq_rel has seen all that the others wrote. */
	pool->stop =
		stop_if && atomic_load_explicit(stop_if, memory_order_relaxed);
	atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
	thread_pool_set(pool, &pool->barriers, number + 1);
	return pool->stop;
}

/* --- the end of a job ------------------------------------------------------
 */

/*
 * A worker has finished its part of a job.  It wakes the caller only if the
 * caller sleeps and this was the job's last part: a job that the caller does
 * not wait for costs no system call.  Both sides are sequentially consistent:
 * either the caller sees the new count before it sleeps, or the worker sees
 * that the caller sleeps.
 */
static void finish_part(struct thread_pool *pool, unsigned slot)
{
	_Atomic uint32_t *finished = &pool->finished[slot];

	if ((atomic_fetch_add(finished, 1) + 1) % pool->thread_count == 0 &&
	    atomic_load(&pool->caller_sleeps))
		syscall(SYS_futex, finished, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
			0);
}

static bool is_finished(uint32_t parts, uint32_t finished)
{
	return (int32_t)(parts - finished) <= 0;
}

/* Wait until the threads have finished the first `jobs` jobs of this slot. */
static void wait_for_slot(struct thread_pool *pool, unsigned slot,
			  uint32_t jobs)
{
	uint32_t parts = jobs * pool->thread_count;
	_Atomic uint32_t *word = &pool->finished[slot];
	uint32_t finished = atomic_load(word);
	uint64_t end_ns = 0;

	if (is_finished(parts, finished))
		return;
	if (pool->spins)
		end_ns = clock_now_ns() + SPIN_NS;
	while (pool->spins && !is_finished(parts, finished) &&
	       clock_now_ns() < end_ns) {
		for (unsigned i = 0;
		     i < SPINS_PER_CLOCK && !is_finished(parts, finished);
		     i++) {
			pause_cpu();
			finished = atomic_load(word);
		}
	}
	while (!is_finished(parts, finished)) {
		atomic_store(&pool->caller_sleeps, true);
		finished = atomic_load(word);
		if (!is_finished(parts, finished))
			syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, finished,
				NULL, NULL, 0);
		atomic_store(&pool->caller_sleeps, false);
		finished = atomic_load(word);
	}
}

/* --- the threads -----------------------------------------------------------
 */

static void *worker_main(void *argument)
{
	const struct thread_pool_worker *worker = argument;
	struct thread_pool *pool = worker->pool;

	for (uint32_t number = 0;; number++) {
		struct thread_pool_job job;

		thread_pool_wait_while(pool, &pool->launched, number);
		job = pool->jobs[number % 2];
		if (job.run)
			job.run(job.context, worker->number);
		if (job.is_last)
			return NULL;
		finish_part(pool, number % 2);
	}
}

/* 0 or -errno; thread_count says how many there are then. */
static int start_threads(struct thread_pool *pool, bool pins)
{
	int error = 0;

	while (pool->thread_count + 1 < pool->worker_count) {
		struct thread_pool_worker *worker =
			&pool->workers[pool->thread_count + 1];

		error = thread_start(&worker->thread, worker_main, worker);
		if (error)
			break;
		/* The caller binds it.  A new thread that had to do so itself
		 * would first wait on the caller's CPU until the caller sleeps
		 * or is preempted. */
		if (pins)
			topology_pin_thread(worker->thread, worker->cpu);
		pool->thread_count++;
	}
	return error;
}

/* The caller's CPU is the one that it runs on already; the others' follow from
 * there. */
static void assign_cpus(struct thread_pool *pool,
			const struct topology *topology)
{
	unsigned first = topology_place_of_self(topology);

	pool->node_count = topology->node_count;
	for (unsigned i = 0; i < pool->worker_count; i++) {
		unsigned place = (first + i) % topology->cpu_count;

		pool->workers[i].pool = pool;
		pool->workers[i].number = i;
		pool->workers[i].cpu = topology->cpus[place];
		pool->workers[i].node = topology->node_of[place];
	}
}

unsigned thread_pool_size(const struct topology *topology, uint64_t wanted,
			  uint64_t task_count)
{
	if (wanted == 0)
		wanted = MIN(topology->cpu_count, THREAD_POOL_WORKERS_MAX);
	return (unsigned)MAX(MIN(wanted, task_count), 1);
}

int thread_pool_start(struct thread_pool *pool, unsigned worker_count,
		      enum thread_pool_kind kind,
		      const struct topology *topology, struct failure *failure)
{
	int error = 0;

	pool->worker_count = worker_count;
	pool->thread_count = 0;
	pool->spins = kind != THREAD_POOL_BESIDE &&
		      worker_count <= topology->cpu_count;
	assign_cpus(pool, topology);
	pool->ends = false;
	pool->pins_caller = !topology->unpinned;
	pool->stop = false;
	atomic_init(&pool->launched, 0);
	atomic_init(&pool->finished[0], 0);
	atomic_init(&pool->finished[1], 0);
	atomic_init(&pool->caller_sleeps, false);
	atomic_init(&pool->arrived, 0);
	atomic_init(&pool->barriers, 0);
	if (worker_count > 1)
		error = start_threads(pool, !topology->unpinned);
	if (error == 0)
		return 0;
	/* No worker reads worker_count before the first job. */
	if (kind == THREAD_POOL_SOME) {
		pool->worker_count = pool->thread_count + 1;
		return 0;
	}
	thread_pool_stop(pool);
	return failure_set(failure, EXIT_RESOURCES, NULL, -error,
			   "cannot start %u threads; ask for fewer",
			   worker_count);
}

void thread_pool_launch(struct thread_pool *pool, thread_pool_fn *run,
			void *context)
{
	uint32_t number =
		atomic_load_explicit(&pool->launched, memory_order_relaxed);

	if (pool->thread_count == 0)
		return;
	wait_for_slot(pool, number % 2, number / 2);
	pool->jobs[number % 2] =
		(struct thread_pool_job){ run, context, pool->ends };
	thread_pool_set(pool, &pool->launched, number + 1);
}

void thread_pool_launch_last(struct thread_pool *pool, thread_pool_fn *run,
			     void *context)
{
	pool->ends = true;
	thread_pool_launch(pool, run, context);
}

void thread_pool_wait(struct thread_pool *pool)
{
	uint32_t jobs =
		atomic_load_explicit(&pool->launched, memory_order_relaxed);

	wait_for_slot(pool, 0, jobs / 2 + jobs % 2);
	wait_for_slot(pool, 1, jobs / 2);
}

/* A lone worker stays where the scheduler wants it. */
static void pin_caller(struct thread_pool *pool)
{
	if (pool->thread_count > 0 && pool->pins_caller)
		topology_pin_self(pool->workers[0].cpu);
	pool->pins_caller = false;
}

void thread_pool_run(struct thread_pool *pool, thread_pool_fn *run,
		     void *context)
{
	thread_pool_launch(pool, run, context);
	pin_caller(pool);
	run(context, 0);
	thread_pool_wait(pool);
}

void thread_pool_run_last(struct thread_pool *pool, thread_pool_fn *run,
			  void *context)
{
	thread_pool_launch_last(pool, run, context);
	pin_caller(pool);
	run(context, 0);
	thread_pool_stop(pool);
}

void thread_pool_stop(struct thread_pool *pool)
{
	if (!pool->ends)
		thread_pool_launch_last(pool, NULL, NULL);
	for (unsigned i = 1; i <= pool->thread_count; i++)
		pthread_join(pool->workers[i].thread, NULL);
	pool->thread_count = 0;
}
