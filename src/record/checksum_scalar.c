/*
 * checksum_scalar.c - CRC-32 by tables, for any record size on any machine
 *
 * "Slicing by 16": one table look-up for each of 16 bytes, all independent, and
 * then the CRC itself is one XOR of them (Kounavis and Berry, Intel 2005).  It
 * is what the kernels of 100 bytes are tested against, and is tested itself
 * against the definition, a bit at a time.
 */
#include <pthread.h>

#include "base/base.h"
#include "record/checksum.h"

#define CRC32_POLYNOMIAL 0xedb88320u
#define SLICES 16

/* crc_of[k][b] is what byte b followed by k zero bytes adds to the CRC.  The 16
 * KiB are computed at first use (10 us) rather than kept as 4096 numbers of
 * source. */
static uint32_t crc_of[SLICES][256];
static pthread_once_t crc_of_made = PTHREAD_ONCE_INIT;

static void make_crc_of(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? CRC32_POLYNOMIAL : 0);
		crc_of[0][byte] = crc;
	}
	for (int k = 1; k < SLICES; k++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = crc_of[k - 1][byte];

			crc_of[k][byte] = crc >> 8 ^ crc_of[0][crc & 0xff];
		}
	}
}

/* Returns what the 8 bytes of a word add to the checksum, by tables 7 to 0 in
 * turn. */
static inline uint32_t crc_of_word(uint32_t tables[][256], uint64_t word)
{
	uint32_t crc = 0;

	for (int byte = 0; byte < 8; byte++)
		crc ^= tables[7 - byte][word >> 8 * byte & 0xff];
	return crc;
}

static uint32_t crc32_of(const uint8_t *bytes, size_t len_bytes)
{
	uint32_t crc = UINT32_MAX;

	for (; len_bytes >= 16; len_bytes -= 16, bytes += 16)
		crc = crc_of_word(crc_of + 8, load_le64(bytes) ^ crc) ^
		      crc_of_word(crc_of, load_le64(bytes + 8));
	if (len_bytes >= 8) {
		crc = crc_of_word(crc_of, load_le64(bytes) ^ crc);
		len_bytes -= 8;
		bytes += 8;
	}
	for (; len_bytes > 0; len_bytes--, bytes++)
		crc = crc >> 8 ^ crc_of[0][(crc ^ *bytes) & 0xff];
	return ~crc;
}

uint64_t checksum_scalar(const uint8_t *records, size_t record_size,
			 size_t count)
{
	uint64_t sum = 0;

	pthread_once(&crc_of_made, make_crc_of);
	for (; count > 0; count--, records += record_size)
		sum += crc32_of(records, record_size);
	return sum;
}
