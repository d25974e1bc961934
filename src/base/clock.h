/*
 * clock.h - the one clock of the project: CLOCK_MONOTONIC in nanoseconds
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time that is left until then, for ppoll(2); none if that has passed. */
static inline struct timespec clock_left(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return (struct timespec){
		.tv_sec = (time_t)(left_ns / 1000000000u),
		.tv_nsec = (long)(left_ns % 1000000000u),
	};
}

#endif /* CLOCK_H */
