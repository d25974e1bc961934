/*
 * equal_keys_avx2.c - four pairs of neighbours at a time
 */
#include <immintrin.h>

#include "kernels/equal_keys.h"

#define LANES 4

static inline __m256i ties_at(const uint64_t *entries, __m256i key_mask)
{
	__m256i differ = _mm256_xor_si256(
		_mm256_loadu_si256((const void *)entries),
		_mm256_loadu_si256((const void *)(entries + 1)));

	return _mm256_cmpeq_epi64(_mm256_and_si256(differ, key_mask),
				  _mm256_setzero_si256());
}

bool equal_keys_avx2(const uint64_t *entries, size_t count, unsigned index_bits)
{
	const __m256i key_mask =
		_mm256_set1_epi64x((long long)(UINT64_MAX << index_bits));
	__m256i ties = _mm256_setzero_si256();
	size_t i = 0;

	if (count <= LANES)
		return equal_keys_scalar(entries, count, index_bits);
	for (; i + LANES < count; i += LANES)
		ties = _mm256_or_si256(ties, ties_at(entries + i, key_mask));
	/* The last pairs; some of them are compared twice. */
	ties = _mm256_or_si256(ties,
			       ties_at(entries + count - LANES - 1, key_mask));
	return !_mm256_testz_si256(ties, ties);
}
