/*
 * thread.h - threads beside the main one
 */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

/* Start a thread that keeps no more than small things on its stack.  It takes
 * no signals but those of faults: the main thread handles the others.  Returns
 * 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *argument),
		 void *argument);

#endif /* THREAD_H */
