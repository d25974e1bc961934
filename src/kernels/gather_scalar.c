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

void gather_scalar(uint8_t *target, const uint8_t *records, size_t record_size,
		   const uint64_t *entries, size_t count, uint64_t index_mask)
{
	gather_records(target, records, record_size, entries, count, index_mask,
		       copy_bytes);
}
