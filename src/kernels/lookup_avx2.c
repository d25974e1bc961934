/*
 * lookup_avx2.c - four keys a register
 */
#include <immintrin.h>

#include "kernels/lookup.h"

#define LANES 4
#define INLINE static inline __attribute__((always_inline))

/* Returns each lane's 4 highest bytes, the first character on top, as a base-95
 * number: pairs of digits, then the pair of pairs. */
INLINE __m256i ascii_values(__m256i digits)
{
	__m256i pairs =
		_mm256_maddubs_epi16(digits, _mm256_set1_epi16(95 << 8 | 1));

	return _mm256_srli_epi64(
		_mm256_madd_epi16(pairs, _mm256_set1_epi32(95 * 95 << 16 | 1)),
		32);
}

/* False: one of the first characters is not printable, and its bucket wrong. */
INLINE bool look_up(bool ascii, const struct splitters *splitters,
		    unsigned index_bits, uint64_t slot,
		    const uint64_t *prefixes, uint64_t *entries,
		    uint32_t *buckets)
{
	const __m256i low_halves = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
	const __m256i key_mask =
		_mm256_set1_epi64x((long long)(UINT64_MAX << index_bits));
	const __m256i factor =
		_mm256_set1_epi64x(ascii ? (long long)splitters->ascii_factor
					 : splitters->bucket_count);
	__m256i slots = _mm256_add_epi64(_mm256_set1_epi64x((long long)slot),
					 _mm256_setr_epi64x(0, 1, 2, 3));
	__m256i outside = _mm256_setzero_si256();

	for (unsigned i = 0; i < LOOKUP_KEYS; i += LANES) {
		__m256i prefix =
			_mm256_load_si256((const void *)(prefixes + i));
		__m256i bucket;

		if (ascii) {
			__m256i digits =
				_mm256_sub_epi8(prefix, _mm256_set1_epi8(' '));

			outside = _mm256_or_si256(
				outside,
				_mm256_subs_epu8(digits,
						 _mm256_set1_epi8('~' - ' ')));
			bucket = _mm256_srli_epi64(
				_mm256_mul_epu32(ascii_values(digits), factor),
				40);
		} else {
			bucket = _mm256_srli_epi64(
				_mm256_mul_epu32(_mm256_srli_epi64(prefix, 32),
						 factor),
				32);
		}
		bucket = _mm256_permutevar8x32_epi32(bucket, low_halves);
		_mm_store_si128((void *)(buckets + i),
				_mm256_castsi256_si128(bucket));
		_mm256_store_si256(
			(void *)(entries + i),
			_mm256_or_si256(_mm256_and_si256(prefix, key_mask),
					slots));
		slots = _mm256_add_epi64(slots, _mm256_set1_epi64x(LANES));
	}
	return _mm256_testz_si256(
		outside, _mm256_set1_epi64x((long long)0xffffffff00000000));
}

void lookup_256_avx2(const struct splitters *splitters, unsigned index_bits,
		     uint64_t slot, const uint64_t *prefixes, uint64_t *entries,
		     uint32_t *buckets)
{
	look_up(false, splitters, index_bits, slot, prefixes, entries, buckets);
}

void lookup_95_avx2(const struct splitters *splitters, unsigned index_bits,
		    uint64_t slot, const uint64_t *prefixes, uint64_t *entries,
		    uint32_t *buckets)
{
	if (!look_up(true, splitters, index_bits, slot, prefixes, entries,
		     buckets))
		lookup_95_scalar(splitters, index_bits, slot, prefixes, entries,
				 buckets);
}
