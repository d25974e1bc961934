/*
 * test_pipeline.c - two teams hand batches to each other, in order, to the end
 *
 * No team sorts anything here: a batch is filled with its number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "external/read/pipeline.h"
#include "random.h"

#define BATCHES_MAX 6
#define FILLS_MAX 30
/* A run that hangs is ended after so many seconds. */
#define HANGS_SECONDS 120

struct world {
	struct topology topology;
	pthread_t caller;
	struct thread_pool leaders;
	struct first_failure failure;
	struct pipeline pipeline;
	struct batch *batches; /* [batch_count] */
	unsigned batch_count;
	struct pipeline_run run;
	unsigned fills; /* batches that are to be filled */
	bool last_is_empty;
	bool counts;		     /* fill() tells how many will come */
	int fill_fails, empty_fails; /* at this call, from 0; -1: never */
	/* The reading team's, the ordering team's. */
	unsigned filled;
	unsigned emptied;
	uint64_t last_number; /* of the batch that was emptied last */
	/* Batches that each team holds. */
	_Atomic unsigned filling, emptying;
};

static struct world world;

/* --- the teams --------------------------------------------------------------
 */

static void note_failure(const char *why)
{
	struct failure failure = { .status = EXIT_WRONG };

	snprintf(failure.why, sizeof(failure.why), "%s", why);
	first_failure_note(&world.failure, &failure);
}

/* Let the other team go on, or not. */
static void dally(void)
{
	if (random_next() % 4 == 0)
		usleep(100);
}

static int fill(void *context, unsigned lane, struct batch *batch)
{
	unsigned number = world.filled;

	assert_ptr_equal(context, &world);
	assert_int_equal(lane, 0);
	assert_int_equal(atomic_fetch_add(&world.filling, 1), 0);
	if ((int)number == world.fill_fails) {
		note_failure("cannot fill");
		return -1;
	}
	world.filled++;
	if (number % 3 == 0)
		usleep(100);
	batch->record_count =
		number + 1 == world.fills && world.last_is_empty ? 0 : 1;
	batch->capacity = number + 1;
	atomic_fetch_sub(&world.filling, 1);
	if (world.counts)
		return (int)(world.fills - world.filled);
	return number + 1 < world.fills ? PIPELINE_MORE : 0;
}

static bool empty(void *context, struct batch *batch)
{
	assert_ptr_equal(context, &world);
	assert_true(pthread_equal(pthread_self(), world.caller));
	assert_int_equal(atomic_fetch_add(&world.emptying, 1), 0);
	/* The oldest one, and all after it. */
	assert_int_equal(batch->capacity, world.last_number + 1);
	assert_int_equal(batch->record_count, 1);
	if ((int)world.emptied == world.empty_fails) {
		note_failure("cannot empty");
		return false;
	}
	world.last_number = batch->capacity;
	world.emptied++;
	dally();
	atomic_fetch_sub(&world.emptying, 1);
	return true;
}

/* --- a run ------------------------------------------------------------------
 */

static void open_world(unsigned batch_count, unsigned fills)
{
	struct failure failure;

	memset(&world, 0, sizeof(world));
	world.caller = pthread_self();
	topology_read(&world.topology);
	assert_int_equal(thread_pool_start(&world.leaders, 2,
					   THREAD_POOL_BESIDE, &world.topology,
					   &failure),
			 0);
	pipeline_init(&world.pipeline, &world.leaders, &world.failure);
	world.batch_count = batch_count;
	world.fills = fills;
	world.fill_fails = world.empty_fails = -1;
	world.batches = aligned_alloc(CACHE_PAIR_BYTES,
				      batch_count * sizeof(*world.batches));
	assert_non_null(world.batches);
	memset(world.batches, 0, batch_count * sizeof(*world.batches));
	for (unsigned b = 0; b < batch_count; b++)
		pipeline_put(&world.pipeline.free, &world.batches[b]);
	world.run = (struct pipeline_run){
		.fill = fill,
		.empty = empty,
		.context = &world,
		.lane_count = 1,
		.free_wanted = 1,
		.free_at_end = 1,
	};
}

static bool run_world(void)
{
	bool good;

	alarm(HANGS_SECONDS);
	good = pipeline_run(&world.pipeline, &world.run);
	alarm(0);
	return good;
}

static void close_world(void)
{
	thread_pool_stop(&world.leaders);
	pipeline_fini(&world.pipeline);
	free(world.batches);
}

/* Every batch is free or full, and those that are full follow each other. */
static void check_queues(void)
{
	unsigned full = world.pipeline.full.count;
	unsigned free_count = world.pipeline.free.count;
	struct batch *batch;

	assert_int_equal(full + free_count, world.batch_count);
	while ((batch = pipeline_take(&world.pipeline.full))) {
		assert_int_equal(batch->capacity, ++world.last_number);
		full--;
	}
	assert_int_equal(full, 0);
	while (pipeline_take(&world.pipeline.free))
		free_count--;
	assert_int_equal(free_count, 0);
	assert_int_equal(world.last_number, world.fills - world.last_is_empty);
}

/* --- tests ------------------------------------------------------------------
 */

/* As many stay full as may, and these are the last ones. */
static void check_run(unsigned batch_count, unsigned fills,
		      unsigned free_wanted, unsigned free_at_end)
{
	unsigned full;

	open_world(batch_count, fills);
	world.last_is_empty = random_next() % 4 == 0;
	world.run.free_wanted = free_wanted;
	world.run.free_at_end = free_at_end;
	assert_true(run_world());
	assert_int_equal(world.filled, fills);
	full = fills - world.last_is_empty - world.emptied;
	assert_int_equal(world.pipeline.full.count, full);
	assert_true(world.pipeline.free.count >= free_at_end);
	check_queues();
	close_world();
}

static void pipeline_run__in_order(void **state)
{
	(void)state;
	for (unsigned batches = 2; batches <= BATCHES_MAX; batches++)
		for (unsigned fills = 1; fills <= FILLS_MAX; fills += 4) {
			unsigned wanted =
				1 + (unsigned)(random_next() % batches);
			unsigned at_end =
				1 + (unsigned)(random_next() % batches);

			check_run(batches, fills, wanted, at_end);
		}
}

/* What fits beside the batches that are wanted free is never emptied. */
static void pipeline_run__empties_only_what_must_be(void **state)
{
	(void)state;
	for (unsigned batches = 2; batches <= BATCHES_MAX; batches++)
		for (unsigned fills = 1; fills <= batches + 3; fills++) {
			unsigned must =
				fills > batches - 1 ? fills - (batches - 1) : 0;

			open_world(batches, fills);
			assert_true(run_world());
			assert_int_equal(world.emptied, must);
			check_queues();
			close_world();
		}
}

/* If it is known how many will come, none is emptied that they do not need. */
static void pipeline_run__empties_for_what_will_come(void **state)
{
	(void)state;
	for (unsigned batches = 2; batches <= BATCHES_MAX; batches++)
		for (unsigned fills = 1; fills <= batches + 3; fills++) {
			open_world(batches, fills);
			world.counts = true;
			world.run.free_wanted = 2;
			world.run.free_at_end = 0;
			assert_true(run_world());
			assert_int_equal(world.emptied,
					 fills > batches ? fills - batches : 0);
			check_queues();
			close_world();
		}
}

/* With all batches wanted, each is emptied: a merge. */
static void pipeline_run__empties_all(void **state)
{
	(void)state;
	for (unsigned batches = 2; batches <= BATCHES_MAX; batches++) {
		open_world(batches, 20);
		world.run.free_wanted = world.run.free_at_end = batches;
		assert_true(run_world());
		assert_int_equal(world.emptied, 20);
		assert_int_equal(world.pipeline.free.count, batches);
		check_queues();
		close_world();
	}
}

/* A second run begins with what the first one left. */
static void pipeline_run__again(void **state)
{
	(void)state;
	open_world(4, 6);
	assert_true(run_world());
	assert_int_equal(world.pipeline.full.count, 3);
	world.fills = 12;
	world.run.free_wanted = world.run.free_at_end = 4;
	assert_true(run_world());
	assert_int_equal(world.emptied, 12);
	check_queues();
	close_world();
}

static void check_failure(int fill_fails, int empty_fails, const char *why)
{
	struct failure failure;

	for (unsigned batches = 2; batches <= 4; batches++) {
		open_world(batches, 12);
		world.run.free_wanted = world.run.free_at_end = batches;
		world.fill_fails = fill_fails;
		world.empty_fails = empty_fails;
		assert_false(run_world());
		assert_true(first_failure_get(&world.failure, &failure) < 0);
		if (why)
			assert_string_equal(failure.why, why);
		close_world();
	}
}

static void pipeline_run__either_team_fails(void **state)
{
	(void)state;
	for (int at = 0; at < 12; at++) {
		check_failure(at, -1, "cannot fill");
		check_failure(-1, at, "cannot empty");
		check_failure(at, at / 2, NULL);
	}
}

/* --- lanes ------------------------------------------------------------------
 */

/* A fill that waits for another one waits no longer than so. */
#define MEETS_SECONDS 60

/* Each lane's own; a batch of a lane has the number lane * LANE_NUMBERS + its
 * place in the lane, from 1 on, as its capacity. */
#define LANE_NUMBERS 1000

static struct {
	unsigned fills[LANES_MAX], filled[LANES_MAX];
	uint64_t last_place[LANES_MAX]; /* that was emptied */
	_Atomic unsigned filling[LANES_MAX];
	int fails; /* this lane does, at its fill number fails_at */
	unsigned fails_at;
	_Atomic unsigned met; /* lanes that fill their first batch */
} lanes;

/* All lanes fill a batch at the same time. */
static void meet(void)
{
	atomic_fetch_add(&lanes.met, 1);
	for (unsigned i = 0; atomic_load(&lanes.met) < world.run.lane_count;
	     i++) {
		if (i == MEETS_SECONDS * 1000) {
			note_failure("the lanes do not meet");
			break;
		}
		usleep(1000);
	}
}

static int fill_lane(void *context, unsigned lane, struct batch *batch)
{
	unsigned number = lanes.filled[lane];

	assert_ptr_equal(context, &world);
	assert_in_range(lane, 0, world.run.lane_count - 1);
	assert_int_equal(atomic_fetch_add(&lanes.filling[lane], 1), 0);
	if (number == 0)
		meet();
	if ((int)lane == lanes.fails && number == lanes.fails_at) {
		note_failure("cannot fill");
		return -1;
	}
	lanes.filled[lane]++;
	usleep((useconds_t)(lane * number % 4) * 50);
	batch->record_count = 1;
	batch->capacity = lane * LANE_NUMBERS + number + 1;
	atomic_fetch_sub(&lanes.filling[lane], 1);
	return (int)(lanes.fills[lane] - number - 1);
}

/* Those of one lane in their order. */
static void note_place(const struct batch *batch)
{
	uint64_t lane = batch->capacity / LANE_NUMBERS;
	uint64_t place = batch->capacity % LANE_NUMBERS;

	assert_int_equal(place, lanes.last_place[lane] + 1);
	lanes.last_place[lane] = place;
}

static bool empty_any(void *context, struct batch *batch)
{
	assert_ptr_equal(context, &world);
	assert_true(pthread_equal(pthread_self(), world.caller));
	if ((int)world.emptied == world.empty_fails) {
		note_failure("cannot empty");
		return false;
	}
	note_place(batch);
	world.emptied++;
	dally();
	return true;
}

/* Returns how many batches all lanes together have. */
static unsigned open_lanes(unsigned lane_count, unsigned batch_count)
{
	unsigned fills = 0;

	open_world(batch_count, 0);
	thread_pool_stop(&world.leaders);
	assert_int_equal(thread_pool_start(&world.leaders, lane_count + 2,
					   THREAD_POOL_BESIDE, &world.topology,
					   &(struct failure){ 0 }),
			 0);
	memset(&lanes, 0, sizeof(lanes));
	lanes.fails = -1;
	for (unsigned lane = 0; lane < lane_count; lane++) {
		lanes.fills[lane] = 1 + (unsigned)(random_next() % FILLS_MAX);
		fills += lanes.fills[lane];
		world.run.to_come[lane] = (int)lanes.fills[lane];
	}
	world.run.fill = fill_lane;
	world.run.empty = empty_any;
	world.run.lane_count = lane_count;
	world.run.free_wanted = lane_count + 1;
	return fills;
}

/* All lanes fill side by side, and as many batches stay full as may. */
static void pipeline_run__lanes_side_by_side(void **state)
{
	(void)state;
	for (unsigned lane_count = 1; lane_count <= LANES_MAX; lane_count++)
		for (unsigned more = 1; more <= 4; more++) {
			unsigned batch_count = lane_count + more;
			unsigned fills = open_lanes(lane_count, batch_count);
			unsigned full;
			struct batch *batch;

			assert_true(run_world());
			assert_int_equal(lanes.met, lane_count);
			full = world.pipeline.full.count;
			assert_int_equal(world.emptied + full, fills);
			assert_int_equal(full, MIN(fills, batch_count - 1));
			while ((batch = pipeline_take(&world.pipeline.full)))
				note_place(batch);
			for (unsigned lane = 0; lane < lane_count; lane++)
				assert_int_equal(lanes.last_place[lane],
						 lanes.fills[lane]);
			close_world();
		}
}

/* The last lane's only batch takes longer than all of the first lane. */
static int fill_late(void *context, unsigned lane, struct batch *batch)
{
	assert_ptr_equal(context, &world);
	for (unsigned i = 0; lane == 1 && atomic_load(&lanes.met) < 3; i++) {
		if (i == MEETS_SECONDS * 1000) {
			note_failure("the other lane does not end");
			return -1;
		}
		usleep(1000);
	}
	if (lane == 0)
		usleep(1000);
	batch->record_count = 1;
	return lane == 1 ? 0 : 2 - (int)atomic_fetch_add(&lanes.met, 1);
}

/* How many will come is known before: what has room is not emptied. */
static void pipeline_run__keeps_what_has_room(void **state)
{
	(void)state;
	open_lanes(2, 5);
	world.run.fill = fill_late;
	world.run.to_come[0] = 3;
	world.run.to_come[1] = 1;
	assert_true(run_world());
	assert_int_equal(world.emptied, 0);
	assert_int_equal(world.pipeline.full.count, 4);
	close_world();
}

/* If one lane fails, or the other team, all others end. */
static void pipeline_run__lane_fails(void **state)
{
	(void)state;
	for (int turn = 0; turn < 60; turn++) {
		unsigned lane_count = 2 + (unsigned)turn % 3;
		struct failure failure;

		open_lanes(lane_count, lane_count + 1 + (unsigned)turn % 2);
		if (turn % 4 == 0) {
			lanes.fills[0] = world.batch_count + 5;
			world.run.to_come[0] = (int)lanes.fills[0];
			world.empty_fails = turn % 3;
		} else {
			lanes.fails = turn % (int)lane_count;
			lanes.fills[lanes.fails] = FILLS_MAX;
			world.run.to_come[lanes.fails] = FILLS_MAX;
			lanes.fails_at = (unsigned)turn % FILLS_MAX;
		}
		assert_false(run_world());
		assert_true(first_failure_get(&world.failure, &failure) < 0);
		assert_string_equal(failure.why, turn % 4 == 0 ? "cannot empty"
							       : "cannot fill");
		close_world();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipeline_run__in_order),
		cmocka_unit_test(pipeline_run__empties_only_what_must_be),
		cmocka_unit_test(pipeline_run__empties_for_what_will_come),
		cmocka_unit_test(pipeline_run__empties_all),
		cmocka_unit_test(pipeline_run__again),
		cmocka_unit_test(pipeline_run__either_team_fails),
		cmocka_unit_test(pipeline_run__lanes_side_by_side),
		cmocka_unit_test(pipeline_run__keeps_what_has_room),
		cmocka_unit_test(pipeline_run__lane_fails),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
