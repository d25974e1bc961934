/*
 * world.c - let hosts take turns in the order of time
 */
#include "simulate/world.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/splitmix.h"

/* Threads that a host has started are no hosts. */
static _Thread_local struct host *current;

struct host *host_current(void)
{
	return current;
}

/* --- events -----------------------------------------------------------------
 */

void world_add(struct world *world, struct event *event, uint64_t at_ns)
{
	if (event_queue_add(&world->queue, event, at_ns) < 0)
		world->error = -ENOMEM;
}

void world_note(struct world *world, uint64_t what, uint64_t about)
{
	uint64_t state = world->digest ^ world->now_ns;

	state = splitmix_next(&state) ^ what;
	state = splitmix_next(&state) ^ about;
	world->digest = splitmix_next(&state);
	world->event_count++;
}

/* --- the time of a host -----------------------------------------------------
 */

/* It will not run again. */
static void stop(struct host *host)
{
	host->is_dead = true;
	for (;;)
		fiber_leave(&host->fiber);
}

static void advance(struct host *host, uint64_t now_ns)
{
	host->now_ns = now_ns;
	if (now_ns >= host->dies_ns)
		stop(host);
	if (now_ns < host->world->end_ns)
		return;
	host->world->error = -ETIME;
	stop(host);
}

static void draw_next(struct host *host, struct interruption *interruption)
{
	if (interruption->gap_ns == 0)
		interruption->next_ns = UINT64_MAX;
	else
		interruption->next_ns += 1 + splitmix_next(&host->random) %
						     (2 * interruption->gap_ns);
}

/* The end of ns of CPU time from the host's time on.  An interruption that
 * began while the host slept counts as far as it is not over. */
static uint64_t interrupted_end(struct host *host, uint64_t ns)
{
	uint64_t end_ns = host->now_ns + ns;

	for (unsigned i = 0; i < host->interruption_count; i++) {
		struct interruption *next = &host->interruptions[i];

		while (next->next_ns < end_ns) {
			uint64_t over_ns = next->next_ns + next->length_ns;

			if (next->next_ns >= host->now_ns)
				end_ns += next->length_ns;
			else if (over_ns > host->now_ns)
				end_ns += over_ns - host->now_ns;
			draw_next(host, next);
		}
	}
	return end_ns;
}

void host_spend(struct host *host, uint64_t ns)
{
	advance(host, interrupted_end(host, ns * host->slowness));
}

void host_sleep(struct host *host, uint64_t until_ns, bool waits)
{
	host->waits = waits;
	host->wakes_ns = until_ns;
	/* An event that never comes would stay in the queue. */
	if (until_ns != UINT64_MAX)
		world_add(host->world, &host->turn, until_ns);
	fiber_leave(&host->fiber);
	host->waits = false;
	advance(host, MAX(host->now_ns, host->world->now_ns));
}

void host_settle(struct host *host)
{
	if (event_queue_next_ns(&host->world->queue) <= host->now_ns)
		host_sleep(host, host->now_ns, false);
}

struct host *world_cpu(const struct world *world, unsigned number, unsigned cpu)
{
	return &world->hosts[(size_t)cpu * world->host_count + number];
}

static void wake(struct host *host)
{
	struct world *world = host->world;

	if (!host->waits || host->wakes_ns <= world->now_ns)
		return;
	host->wakes_ns = world->now_ns;
	world_add(world, &host->turn, world->now_ns);
}

void world_wake(const struct world *world, unsigned number, uint64_t sockets)
{
	for (unsigned i = 0; i < world->cpu_count; i++) {
		struct host *cpu = world_cpu(world, number, i);

		if (cpu->awaited & sockets)
			wake(cpu);
	}
}

/* --- turns -------------------------------------------------------------------
 */

static void take_turn(struct event *event)
{
	struct host *host = (struct host *)event;

	world_note(host->world, 0, host->number);
	current = host;
	fiber_enter(&host->fiber);
	current = NULL;
	host->world->live_count -= host->fiber.ended || host->is_dead;
}

int world_run(struct world *world)
{
	while (world->live_count > 0 && world->error == 0) {
		uint64_t next_ns = event_queue_next_ns(&world->queue);
		struct event *event;

		if (next_ns >= world->end_ns)
			return -ETIME;
		event = event_queue_take(&world->queue);
		world->now_ns = next_ns;
		event->occur(event);
	}
	return world->error;
}

void world_start(struct host *host, uint64_t at_ns,
		 void (*function)(void *argument), void *argument)
{
	host->now_ns = at_ns;
	host->is_dead = false;
	host->waits = false;
	host->awaited = UINT64_MAX;
	fiber_start(&host->fiber, function, argument);
	host->world->live_count++;
	world_add(host->world, &host->turn, at_ns);
}

void world_stop(struct world *world)
{
	size_t count = (size_t)world->host_count * world->cpu_count;

	for (size_t i = 0; i < count; i++) {
		struct host *host = &world->hosts[i];

		event_queue_cancel(&host->turn);
		host->is_dead = true;
		host->waits = false;
		host->dies_ns = UINT64_MAX;
		/* Who tidies up has the lock: nobody else can want it. */
		host->lock_holder = host;
		host->lock_waiters = 0;
	}
	world->end_ns = UINT64_MAX;
	world->live_count = 0;
	world->error = 0;
}

/* --- making it --------------------------------------------------------------
 */

int world_init(struct world *world, unsigned host_count, unsigned cpu_count,
	       size_t stack_bytes, uint64_t begin_ns, uint64_t seed)
{
	size_t count = (size_t)host_count * cpu_count;
	int error = 0;

	*world = (struct world){
		.hosts = calloc(count, sizeof(*world->hosts)),
		.host_count = host_count,
		.cpu_count = cpu_count,
		.now_ns = begin_ns,
		.end_ns = UINT64_MAX,
	};
	if (!world->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < count && error == 0; i++) {
		struct host *host = &world->hosts[i];

		*host = (struct host){
			.world = world,
			.number = (unsigned)(i % host_count),
			.dies_ns = UINT64_MAX,
			.slowness = 1,
			.awaited = UINT64_MAX,
			.turn = { .occur = take_turn },
			.random = splitmix_next(&seed),
		};
		error = fiber_init(&host->fiber, stack_bytes);
	}
	return error;
}

void world_fini(struct world *world)
{
	size_t count = (size_t)world->host_count * world->cpu_count;

	for (size_t i = 0; world->hosts && i < count; i++)
		fiber_fini(&world->hosts[i].fiber);
	free(world->hosts);
	event_queue_fini(&world->queue);
}
