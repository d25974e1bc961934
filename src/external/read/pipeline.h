/*
 * pipeline.h - two teams of threads that hand batches to each other
 *
 * While the ordering team empties one batch, the reading team fills the next.
 * Each team has a thread that leads it: the caller leads the ordering team.
 * Where several lanes are read (lane_plan.h), each has a reading team of its
 * own, and fills batches of its own.
 *
 * The ordering team empties the oldest full batch only when the reading team is
 * going to need it: so as many records as possible stay in memory.
 */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/first_failure.h"
#include "base/stage.h"
#include "external/runs/batch.h"
#include "external/plan/lane_plan.h"
#include "system/thread_pool.h"
#include "system/topology.h"

/* The leader of the lane's reading team, with its pool of threads: fill the
 * batch.  Returns how many more of the lane will come, or PIPELINE_MORE if that
 * is not known; 0: that was its last (it may be empty); -1: the run has failed,
 * and the reason is noted. */
#define PIPELINE_MORE INT_MAX
typedef int pipeline_fill_fn(void *context, unsigned lane, struct batch *batch);

/* The leader of the ordering team: empty the batch.  False: the run has failed,
 * and the reason is noted. */
typedef bool pipeline_empty_fn(void *context, struct batch *batch);

struct pipeline_queue {
	struct batch *first;
	struct batch *last;
	unsigned count;
};

struct pipeline_run;

struct pipeline {
	/* One for the ordering team, one for each lane, and if there is one
	 * more: it does what no team should wait for. */
	struct thread_pool *leaders;
	const struct first_failure *failure;
	const struct pipeline_run *run; /* what pipeline_run() does */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Written with the lock held. */
	struct pipeline_queue free;
	struct pipeline_queue full; /* in the order in which they were filled */
	/* Batches of each lane that are still to be filled, at most. */
	int to_come[LANES_MAX];
	unsigned lanes_left; /* that have something to be filled */
	/* How long the leader of each team has waited. */
	struct stage_leader reading[LANES_MAX];
	struct stage_leader ordering;
};

/* The last leader, over and over while batches are filled: do what can be done
 * by now. */
typedef void pipeline_tidy_fn(void *context);

struct pipeline_run {
	pipeline_fill_fn *fill;
	pipeline_empty_fn *empty;
	pipeline_tidy_fn *tidy; /* NULL: nothing */
	void *context;
	unsigned lane_count; /* 1 to LANES_MAX */
	/* How many batches of each lane will come; 0: that is not known
	 * before the first.  While lanes fill their first batches, a wrong
	 * number would empty batches of other lanes. */
	int to_come[LANES_MAX];
	/* Batches that are to be free while the lanes fill others, if so many
	 * will still come; and when all has been filled. */
	unsigned free_wanted;
	unsigned free_at_end;
};

void pipeline_init(struct pipeline *pipeline, struct thread_pool *leaders,
		   const struct first_failure *failure);
void pipeline_fini(struct pipeline *pipeline);

/* The caller, between runs: put the batch behind those of the queue, or take
 * the oldest of these, NULL if there is none. */
void pipeline_put(struct pipeline_queue *queue, struct batch *batch);
struct batch *pipeline_take(struct pipeline_queue *queue);

/* Fill and empty batches until each lane has filled its last one and
 * free_at_end batches are free; the others stay full.  False: the run has
 * failed. */
bool pipeline_run(struct pipeline *pipeline, const struct pipeline_run *run);

#endif /* PIPELINE_H */
