/*
 * crc32c_scalar.c - CRC-32C by tables, on any machine
 *
 * "Slicing by 8": one table look-up for each of 8 bytes, all independent, and
 * then the CRC itself is one XOR of them (Kounavis and Berry, Intel 2005).  It
 * is tested against the definition, a bit at a time.
 */
#include <pthread.h>

#include "base/base.h"
#include "kernels/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u
#define SLICES 8

/* crc_of[k][b] is what byte b followed by k zero bytes adds to the CRC.  The 8
 * KiB are computed at first use (5 us) rather than kept as 2048 numbers of
 * source. */
static uint32_t crc_of[SLICES][256];
static pthread_once_t crc_of_made = PTHREAD_ONCE_INIT;

static void make_crc_of(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
		crc_of[0][byte] = crc;
	}
	for (int k = 1; k < SLICES; k++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = crc_of[k - 1][byte];

			crc_of[k][byte] = crc >> 8 ^ crc_of[0][crc & 0xff];
		}
	}
}

static inline uint32_t crc_of_word(uint64_t word)
{
	uint32_t crc = 0;

	/* GCC 12 leaves it a loop at -O2, at half the speed. */
#pragma GCC unroll 8
	for (int byte = 0; byte < 8; byte++)
		crc ^= crc_of[7 - byte][word >> 8 * byte & 0xff];
	return crc;
}

uint32_t crc32c_scalar(uint32_t crc, const void *bytes, size_t byte_count)
{
	const uint8_t *next = bytes;

	pthread_once(&crc_of_made, make_crc_of);
	for (; byte_count >= 8; byte_count -= 8, next += 8)
		crc = crc_of_word(load_le64(next) ^ crc);
	for (; byte_count > 0; byte_count--, next++)
		crc = crc >> 8 ^ crc_of[0][(crc ^ *next) & 0xff];
	return crc;
}
