/*
 * random.h - random numbers of a test, which SEED= draws again
 *
 * Included by one file of a program.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/splitmix.h"

static uint64_t seed, random_state;

static inline uint64_t random_next(void)
{
	return splitmix_next(&random_state);
}

/* From the environment's SEED or the time; said, so that a failure can be
 * repeated. */
static inline void random_begin(void)
{
	const char *seed_text = getenv("SEED");

	seed = seed_text ? strtoull(seed_text, NULL, 0) : (uint64_t)time(NULL);
	random_state = seed;
	printf("SEED=%llu\n", (unsigned long long)seed);
}

/* Fewer of count turns, each of which draws its own, in a program that a
 * sanitizer makes ten times slower. */
static inline unsigned turns_of(unsigned count)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	return count / 4;
#else
	return count;
#endif
}

#endif /* RANDOM_H */
