/*
 * lookup.h - the entries and the buckets of a batch of keys
 *
 * What a key costs between being read and being put anywhere, with static
 * splitters: its window's top bits become an entry, and the splitters say which
 * bucket.  A dozen instructions on 64 bits, done for eight keys at once in a
 * vector register.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <stdint.h>

#include "base/cpu.h"
#include "kernels/splitters.h"

/* Keys of a batch: enough to cover the way to memory when their places are
 * asked for together, few enough for those to stay in L1. */
#define LOOKUP_KEYS 32

/*
 * entries[i] and buckets[i] of the key whose window is windows[i] and whose
 * record has number slot + i, for all LOOKUP_KEYS of them; slots are below 2 to
 * the index_bits (1..63).  Any window will do: what is no key gives an entry
 * that is to be ignored.  The arrays are aligned to a cache line.  The
 * splitters are static.
 */
typedef void lookup_fn(const struct splitters *splitters, unsigned index_bits,
		       uint64_t slot, const uint64_t *windows,
		       uint64_t *entries, uint32_t *buckets);

/* The kernel of this level (the best not above it) for these splitters. */
lookup_fn *lookup_kernel(enum cpu_level level,
			 const struct splitters *splitters);

lookup_fn lookup_256_scalar, lookup_95_scalar;
#if defined(__x86_64__)
/* 95: only if ascii_factor has no more than 32 bits. */
lookup_fn lookup_256_avx2, lookup_95_avx2;
lookup_fn lookup_256_avx512, lookup_95_avx512;
#endif

#endif /* LOOKUP_H */
