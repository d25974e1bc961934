/*
 * pipeline.c - the queues of batches, and the loops of the leaders
 */
#include "external/read/pipeline.h"

#include <string.h>

#include "base/clock.h"

void pipeline_init(struct pipeline *pipeline, struct thread_pool *leaders,
		   const struct first_failure *failure)
{
	*pipeline = (struct pipeline){
		.leaders = leaders,
		.failure = failure,
	};
	pthread_mutex_init(&pipeline->lock, NULL);
	pthread_cond_init(&pipeline->changed, NULL);
}

void pipeline_fini(struct pipeline *pipeline)
{
	pthread_cond_destroy(&pipeline->changed);
	pthread_mutex_destroy(&pipeline->lock);
}

/* --- queues --------------------------------------------------------------- */

void pipeline_put(struct pipeline_queue *queue, struct batch *batch)
{
	batch->next = NULL;
	if (queue->last)
		queue->last->next = batch;
	else
		queue->first = batch;
	queue->last = batch;
	queue->count++;
}

struct batch *pipeline_take(struct pipeline_queue *queue)
{
	struct batch *batch = queue->first;

	if (!batch)
		return NULL;
	queue->first = batch->next;
	if (!queue->first)
		queue->last = NULL;
	queue->count--;
	return batch;
}

/* --- the teams ------------------------------------------------------------ */

/* The caller holds the lock, which is given up while it waits. */
static void wait(struct pipeline *pipeline, struct stage_leader *leader,
		 enum stage_cause cause)
{
	uint64_t begin_ns = clock_now_ns();

	pthread_cond_wait(&pipeline->changed, &pipeline->lock);
	stage_leader_add(leader, cause, clock_now_ns() - begin_ns);
}

static struct batch *take_to_fill(struct pipeline *pipeline, unsigned lane)
{
	struct batch *batch = NULL;

	pthread_mutex_lock(&pipeline->lock);
	while (!first_failure_stops(pipeline->failure)) {
		batch = pipeline_take(&pipeline->free);
		if (batch)
			break;
		wait(pipeline, &pipeline->reading[lane], STAGE_FOR_FILL);
	}
	if (pipeline->to_come[lane] < PIPELINE_MORE)
		pipeline->to_come[lane]--;
	/* Fewer are free: the other team may have to empty one. */
	pthread_cond_broadcast(&pipeline->changed);
	pthread_mutex_unlock(&pipeline->lock);
	return batch;
}

static void put_filled(struct pipeline *pipeline, unsigned lane,
		       struct batch *batch, int to_come)
{
	pthread_mutex_lock(&pipeline->lock);
	pipeline_put(batch->record_count > 0 ? &pipeline->full
					     : &pipeline->free,
		     batch);
	pipeline->to_come[lane] = to_come;
	pipeline->lanes_left -= to_come == 0;
	pthread_cond_broadcast(&pipeline->changed);
	pthread_mutex_unlock(&pipeline->lock);
}

/* NULL: the other teams are to see a failure. */
static void put_emptied(struct pipeline *pipeline, struct batch *batch)
{
	pthread_mutex_lock(&pipeline->lock);
	if (batch)
		pipeline_put(&pipeline->free, batch);
	pthread_cond_broadcast(&pipeline->changed);
	pthread_mutex_unlock(&pipeline->lock);
}

static void lead_reading(struct pipeline *pipeline, unsigned lane)
{
	const struct pipeline_run *run = pipeline->run;
	int more = PIPELINE_MORE;

	while (more > 0) {
		struct batch *batch = take_to_fill(pipeline, lane);

		more = batch ? run->fill(run->context, lane, batch) : -1;
		if (more >= 0)
			put_filled(pipeline, lane, batch, more);
	}
	put_emptied(pipeline, NULL);
}

/* Batches of all lanes.  The caller holds the lock. */
static unsigned count_to_come(const struct pipeline *pipeline)
{
	uint64_t count = 0;

	for (unsigned lane = 0; lane < LANES_MAX; lane++)
		count += (unsigned)pipeline->to_come[lane];
	return (unsigned)MIN(count, PIPELINE_MORE);
}

/* NULL: all that is full may stay so, or the run has failed. */
static struct batch *take_to_empty(struct pipeline *pipeline)
{
	const struct pipeline_run *run = pipeline->run;
	struct batch *batch = NULL;

	pthread_mutex_lock(&pipeline->lock);
	while (!first_failure_stops(pipeline->failure)) {
		unsigned wanted =
			MAX(run->free_at_end,
			    MIN(run->free_wanted, count_to_come(pipeline)));

		if (pipeline->free.count < wanted)
			batch = pipeline_take(&pipeline->full);
		if (batch || pipeline->lanes_left == 0)
			break;
		wait(pipeline, &pipeline->ordering, STAGE_FOR_EMPTY);
	}
	pthread_mutex_unlock(&pipeline->lock);
	return batch;
}

static void lead_ordering(struct pipeline *pipeline)
{
	const struct pipeline_run *run = pipeline->run;
	struct batch *batch;

	while ((batch = take_to_empty(pipeline)) &&
	       run->empty(run->context, batch))
		put_emptied(pipeline, batch);
	put_emptied(pipeline, NULL);
}

/* Whenever a batch has been filled, until all are. */
static void lead_tidying(struct pipeline *pipeline)
{
	const struct pipeline_run *run = pipeline->run;
	bool ends = run->tidy == NULL;

	while (!ends) {
		pthread_mutex_lock(&pipeline->lock);
		ends = pipeline->lanes_left == 0 ||
		       first_failure_stops(pipeline->failure);
		if (!ends)
			pthread_cond_wait(&pipeline->changed, &pipeline->lock);
		pthread_mutex_unlock(&pipeline->lock);
		if (!ends)
			run->tidy(run->context);
	}
}

static void lead(void *context, unsigned worker)
{
	struct pipeline *pipeline = context;
	unsigned lane_count = pipeline->run->lane_count;

	if (worker == 0)
		lead_ordering(pipeline);
	else if (worker <= lane_count)
		lead_reading(pipeline, worker - 1);
	else if (worker == lane_count + 1)
		lead_tidying(pipeline);
}

bool pipeline_run(struct pipeline *pipeline, const struct pipeline_run *run)
{
	pipeline->run = run;
	pipeline->lanes_left = run->lane_count;
	memset(pipeline->to_come, 0, sizeof(pipeline->to_come));
	for (unsigned lane = 0; lane < run->lane_count; lane++)
		pipeline->to_come[lane] = run->to_come[lane] > 0
						  ? run->to_come[lane]
						  : PIPELINE_MORE;
	thread_pool_run(pipeline->leaders, lead, pipeline);
	return !first_failure_stops(pipeline->failure);
}
