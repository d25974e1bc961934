/*
 * lookup_avx512.c - eight keys a register
 */
#include <immintrin.h>

#include "kernels/lookup.h"

#define LANES 8
#define INLINE static inline __attribute__((always_inline))

/* Returns each lane's 4 highest bytes, the first character on top, as a base-95
 * number: pairs of digits, then the pair of pairs. */
INLINE __m512i ascii_values(__m512i digits)
{
	__m512i pairs =
		_mm512_maddubs_epi16(digits, _mm512_set1_epi16(95 << 8 | 1));

	return _mm512_srli_epi64(
		_mm512_madd_epi16(pairs, _mm512_set1_epi32(95 * 95 << 16 | 1)),
		32);
}

/* False: one of the first characters is not printable, and its bucket wrong. */
INLINE bool look_up(bool ascii, const struct splitters *splitters,
		    unsigned index_bits, uint64_t slot,
		    const uint64_t *prefixes, uint64_t *entries,
		    uint32_t *buckets)
{
	const __m512i key_mask =
		_mm512_set1_epi64((long long)(UINT64_MAX << index_bits));
	const __m512i factor =
		_mm512_set1_epi64(ascii ? (long long)splitters->ascii_factor
					: splitters->bucket_count);
	__m512i slots =
		_mm512_add_epi64(_mm512_set1_epi64((long long)slot),
				 _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
	__mmask64 outside = 0;

	for (unsigned i = 0; i < LOOKUP_KEYS; i += LANES) {
		__m512i prefix = _mm512_load_si512(prefixes + i);
		__m512i bucket;

		if (ascii) {
			__m512i digits =
				_mm512_sub_epi8(prefix, _mm512_set1_epi8(' '));

			outside |= _mm512_cmpgt_epu8_mask(
				digits, _mm512_set1_epi8('~' - ' '));
			bucket = _mm512_srli_epi64(
				_mm512_mul_epu32(ascii_values(digits), factor),
				40);
		} else {
			bucket = _mm512_srli_epi64(
				_mm512_mul_epu32(_mm512_srli_epi64(prefix, 32),
						 factor),
				32);
		}
		_mm256_store_si256((void *)(buckets + i),
				   _mm512_cvtepi64_epi32(bucket));
		_mm512_store_si512(
			entries + i,
			_mm512_or_si512(_mm512_and_si512(prefix, key_mask),
					slots));
		slots = _mm512_add_epi64(slots, _mm512_set1_epi64(LANES));
	}
	return (outside & 0xf0f0f0f0f0f0f0f0) == 0;
}

void lookup_256_avx512(const struct splitters *splitters, unsigned index_bits,
		       uint64_t slot, const uint64_t *prefixes,
		       uint64_t *entries, uint32_t *buckets)
{
	look_up(false, splitters, index_bits, slot, prefixes, entries, buckets);
}

void lookup_95_avx512(const struct splitters *splitters, unsigned index_bits,
		      uint64_t slot, const uint64_t *prefixes,
		      uint64_t *entries, uint32_t *buckets)
{
	if (!look_up(true, splitters, index_bits, slot, prefixes, entries,
		     buckets))
		lookup_95_scalar(splitters, index_bits, slot, prefixes, entries,
				 buckets);
}
