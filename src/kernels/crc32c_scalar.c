/*
 * crc32c_scalar.c - CRC-32C by tables, on any machine
 *
 * It is tested against the definition, a bit at a time.
 */
#include <pthread.h>

#include "base/crc_tables.h"
#include "kernels/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t tables[8][256];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	crc_tables_make(tables, ARRAY_LEN(tables), CRC32C_POLYNOMIAL);
}

uint32_t crc32c_scalar(uint32_t crc, const void *bytes, size_t byte_count)
{
	pthread_once(&tables_made, make_tables);
	return crc_tables_go_on(tables, crc, bytes, byte_count);
}
