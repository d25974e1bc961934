/*
 * team.h - a fixed set of threads that run one function together
 *
 * The caller is member 0.  The others are started first, each on a CPU of its
 * own, and wait until team_run(), so that their start overlaps with opening
 * files and planning.  team_meet() is a barrier: whatever one member wrote
 * before it, all see after it.  It spins for a short while, then sleeps.
 */
#ifndef TEAM_H
#define TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TEAM_MEMBERS_MAX 256

struct topology;

typedef void team_fn(void *context, unsigned member);

struct team {
	unsigned member_count;
	pthread_t threads[TEAM_MEMBERS_MAX]; /* [0] is not used */
	uint16_t cpus[TEAM_MEMBERS_MAX];
	bool pinned;
	/* What the members run; written before go. */
	team_fn *run;
	void *context;
	_Alignas(128) _Atomic uint32_t go; /* 0 wait, 1 run, 2 end unused */
	_Alignas(128) _Atomic uint32_t arrived;
	_Alignas(128) _Atomic uint32_t round;
};

/* Start member_count - 1 threads.  0 or -errno (then none is left). */
int team_start(struct team *team, unsigned member_count,
	       const struct topology *topology);

/* Run run(context, member) on all members; returns when all have ended and
 * are joined.  Call once, or team_dismiss() instead. */
void team_run(struct team *team, team_fn *run, void *context);

/* End the waiting threads without running anything. */
void team_dismiss(struct team *team);

/* Within run: wait for all members.  If stop_if is not NULL, the last to arrive
 * reads *stop_if and all members get the same answer: true means that it was
 * set and that all of them must stop. */
bool team_meet(struct team *team, const _Atomic bool *stop_if);

#endif /* TEAM_H */
