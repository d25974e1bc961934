/*
 * checksum_scalar.c - CRC-32 by tables, for any record size on any machine
 *
 * 16 bytes are looked up at once.  It is what the kernels of 100 bytes are
 * tested against, and is tested itself against the definition, a bit at a time.
 */
#include <pthread.h>

#include "base/crc_tables.h"
#include "record/checksum.h"

#define CRC32_POLYNOMIAL 0xedb88320u

static uint32_t tables[16][256];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	crc_tables_make(tables, ARRAY_LEN(tables), CRC32_POLYNOMIAL);
}

static uint32_t crc32_of(const uint8_t *bytes, size_t byte_count)
{
	uint32_t crc = UINT32_MAX;

	for (; byte_count >= 16; byte_count -= 16, bytes += 16)
		crc = crc_tables_word(tables + 8, load_le64(bytes) ^ crc) ^
		      crc_tables_word(tables, load_le64(bytes + 8));
	return ~crc_tables_go_on(tables, crc, bytes, byte_count);
}

uint64_t checksum_scalar(const uint8_t *records, size_t record_size,
			 size_t count)
{
	uint64_t sum = 0;

	pthread_once(&tables_made, make_tables);
	for (; count > 0; count--, records += record_size)
		sum += crc32_of(records, record_size);
	return sum;
}
