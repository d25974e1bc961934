/*
 * gather_scalar.c - the plain C version, which defines gather, for any record
 * size
 */
#include "kernels/gather.h"
#include "kernels/gather_impl.h"

GATHER_INLINE void copy_bytes(uint8_t *target, const uint8_t *record,
			      size_t record_size)
{
	memcpy(target, record, record_size);
}

/* A record of half to all of 16, 32 or 64 bytes by two moves, which overlap. */
GATHER_INLINE void copy_to_16(uint8_t *target, const uint8_t *record,
			      size_t record_size)
{
	memcpy(target, record, 8);
	memcpy(target + record_size - 8, record + record_size - 8, 8);
}

GATHER_INLINE void copy_to_32(uint8_t *target, const uint8_t *record,
			      size_t record_size)
{
	memcpy(target, record, 16);
	memcpy(target + record_size - 16, record + record_size - 16, 16);
}

GATHER_INLINE void copy_to_64(uint8_t *target, const uint8_t *record,
			      size_t record_size)
{
	memcpy(target, record, 32);
	memcpy(target + record_size - 32, record + record_size - 32, 32);
}

void gather_scalar(uint8_t *target, const uint8_t *records, size_t record_size,
		   const uint64_t *entries, size_t count, uint64_t index_mask)
{
	if (record_size < 8 || record_size > 64)
		gather_records(target, records, record_size, entries, count,
			       index_mask, copy_bytes);
	else if (record_size <= 16)
		gather_records(target, records, record_size, entries, count,
			       index_mask, copy_to_16);
	else if (record_size <= 32)
		gather_records(target, records, record_size, entries, count,
			       index_mask, copy_to_32);
	else
		gather_records(target, records, record_size, entries, count,
			       index_mask, copy_to_64);
}
