/*
 * tied.h - find out whether a sorted bucket has neighbours with equal key bits
 *
 * Nearly always there are none, and then the bucket needs no tie-breaking.
 */
#ifndef TIED_H
#define TIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Returns true if two neighbours agree in all bits above the index_bits
 * (1..63). Reads only the entries, of any alignment. */
typedef bool tied_fn(const uint64_t *entries, size_t count,
		     unsigned index_bits);

/* Returns the best kernel up to this level. */
tied_fn *tied_kernel(enum cpu_level level);

tied_fn tied_scalar;
#if defined(__x86_64__)
tied_fn tied_avx2, tied_avx512;
#endif

#endif /* TIED_H */
