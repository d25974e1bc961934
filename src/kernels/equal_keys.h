/*
 * equal_keys.h - find out whether a sorted bucket has neighbours with equal key
 * bits
 *
 * Nearly always there are none, and then the bucket needs no tie-breaking.
 */
#ifndef EQUAL_KEYS_H
#define EQUAL_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Returns true if two neighbours agree in all bits above the index_bits
 * (1..63). Reads only the entries, of any alignment. */
typedef bool equal_keys_fn(const uint64_t *entries, size_t count,
			   unsigned index_bits);

equal_keys_fn equal_keys_scalar, equal_keys_avx2, equal_keys_avx512;

/* Returns the best kernel up to this level. */
static inline equal_keys_fn *equal_keys_kernel(enum cpu_level level)
{
	return CPU_BEST(level, equal_keys_scalar, equal_keys_avx2,
			equal_keys_avx512);
}

#endif /* EQUAL_KEYS_H */
