/*
 * world.h - hosts that run in simulated time, each a fiber with a clock
 *
 * A place of the network has one host, or several that are the CPUs of one
 * machine: the first runs what the caller starts, and the others the threads
 * that this starts.
 *
 * A host's time passes only as it spends or sleeps it.  Hosts take turns in the
 * order of their clocks: one that has spent time may be ahead of the world, and
 * before it looks at what others have done, it settles: all events up to its
 * own time occur first.  So what a host sees does not depend on the machine
 * that runs the world, and one seed gives one run.  All times are integers.
 *
 * What happens to a host's CPU besides - interruptions, a pause, its death -
 * adds to the time that it spends.
 */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "simulate/event_queue.h"
#include "simulate/fiber.h"

#define WORLD_INTERRUPTIONS_MAX 8

/* Something that takes a CPU again and again, or once. */
struct interruption {
	uint64_t next_ns;
	uint64_t length_ns;
	/* From one to the next, drawn from 1 to twice this; 0: just once. */
	uint64_t gap_ns;
};

struct virtual_network;

struct host {
	struct event turn; /* first: see take_turn() */
	struct world *world;
	unsigned number; /* of the place */
	struct fiber fiber;
	/* The world's time at this host: never before that of the world. */
	uint64_t now_ns;

	/* Set by the caller, or not, between world_init() and world_run(). */
	uint64_t clock_offset_ns; /* the host's own clock is ahead by this */
	uint64_t dies_ns;	  /* or UINT64_MAX */
	unsigned slowness;	  /* times the CPU time of others, or 1 */
	struct interruption interruptions[WORLD_INTERRUPTIONS_MAX];
	unsigned interruption_count;

	/* Private. */
	bool is_dead;
	bool waits; /* what comes ends its sleep */
	/* Which sockets that may come to, a bit for each; other CPUs of the
	 * place may wait for others.  UINT64_MAX: whatever happens. */
	uint64_t awaited;
	uint64_t wakes_ns;
	uint64_t random;
	/* A place's first CPU has these, written by virtual_calls.c: who has
	 * its lock, how many wait for it, and when it was last given away. */
	struct host *lock_holder;
	unsigned lock_waiters;
	uint64_t lock_free_ns;
};

struct world {
	struct virtual_network *network; /* NULL, or virtual_network_init() */
	struct event_queue queue;
	/* [host_count * cpu_count], the first CPUs of all places first; owned
	 */
	struct host *hosts;
	unsigned host_count; /* places */
	unsigned cpu_count;  /* of each */
	uint64_t now_ns;     /* of the event that occurs */
	uint64_t
		end_ns; /* no host may come to it; by world_init() UINT64_MAX */
	unsigned live_count; /* hosts that have neither ended nor died */
	int error;	     /* -errno: the world ends */
	/* They count all events, in the order of these. */
	uint64_t event_count, digest;
};

/* Make hosts that do nothing yet.  Returns 0 or -ENOMEM; then world_fini() is
 * to be called, too. */
int world_init(struct world *world, unsigned host_count, unsigned cpu_count,
	       size_t stack_bytes, uint64_t begin_ns, uint64_t seed);
void world_fini(struct world *world);

/* The host runs the function from at_ns on; in the world's next run, too, if it
 * is started again. */
void world_start(struct host *host, uint64_t at_ns,
		 void (*function)(void *argument), void *argument);
/* Go on until all hosts have ended or died.  Returns 0; -ETIME: one has come to
 * end_ns, or nothing can happen any more; or -ENOMEM. */
int world_run(struct world *world);
/* All hosts that have not ended die where they are.  What is started on them
 * afterwards runs until it ends by itself, to tidy up. */
void world_stop(struct world *world);

/* An event of the caller's occurs at at_ns; if there is no memory for it, the
 * world ends. */
void world_add(struct world *world, struct event *event, uint64_t at_ns);
/* Count an event in the digest: what it is, and what it is about. */
void world_note(struct world *world, uint64_t what, uint64_t about);
/* The CPU of the place, from 0. */
struct host *world_cpu(const struct world *world, unsigned number,
		       unsigned cpu);
/* Something has come to these sockets of the place, a bit for each: the CPUs
 * that wait for it sleep no longer. */
void world_wake(const struct world *world, unsigned number, uint64_t sockets);

/* --- what the code of a host calls ------------------------------------------
 */

/* NULL: no host is running. */
struct host *host_current(void);
/* Compute for this long. */
void host_spend(struct host *host, uint64_t ns);
/* Let all events occur up to the host's time. */
void host_settle(struct host *host);
/* Sleep until then, by UINT64_MAX for ever; or if it waits, until something
 * comes. */
void host_sleep(struct host *host, uint64_t until_ns, bool waits);

#endif /* WORLD_H */
