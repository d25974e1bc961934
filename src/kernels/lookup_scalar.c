/*
 * lookup_scalar.c - the plain C version, which defines lookup
 */
#include "kernels/lookup.h"

void lookup_256_scalar(const struct splitters *splitters, unsigned index_bits,
		       uint64_t slot, const uint64_t *prefixes,
		       uint64_t *entries, uint32_t *buckets)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;

	for (unsigned i = 0; i < LOOKUP_KEYS; i++) {
		buckets[i] = splitters_bucket_256(splitters, prefixes[i]);
		entries[i] = (prefixes[i] & key_mask) | (slot + i);
	}
}

void lookup_95_scalar(const struct splitters *splitters, unsigned index_bits,
		      uint64_t slot, const uint64_t *prefixes,
		      uint64_t *entries, uint32_t *buckets)
{
	const uint64_t key_mask = UINT64_MAX << index_bits;

	for (unsigned i = 0; i < LOOKUP_KEYS; i++) {
		buckets[i] = splitters_bucket_95(splitters, prefixes[i]);
		entries[i] = (prefixes[i] & key_mask) | (slot + i);
	}
}
