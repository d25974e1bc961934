/*
 * checksum_pclmul.c - one record at a time with PCLMULQDQ
 *
 * See checksum_fold.h for the arithmetic.  Records don't depend on each other,
 * so the CPU overlaps them by itself.
 */
#include <immintrin.h>

#include "record/checksum.h"
#include "record/checksum_fold.h"

/* The products of one block's two words with their constants, added. */
static inline __m128i fold(const uint8_t *block, __m128i k)
{
	__m128i words = _mm_loadu_si128((const __m128i *)block);

	return _mm_xor_si128(_mm_clmulepi64_si128(words, k, 0x00),
			     _mm_clmulepi64_si128(words, k, 0x11));
}

/* The CRC in bits 64 to 95, without the ones at start and end. */
static inline __m128i reduce(__m128i t)
{
	const __m128i p = _mm_set_epi64x(FOLD_P_INVERSE, FOLD_P);
	__m128i u = _mm_clmulepi64_si128(t, p, 0x10);

	return _mm_xor_si128(t, _mm_clmulepi64_si128(u, p, 0x00));
}

static inline __m128i record_crc(const uint8_t *record)
{
	__m128i t;

	t = _mm_slli_epi64(_mm_loadu_si32(record + 96), 32);
	t ^= fold(record, _mm_set_epi64x(FOLD_K1, FOLD_K0));
	t ^= fold(record + 16, _mm_set_epi64x(FOLD_K3, FOLD_K2));
	t ^= fold(record + 32, _mm_set_epi64x(FOLD_K5, FOLD_K4));
	t ^= fold(record + 48, _mm_set_epi64x(FOLD_K7, FOLD_K6));
	t ^= fold(record + 64, _mm_set_epi64x(FOLD_K9, FOLD_K8));
	t ^= fold(record + 80, _mm_set_epi64x(FOLD_K11, FOLD_K10));
	return reduce(t);
}

uint64_t checksum_100_pclmul(const uint8_t *records, size_t record_size,
			     size_t count)
{
	const __m128i of_zeros = _mm_set_epi64x(FOLD_OF_ZEROS, 0);
	__m128i sum = _mm_setzero_si128();

	(void)record_size;
	for (; count > 0; count--, records += FOLD_RECORD_BYTES)
		sum = _mm_add_epi64(sum, record_crc(records) ^ of_zeros);
	return (uint64_t)_mm_extract_epi64(sum, 1);
}
