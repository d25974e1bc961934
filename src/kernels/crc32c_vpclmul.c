/*
 * crc32c_vpclmul.c - sixteen blocks side by side with 512-bit VPCLMULQDQ
 *
 * See crc32c_fold.h for the arithmetic.  A vector is four blocks, which move
 * together; four vectors a step.
 */
#include "kernels/crc32c.h"
#include "kernels/crc32c_fold.h"

#define TERNARY_XOR 0x96
#define VECTOR_BYTES 64
#define STRIDE_BYTES (4 * VECTOR_BYTES)

/* Fold each block of vector into the same block of next; k has the constants
 * for the distance. */
static inline __m512i fold(__m512i vector, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(
		_mm512_clmulepi64_epi128(vector, k, 0x00),
		_mm512_clmulepi64_epi128(vector, k, 0x11), next, TERNARY_XOR);
}

static inline __m512i load(const uint8_t *vector)
{
	return _mm512_loadu_si512(vector);
}

static inline __m512i load_first(const uint8_t *vector, uint32_t crc)
{
	return load(vector) ^
	       _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc));
}

/* A vector whose CRC is that of all before it: its blocks moved into its last,
 * which is not moved but multiplied by 1 as a + b * y^64. */
static inline uint32_t crc32c_of_vector(__m512i vector)
{
	const __m512i k =
		_mm512_set_epi64(FOLD_AHEAD_64, FOLD_0, FOLD_64, FOLD_128,
				 FOLD_192, FOLD_256, FOLD_320, FOLD_384);
	__m512i moved = fold(vector, k, _mm512_setzero_si512());
	__m256i half = _mm512_castsi512_si256(moved) ^
		       _mm512_extracti64x4_epi64(moved, 1);

	return crc32c_of_block(_mm256_castsi256_si128(half) ^
			       _mm256_extracti128_si256(half, 1));
}

uint32_t crc32c_vpclmul(uint32_t crc, const void *bytes, size_t byte_count)
{
	const __m512i by_stride =
		_mm512_set4_epi64(FOLD_1984, FOLD_2048, FOLD_1984, FOLD_2048);
	const __m512i by_vector =
		_mm512_set4_epi64(FOLD_448, FOLD_512, FOLD_448, FOLD_512);
	const uint8_t *next = bytes;
	__m512i a, b, c, d;

	if (byte_count < STRIDE_BYTES)
		return crc32c_pclmul(crc, next, byte_count);

	a = load_first(next, crc);
	b = load(next + VECTOR_BYTES);
	c = load(next + 2 * VECTOR_BYTES);
	d = load(next + 3 * VECTOR_BYTES);
	next += STRIDE_BYTES;
	byte_count -= STRIDE_BYTES;
	for (; byte_count >= STRIDE_BYTES; byte_count -= STRIDE_BYTES) {
		a = fold(a, by_stride, load(next));
		b = fold(b, by_stride, load(next + VECTOR_BYTES));
		c = fold(c, by_stride, load(next + 2 * VECTOR_BYTES));
		d = fold(d, by_stride, load(next + 3 * VECTOR_BYTES));
		next += STRIDE_BYTES;
	}
	b = fold(a, by_vector, b);
	c = fold(b, by_vector, c);
	d = fold(c, by_vector, d);
	for (; byte_count >= VECTOR_BYTES; byte_count -= VECTOR_BYTES) {
		d = fold(d, by_vector, load(next));
		next += VECTOR_BYTES;
	}
	return crc32c_of_short(crc32c_of_vector(d), next, byte_count);
}
