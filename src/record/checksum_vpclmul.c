/*
 * checksum_vpclmul.c - four records at a time with 512-bit VPCLMULQDQ
 *
 * See checksum_fold.h for the arithmetic.  A record is two vectors, 64 and 36
 * bytes, whose words all have their constants in two registers: four products
 * a record.  The four lanes of each of four records are then added across, so
 * that one lane holds one record, and all four are reduced together.
 */
#include <immintrin.h>

#include "record/checksum.h"
#include "record/checksum_fold.h"

#define TERNARY_XOR 0x96
#define TAIL_DWORDS 9 /* of 36 bytes */

/* Returns four lanes whose sum is the record's T (checksum_fold.h). */
static inline __m512i fold(const uint8_t *record)
{
	const __m512i k_head =
		_mm512_set_epi64(FOLD_K7, FOLD_K6, FOLD_K5, FOLD_K4, FOLD_K3,
				 FOLD_K2, FOLD_K1, FOLD_K0);
	const __m512i k_tail = _mm512_set_epi64(0, 0, 0, 1LL << 32, FOLD_K11,
						FOLD_K10, FOLD_K9, FOLD_K8);
	__m512i head = _mm512_loadu_si512(record);
	/* The load is masked, so that it reads nothing after the last record.
	 */
	__m512i tail =
		_mm512_maskz_loadu_epi32((1 << TAIL_DWORDS) - 1, record + 64);
	__m512i t;

	t = _mm512_ternarylogic_epi64(
		_mm512_clmulepi64_epi128(head, k_head, 0x00),
		_mm512_clmulepi64_epi128(head, k_head, 0x11),
		_mm512_clmulepi64_epi128(tail, k_tail, 0x00), TERNARY_XOR);
	return _mm512_xor_si512(t,
				_mm512_clmulepi64_epi128(tail, k_tail, 0x11));
}

/* a02 a13 b02 b13, where a02 is lane 0 of a added to its lane 2. */
static inline __m512i add_halves(__m512i a, __m512i b)
{
	return _mm512_xor_si512(_mm512_shuffle_i64x2(a, b, 0x44),
				_mm512_shuffle_i64x2(a, b, 0xee));
}

/* Each lane one record: the sums of the lanes of a, b, c and d. */
static inline __m512i add_lanes(__m512i a, __m512i b, __m512i c, __m512i d)
{
	__m512i ab = add_halves(a, b);
	__m512i cd = add_halves(c, d);

	return _mm512_xor_si512(_mm512_shuffle_i64x2(ab, cd, 0x88),
				_mm512_shuffle_i64x2(ab, cd, 0xdd));
}

/* CRCs in bits 64 to 95 of each lane, without the ones at start and end. */
static inline __m512i reduce(__m512i t)
{
	const __m512i p = _mm512_set4_epi64(FOLD_P_INVERSE, FOLD_P,
					    FOLD_P_INVERSE, FOLD_P);
	__m512i u = _mm512_clmulepi64_epi128(t, p, 0x10);

	return _mm512_xor_si512(t, _mm512_clmulepi64_epi128(u, p, 0x00));
}

uint64_t checksum_100_vpclmul(const uint8_t *records, size_t record_size,
			      size_t count)
{
	const __m512i of_zeros =
		_mm512_set4_epi64(FOLD_OF_ZEROS, 0, FOLD_OF_ZEROS, 0);
	__m512i sum = _mm512_setzero_si512();

	for (; count >= 4; count -= 4, records += 4 * FOLD_RECORD_BYTES) {
		__m512i t = add_lanes(fold(records),
				      fold(records + FOLD_RECORD_BYTES),
				      fold(records + 2 * FOLD_RECORD_BYTES),
				      fold(records + 3 * FOLD_RECORD_BYTES));

		/* The low halves are zero by construction, so the sum over all
		 * eight words is the sum of the CRCs. */
		sum = _mm512_add_epi64(sum, reduce(t) ^ of_zeros);
	}
	return (uint64_t)_mm512_reduce_add_epi64(sum) +
	       checksum_100_pclmul(records, record_size, count);
}
