/*
 * fiber.h - functions that have stacks of their own and take turns in one
 * thread
 *
 * The thread enters a fiber, which runs until it leaves or its function
 * returns.  musl has no makecontext(3), and glibc's swapcontext(3) makes a
 * system call for the signal mask at each switch, so the switch is a dozen
 * instructions of our own, for x86-64 and aarch64.  It keeps what the calling
 * convention has a function keep; all fibers share the thread's signal mask and
 * its rounding of floating-point numbers.
 *
 * AddressSanitizer and ThreadSanitizer are told of each switch.  Below each
 * stack lies a page that nobody may touch: a fiber that needs more than its
 * stack ends the process.
 */
#ifndef FIBER_H
#define FIBER_H

#include <stdbool.h>
#include <stddef.h>

struct fiber {
	void (*function)(void *argument);
	void *argument;
	bool ended; /* also before fiber_start() */

	/* Private. */
	void *memory; /* the guard page and the stack */
	size_t memory_bytes;
	void *own_place;    /* the stack pointer while the fiber is away */
	void *thread_place; /* that of the thread while the fiber runs */
	/* The sanitizers' names for the two. */
	void *own_shadow, *thread_shadow;
	const void *thread_bottom;
	size_t thread_bytes;
};

/* Make a stack of this size.  Returns 0 or -ENOMEM. */
int fiber_init(struct fiber *fiber, size_t stack_bytes);
void fiber_fini(struct fiber *fiber);

/* The next fiber_enter() calls the function; a fiber that was left unfinished
 * begins anew. */
void fiber_start(struct fiber *fiber, void (*function)(void *argument),
		 void *argument);

/* Run the fiber, which has not ended, until it leaves or ends. */
void fiber_enter(struct fiber *fiber);
/* Called by the fiber itself: go back to the thread, until the next
 * fiber_enter(). */
void fiber_leave(struct fiber *fiber);

#endif /* FIBER_H */
