/*
 * crc32c_pclmul.c - four blocks side by side with PCLMULQDQ
 *
 * See crc32c_fold.h for the arithmetic.
 */
#include "kernels/crc32c.h"
#include "kernels/crc32c_fold.h"

#define BLOCK_BYTES 16
#define STRIDE_BYTES (4 * BLOCK_BYTES)

static inline __m128i load(const uint8_t *block)
{
	return _mm_loadu_si128((const __m128i *)block);
}

/* Fold block into next; k has the constants for the distance. */
static inline __m128i fold(__m128i block, __m128i k, __m128i next)
{
	return next ^ _mm_clmulepi64_si128(block, k, 0x00) ^
	       _mm_clmulepi64_si128(block, k, 0x11);
}

uint32_t crc32c_pclmul(uint32_t crc, const void *bytes, size_t byte_count)
{
	const __m128i by_stride = _mm_set_epi64x(FOLD_448, FOLD_512);
	const __m128i by_block = _mm_set_epi64x(FOLD_64, FOLD_128);
	const uint8_t *next = bytes;
	__m128i a, b, c, d;

	if (byte_count < STRIDE_BYTES)
		return crc32c_of_short(crc, next, byte_count);

	a = load(next) ^ _mm_cvtsi32_si128((int)crc);
	b = load(next + BLOCK_BYTES);
	c = load(next + 2 * BLOCK_BYTES);
	d = load(next + 3 * BLOCK_BYTES);
	next += STRIDE_BYTES;
	byte_count -= STRIDE_BYTES;
	for (; byte_count >= STRIDE_BYTES; byte_count -= STRIDE_BYTES) {
		a = fold(a, by_stride, load(next));
		b = fold(b, by_stride, load(next + BLOCK_BYTES));
		c = fold(c, by_stride, load(next + 2 * BLOCK_BYTES));
		d = fold(d, by_stride, load(next + 3 * BLOCK_BYTES));
		next += STRIDE_BYTES;
	}
	b = fold(a, by_block, b);
	c = fold(b, by_block, c);
	d = fold(c, by_block, d);
	return crc32c_of_short(crc32c_of_block(d), next, byte_count);
}
