/*
 * lookup.h - the entries and the buckets of a batch of keys
 *
 * With static splitters, this is all that happens to a key between reading it
 * and storing its entry: the top bits of the key prefix (see
 * splitters.h) become an entry, and the splitters give the bucket.  It takes a
 * dozen instructions on 64 bits, for eight keys at once in a vector register.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <stdint.h>

#include "base/cpu.h"
#include "kernels/splitters.h"

/* Keys of a batch: enough to hide the latency of memory when the destinations
 * of the batch are prefetched together, few enough for these to stay in L1. */
#define LOOKUP_KEYS SEARCH_BATCH

/*
 * Sets entries[i] and buckets[i] for LOOKUP_KEYS keys.  Key i has the prefix
 * prefixes[i], and its record has the index slot + i, below 2 to the index_bits
 * (1..63).  Any value is allowed as a prefix, so that the caller may pass a
 * batch with fewer keys and ignore the other entries.  The arrays are aligned
 * to a cache line.  The splitters are static.
 */
typedef void lookup_fn(const struct splitters *splitters, unsigned index_bits,
		       uint64_t slot, const uint64_t *prefixes,
		       uint64_t *entries, uint32_t *buckets);

/* Returns the best kernel up to this level for these splitters. */
lookup_fn *lookup_kernel(enum cpu_level level,
			 const struct splitters *splitters);

lookup_fn lookup_256_scalar, lookup_256_avx2, lookup_256_avx512;
/* The vector kernels: only if ascii_factor has no more than 32 bits. */
lookup_fn lookup_95_scalar, lookup_95_avx2, lookup_95_avx512;

#endif /* LOOKUP_H */
