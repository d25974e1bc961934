/*
 * splitmix.h - SplitMix64 (Steele, Lea and Flood 2014): numbers drawn from a
 * seed, the same ones in all releases
 */
#ifndef SPLITMIX_H
#define SPLITMIX_H

#include <stdint.h>

/* A permutation of the 64-bit numbers: the generator's finalizer. */
static inline uint64_t splitmix_finalize(uint64_t bits)
{
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
	return bits ^ bits >> 31;
}

static inline uint64_t splitmix_next(uint64_t *state)
{
	return splitmix_finalize(*state += 0x9e3779b97f4a7c15);
}

#endif /* SPLITMIX_H */
