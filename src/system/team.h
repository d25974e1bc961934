/*
 * team.h - a fixed set of threads that run one function together
 *
 * The caller is member 0.  The others are started first, each on a CPU of its
 * own, and wait until team_run(), so that their start overlaps with opening
 * files and planning.  Left alone, the scheduler may pack two members that were
 * born together on one CPU for the whole of a short run.  The caller keeps the
 * CPU that it runs on when it starts the others.
 *
 * team_meet() is a barrier: whatever one member wrote before it, all see after
 * it.  Waiting spins for a short while, then sleeps; where there are more
 * members than CPUs it sleeps at once.
 *
 * Signals go to the caller: the other members block all but those that a fault
 * of their own raises.
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

enum team_go { TEAM_WAITS, TEAM_ERRAND, TEAM_RUNS };

struct team;

struct team_seat {
	struct team *team;
	pthread_t thread; /* of seat 0 it is not set */
	unsigned member;
	uint16_t cpu;
};

struct team {
	unsigned member_count;
	struct team_seat seats[TEAM_MEMBERS_MAX];
	bool spins; /* each member has a CPU to itself */
	/* What waiting members run first; written before go. */
	team_fn *errand;
	void *errand_context;
	/* What the members run; written before go, NULL: nothing. */
	team_fn *run;
	void *context;
	/* Words that members wait on, each apart from what others write. */
	_Alignas(128) _Atomic uint32_t go; /* enum team_go */
	_Alignas(128) _Atomic uint32_t
		arrived;		      /* at the meeting of this round */
	_Alignas(128) _Atomic uint32_t round; /* meetings that have ended */
	bool stop; /* the last meeting's answer; written before round */
};

/* Start member_count - 1 threads; member_count is 1 .. TEAM_MEMBERS_MAX.  The
 * team must not move in memory.  0 or -errno (then none is left). */
int team_start(struct team *team, unsigned member_count,
	       const struct topology *topology);

/* Between start and run, at most once: the other members run errand(context,
 * member) while the caller goes on, unless team_run() is earlier.  A long
 * errand asks team_is_awaited() now and then. */
void team_send(struct team *team, team_fn *errand, void *context);

static inline bool team_is_awaited(const struct team *team)
{
	return atomic_load_explicit(&team->go, memory_order_relaxed) ==
	       TEAM_RUNS;
}

/* Run run(context, member) on all members; returns when all have ended and
 * are joined.  Call once, or team_dismiss() instead. */
void team_run(struct team *team, team_fn *run, void *context);

/* End the waiting threads without running anything. */
void team_dismiss(struct team *team);

/* Within run: wait for all members.  If stop_if is not NULL, the last to arrive
 * reads *stop_if and all members get the same answer: true means that it was
 * set and that all of them must stop. */
bool team_meet(struct team *team, const _Atomic bool *stop_if);

/* Within run: wait until *word, a word of your own, is no longer value; who
 * changes it does so by team_set().  Acquires what was written before that. */
void team_wait_while(const struct team *team, _Atomic uint32_t *word,
		     uint32_t value);
void team_set(const struct team *team, _Atomic uint32_t *word, uint32_t value);

#endif /* TEAM_H */
