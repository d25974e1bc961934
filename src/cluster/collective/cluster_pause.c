/*
 * cluster_pause.c - what the thread that has the exchange does while it
 * waits
 */
#include "cluster/collective/cluster_pause.h"

#include <time.h>

#include "base/clock.h"

#define SLEEP_NS 500000

int cluster_pause(struct cluster_progress *progress, struct failure *failure)
{
	const struct timespec sleep = { .tv_nsec = SLEEP_NS };
	int error = exchange_serve(progress->exchange, failure);

	cluster_progress_tell(progress, clock_now_ns());
	if (error == 0)
		nanosleep(&sleep, NULL);
	return error;
}
