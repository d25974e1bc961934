/*
 * crc_tables.h - reflected CRCs of 32 bits by tables, on any machine
 *
 * "Slicing by 8": one table look-up for each of 8 bytes, all independent, and
 * then the CRC itself is one XOR of them (Kounavis and Berry, Intel 2005).
 *
 * tables[k][b] is what byte b followed by k zero bytes adds to the CRC.  A KiB
 * each, the tables are computed at first use, 8 of them in 5 us, rather than
 * kept as 256 numbers of source each.
 */
#ifndef CRC_TABLES_H
#define CRC_TABLES_H

#include "base/base.h"

/* Make as many tables of this reflected polynomial. */
static inline void crc_tables_make(uint32_t tables[][256], unsigned count,
				   uint32_t polynomial)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables[0][byte] = crc;
	}
	for (unsigned k = 1; k < count; k++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t crc = tables[k - 1][byte];

			tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xff];
		}
	}
}

/* Returns what the 8 bytes of a word add to the CRC, by tables 7 to 0 in
 * turn. */
static inline uint32_t crc_tables_word(uint32_t tables[][256], uint64_t word)
{
	uint32_t crc = 0;

	/* GCC 12 leaves it a loop at -O2, at half the speed. */
#pragma GCC unroll 8
	for (int byte = 0; byte < 8; byte++)
		crc ^= tables[7 - byte][word >> 8 * byte & 0xff];
	return crc;
}

/* Continue the CRC by 8 tables. */
static inline uint32_t crc_tables_go_on(uint32_t tables[][256], uint32_t crc,
					const uint8_t *bytes, size_t byte_count)
{
	for (; byte_count >= 8; byte_count -= 8, bytes += 8)
		crc = crc_tables_word(tables, load_le64(bytes) ^ crc);
	for (; byte_count > 0; byte_count--, bytes++)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 0xff];
	return crc;
}

#endif /* CRC_TABLES_H */
