/*
 * thread_pool.h - a fixed set of threads that run job after job
 *
 * The caller is worker 0.  The other workers are threads, each on a CPU of its
 * own, that wait for a job from the moment they start: so their start overlaps
 * with opening files and planning.  Left alone, the scheduler may pack two
 * threads that were started together on one CPU for the whole of a short run.
 * If the topology is "unpinned", they are left to it nevertheless.  The caller
 * keeps the CPU that it runs on when it starts the pool.
 *
 * A job is a function that each worker calls once.  thread_pool_launch() lets
 * the other workers run a job while the caller goes on; thread_pool_run() lets
 * the caller take part and waits for all.  Jobs run in the order in which they
 * were launched.  Two job slots let the caller launch a job while the one
 * before it still runs.
 *
 * Waiting spins for a short while, then sleeps; where there are more workers
 * than CPUs, or another pool beside, it sleeps at once.
 *
 * Signals go to the caller: the other workers block all but those that a fault
 * of their own raises.
 *
 * The functions belong to the caller's thread unless they say otherwise.
 */
#ifndef THREAD_POOL_H
#define THREAD_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define THREAD_POOL_WORKERS_MAX 256

struct failure;
struct topology;

typedef void thread_pool_fn(void *context, unsigned worker);

struct thread_pool;

struct thread_pool_worker {
	struct thread_pool *pool;
	pthread_t thread; /* not set for worker 0 */
	unsigned number;
	uint16_t cpu;
	uint8_t node; /* place in the topology's nodes[] */
};

struct thread_pool_job {
	thread_pool_fn *run; /* NULL: nothing */
	void *context;
	bool is_last; /* the workers end after it */
};

struct thread_pool {
	unsigned worker_count; /* the caller included; stays after the end */
	unsigned node_count;   /* of the topology: see numa.h */
	unsigned thread_count; /* that have been started and not joined */
	bool ends;	       /* the last job has been launched */
	bool pins_caller;      /* the next job binds the caller to its CPU */
	struct thread_pool_worker workers[THREAD_POOL_WORKERS_MAX];
	bool spins; /* each worker has a CPU to itself */
	/* Job number n, counted from 0, is jobs[n % 2].  The caller writes it
	 * before it raises launched, and not before all workers have finished
	 * job n - 2. */
	struct thread_pool_job jobs[2];
	/* Words that threads wait on, each a pair of cache lines apart from
	 * what other threads write. */
	/* The caller raises it with each job. */
	_Alignas(128) _Atomic uint32_t launched;
	/* Each worker but the caller raises the one of its job's slot at the
	 * end of the job.  One count of all jobs would not do: a worker may be
	 * a job ahead of another. */
	_Alignas(128) _Atomic uint32_t finished[2];
	/* The caller sets it while it sleeps on finished. */
	_Atomic bool caller_sleeps;
	/* Each worker raises it when it comes to a barrier; the last one sets
	 * it back. */
	_Alignas(128) _Atomic uint32_t arrived;
	/* The last worker to come to a barrier raises it. */
	_Alignas(128) _Atomic uint32_t barriers;
	/* The answer of the last barrier; its last worker writes it before
	 * barriers. */
	bool stop;
};

/* Returns the worker_count for task_count tasks: wanted, or if that is 0 one
 * for each CPU; but at most one for each task, and at least 1. */
unsigned thread_pool_size(const struct topology *topology, uint64_t wanted,
			  uint64_t task_count);

enum thread_pool_kind {
	THREAD_POOL_ALL, /* as many workers as are wanted */
	/* The same, but it makes do with fewer workers where no more threads
	 * are allowed (pids.max of a cgroup, RLIMIT_NPROC): worker_count says
	 * how many there are. */
	THREAD_POOL_SOME,
	/* It shares its CPUs with another pool which works at the same time:
	 * its workers do not spin. */
	THREAD_POOL_BESIDE,
};

/* Start worker_count - 1 threads; worker_count is 1 to THREAD_POOL_WORKERS_MAX.
 * The pool must not move in memory.  0, or -errno with *failure filled; then no
 * thread is left. */
int thread_pool_start(struct thread_pool *pool, unsigned worker_count,
		      enum thread_pool_kind kind,
		      const struct topology *topology, struct failure *failure);

/* The other workers call run(context, worker) while the caller goes on.  Waits
 * only if two jobs are not finished yet. */
void thread_pool_launch(struct thread_pool *pool, thread_pool_fn *run,
			void *context);

/* Launch the last job: the threads end with it and wait for no other one, and
 * thread_pool_stop() need not wake them once more. */
void thread_pool_launch_last(struct thread_pool *pool, thread_pool_fn *run,
			     void *context);

/* Wait until the other workers have finished all jobs.  The caller then sees
 * what they wrote. */
void thread_pool_wait(struct thread_pool *pool);

/* Launch, call run(context, 0) as well, and wait.  The first time, the caller
 * is bound to its CPU if there are other workers. */
void thread_pool_run(struct thread_pool *pool, thread_pool_fn *run,
		     void *context);

/* Run the last job; the pool has ended then, and may be started again. */
void thread_pool_run_last(struct thread_pool *pool, thread_pool_fn *run,
			  void *context);

/* Finish all jobs and end the threads.  Safe on a zeroed pool and on one that
 * has ended. */
void thread_pool_stop(struct thread_pool *pool);

/* Wait for all workers.  Any worker calls it, within a job that the caller of
 * thread_pool_run() takes part in.  What one worker wrote before, all see
 * afterwards.  If stop_if is not NULL, the last worker to come reads *stop_if
 * and all workers get the same answer: true means that it was set and that all
 * of them must stop. */
bool thread_pool_barrier(struct thread_pool *pool, const _Atomic bool *stop_if);

/* Wait until *word, a word of the user's own, is no longer value; any worker
 * may call it.  A thread must change such a word with thread_pool_set(): a
 * plain store wakes no waiting worker.  The worker sees what the thread wrote
 * before that. */
void thread_pool_wait_while(const struct thread_pool *pool,
			    _Atomic uint32_t *word, uint32_t value);
void thread_pool_set(const struct thread_pool *pool, _Atomic uint32_t *word,
		     uint32_t value);

#endif /* THREAD_POOL_H */
