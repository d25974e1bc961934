/*
 * crc32c_fold.h - CRC-32C of long pieces by carry-less products
 *
 * Bit i of a little-endian integer is the coefficient of y^i, as the bytes come
 * in; P is the CRC's polynomial in that order, of degree 32 with P(0) = 1.  The
 * CRC of N bits M, continued from crc, is
 *
 *         (M + crc) * y^-N  mod P:
 *
 * crc goes into the first 32 bits, and is then forgotten.  A block A of 128
 * bits, words a and b, may be moved D bits on, into the block that stands
 * there, without changing the CRC of the whole:
 *
 *         A = a + b * y^64
 *           = (a * (y^-D mod P) + b * (y^(64-D) mod P)) * y^D   mod P
 *
 * two products of 64 by 32 bits, whose sum has less than 128.  So a piece of
 * any length folds into its last block.  Each move waits for the one before:
 * several blocks side by side, each moved over all the others, keep the
 * multiplier busy.  The last block, and what is shorter than one, is left to
 * the crc32 instruction, which has this very polynomial: 8 bytes in 3 cycles.
 *
 * Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ",
 * Intel 2009, in the bit order of the data, so that nothing is reflected.
 */
#ifndef CRC32C_FOLD_H
#define CRC32C_FOLD_H

#include <immintrin.h>

#include "base/base.h"

/* y^-D mod P, for moves by D bits; P is 0x105ec76f1. */
#define FOLD_2048 0xdcb17aa4
#define FOLD_1984 0xb9e02b86
#define FOLD_512 0x740eef02
#define FOLD_448 0x9e4addf8
#define FOLD_384 0x1c291d04
#define FOLD_320 0xddc0152b
#define FOLD_256 0x3da6d0cb
#define FOLD_192 0xba4fc28e
#define FOLD_128 0xf20c0dfe
#define FOLD_64 0x493c7d27
#define FOLD_0 0x1
#define FOLD_AHEAD_64 0xa9cdda0d /* y^64 */

/* A block whose CRC from zero is that of all before it. */
static inline uint32_t crc32c_of_block(__m128i block)
{
	uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(block));

	return (uint32_t)_mm_crc32_u64(crc,
				       (uint64_t)_mm_extract_epi64(block, 1));
}

/* Go on by the instruction alone. */
static inline uint32_t crc32c_of_short(uint32_t crc, const uint8_t *next,
				       size_t byte_count)
{
	for (; byte_count >= 8; byte_count -= 8, next += 8)
		crc = (uint32_t)_mm_crc32_u64(crc, load_le64(next));
	for (; byte_count > 0; byte_count--, next++)
		crc = _mm_crc32_u8(crc, *next);
	return crc;
}

#endif /* CRC32C_FOLD_H */
