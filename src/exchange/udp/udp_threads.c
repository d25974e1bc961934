/*
 * udp_threads.c - threads, a lock and eventfd(2)
 */
#include "exchange/udp/udp_threads.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "system/thread.h"

static void *run(void *argument)
{
	struct udp_thread *thread = argument;

	thread->work(thread->argument);
	return NULL;
}

int udp_thread_start(struct udp_thread *thread)
{
	int error = thread_start(&thread->thread, run, thread);

	thread->runs = error == 0;
	return error;
}

void udp_thread_join(struct udp_thread *thread)
{
	if (thread->runs)
		pthread_join(thread->thread, NULL);
	thread->runs = false;
}

void udp_lock_take(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
}

void udp_lock_give(pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
}

int udp_waker_open(void)
{
	int waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	return waker < 0 ? -errno : waker;
}

void udp_waker_wake(int waker)
{
	(void)eventfd_write(waker, 1);
}

void udp_waker_clear(int waker)
{
	eventfd_t count;

	(void)eventfd_read(waker, &count);
}

void udp_waker_close(int waker)
{
	if (waker >= 0)
		close(waker);
}
