/*
 * clock.h - the one clock of the project: CLOCK_MONOTONIC in nanoseconds
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S ((uint64_t)1000000000)
#define NS_PER_MS ((uint64_t)1000000)

/* Any clock of clock_gettime(2). */
static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

/* The time that is left until then, for ppoll(2); none if that has passed. */
static inline struct timespec clock_left(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return (struct timespec){
		.tv_sec = (time_t)(left_ns / NS_PER_S),
		.tv_nsec = (long)(left_ns % NS_PER_S),
	};
}

#endif /* CLOCK_H */
