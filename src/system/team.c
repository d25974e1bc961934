#include "system/team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/topology.h"

/* A futex sleep and wake cost 50 us and more in a virtual machine.  Members
 * wait for the files to be opened, 0.2 to 0.3 ms, and for each other, less:
 * with 0.5 ms here instead of 0.05 a sort of 6 MB takes 4 % less. */
#define SPIN_NS 500000
/* Looks between two looks at the clock. */
#define SPINS_PER_CLOCK 64

/* Members keep small things on the stack: a plain one of 8 MiB would cost its
 * page tables.  Sanitizers need more for theirs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES MIB
#else
#define STACK_BYTES (256 * KIB)
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef STACK_BYTES
#define STACK_BYTES MIB
#endif
#endif

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

/* Wait until *word is no longer value. */
static void wait_while(_Atomic uint32_t *word, uint32_t value, bool spins)
{
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

/* Sleepers are not counted: waking nobody costs a system call, once a phase. */
static void set_and_wake(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void team_wait_while(const struct team *team, _Atomic uint32_t *word,
		     uint32_t value)
{
	wait_while(word, value, team->spins);
}

void team_set(const struct team *team, _Atomic uint32_t *word, uint32_t value)
{
	if (team->member_count > 1)
		set_and_wake(word, value);
	else
		atomic_store_explicit(word, value, memory_order_release);
}

bool team_meet(struct team *team, const _Atomic bool *stop_if)
{
	/* The round can't end before this member has arrived. */
	uint32_t round =
		atomic_load_explicit(&team->round, memory_order_relaxed);
	uint32_t before = atomic_fetch_add_explicit(&team->arrived, 1,
						    memory_order_acq_rel);

	if (before + 1 < team->member_count) {
		wait_while(&team->round, round, team->spins);
		return team->stop;
	}
	/* The last: its acq_rel has seen all that the others wrote. */
	team->stop =
		stop_if && atomic_load_explicit(stop_if, memory_order_relaxed);
	atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
	if (team->member_count > 1)
		set_and_wake(&team->round, round + 1);
	return team->stop;
}

/* --- the threads -----------------------------------------------------------
 */

static void *member_main(void *argument)
{
	const struct team_seat *seat = argument;
	struct team *team = seat->team;

	wait_while(&team->go, TEAM_WAITS, team->spins);
	if (atomic_load_explicit(&team->go, memory_order_acquire) ==
	    TEAM_ERRAND) {
		team->errand(team->errand_context, seat->member);
		wait_while(&team->go, TEAM_ERRAND, team->spins);
	}
	if (team->run)
		team->run(team->context, seat->member);
	return NULL;
}

static void release(struct team *team)
{
	set_and_wake(&team->go, TEAM_RUNS);
}

static void join(struct team *team, unsigned member_count)
{
	for (unsigned i = 1; i < member_count; i++)
		pthread_join(team->seats[i].thread, NULL);
}

/* Start with all signals blocked but those of faults.  Returns how many
 * members there are then, the caller among them; *error is set if not all. */
static unsigned start_threads(struct team *team, int *error)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL,
				      SIGTRAP };
	pthread_attr_t attributes;
	sigset_t blocked, old;
	unsigned started = 1;

	*error = pthread_attr_init(&attributes);
	if (*error)
		return started;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	while (started < team->member_count && !*error) {
		struct team_seat *seat = &team->seats[started];

		*error = pthread_create(&seat->thread, &attributes, member_main,
					seat);
		if (*error)
			break;
		/* By us, not by itself: born on our CPU, it would first have to
		 * wait there until we sleep or are preempted. */
		topology_pin_thread(seat->thread, seat->cpu);
		started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

/* The caller's seat is where it runs already; the others' follow from there. */
static void assign_seats(struct team *team, const struct topology *topology)
{
	unsigned first = topology_place_of_self(topology);

	for (unsigned i = 0; i < team->member_count; i++) {
		unsigned place = (first + i) % topology->cpu_count;

		team->seats[i].team = team;
		team->seats[i].member = i;
		team->seats[i].cpu = topology->cpus[place];
	}
}

int team_start(struct team *team, unsigned member_count,
	       const struct topology *topology)
{
	unsigned started;
	int error = 0;

	team->member_count = member_count;
	team->spins = member_count <= topology->cpu_count;
	assign_seats(team, topology);
	team->run = NULL;
	team->context = NULL;
	team->stop = false;
	atomic_init(&team->go, TEAM_WAITS);
	atomic_init(&team->arrived, 0);
	atomic_init(&team->round, 0);
	if (member_count == 1)
		return 0;
	started = start_threads(team, &error);
	if (error) {
		/* There is nothing to run: they end. */
		release(team);
		join(team, started);
	}
	return -error;
}

void team_send(struct team *team, team_fn *errand, void *context)
{
	if (team->member_count == 1)
		return;
	team->errand = errand;
	team->errand_context = context;
	set_and_wake(&team->go, TEAM_ERRAND);
}

void team_run(struct team *team, team_fn *run, void *context)
{
	team->run = run;
	team->context = context;
	/* A lone member stays where the scheduler wants it. */
	if (team->member_count > 1) {
		release(team);
		topology_pin_self(team->seats[0].cpu);
	}
	run(context, 0);
	join(team, team->member_count);
}

void team_dismiss(struct team *team)
{
	release(team);
	join(team, team->member_count);
}
