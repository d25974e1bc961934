/*
 * equal_keys_avx512.c - eight pairs of neighbours at a time
 */
#include <immintrin.h>

#include "kernels/equal_keys.h"

#define LANES 8

static inline __mmask8 ties_at(const uint64_t *entries, __m512i key_mask)
{
	__m512i differ = _mm512_xor_si512(_mm512_loadu_si512(entries),
					  _mm512_loadu_si512(entries + 1));

	return _mm512_testn_epi64_mask(differ, key_mask);
}

bool equal_keys_avx512(const uint64_t *entries, size_t count,
		       unsigned index_bits)
{
	const __m512i key_mask =
		_mm512_set1_epi64((long long)(UINT64_MAX << index_bits));
	__mmask8 ties = 0;
	size_t i = 0;

	if (count <= LANES)
		return equal_keys_scalar(entries, count, index_bits);
	for (; i + LANES < count; i += LANES)
		ties |= ties_at(entries + i, key_mask);
	/* The last pairs; some of them are compared twice. */
	ties |= ties_at(entries + count - LANES - 1, key_mask);
	return ties != 0;
}
