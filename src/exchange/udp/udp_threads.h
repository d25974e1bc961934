/*
 * udp_threads.h - threads that help a rank, their lock, and what ends a sleep
 *
 * A simulation has functions of its own in place of these.
 */
#ifndef UDP_THREADS_H
#define UDP_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* The caller fills the first two. */
struct udp_thread {
	void (*work)(void *argument);
	void *argument;

	/* Private. */
	pthread_t thread;
	unsigned number; /* of a simulated one */
	bool runs;
};

/* Returns 0 or -errno; the struct must stay where it is until it is joined. */
int udp_thread_start(struct udp_thread *thread);
/* Wait until it has ended.  Safe on a thread of zeros, and twice. */
void udp_thread_join(struct udp_thread *thread);

void udp_lock_take(pthread_mutex_t *lock);
void udp_lock_give(pthread_mutex_t *lock);

/* A descriptor that ends a poll() which waits for input, until it is cleared.
 * Returns -errno if there is none. */
int udp_waker_open(void);
void udp_waker_wake(int waker);
void udp_waker_clear(int waker);
/* Safe on a negative one. */
void udp_waker_close(int waker);

#endif /* UDP_THREADS_H */
