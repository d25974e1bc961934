/*
 * tied.h - does any entry of a sorted bucket tie with its neighbour?
 *
 * Nearly always none does, and that is all that is asked of most buckets.
 */
#ifndef TIED_H
#define TIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* True if two neighbours agree in all bits above the index_bits (1..63).  Reads
 * nothing but the entries; any alignment. */
typedef bool tied_fn(const uint64_t *entries, size_t count,
		     unsigned index_bits);

/* The kernel of this level (the best not above it). */
tied_fn *tied_kernel(enum cpu_level level);

tied_fn tied_scalar;
#if defined(__x86_64__)
tied_fn tied_avx2, tied_avx512;
#endif

#endif /* TIED_H */
