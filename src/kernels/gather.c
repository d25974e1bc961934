/*
 * gather.c - choose the kernel
 */
#include "kernels/gather.h"

#include "base/base.h"

gather_fn *gather_kernel(enum cpu_level level, size_t record_size)
{
	if (record_size != 100)
		return gather_scalar;
	return CPU_BEST(level, gather_scalar, gather_100_avx2,
			gather_100_avx512);
}

void gather_bytes(gather_fn *gather, uint8_t *target, uint64_t byte_count,
		  const uint8_t *records, uint32_t record_size,
		  const uint64_t *entries, uint32_t cut, uint64_t index_mask)
{
	uint64_t whole, rest;

	if (cut != 0) {
		uint64_t part = MIN(record_size - cut, byte_count);

		memcpy(target,
		       records + (*entries++ & index_mask) * record_size + cut,
		       part);
		target += part;
		byte_count -= part;
	}
	whole = byte_count / record_size;
	rest = byte_count % record_size;
	gather(target, records, record_size, entries, whole, index_mask);
	if (rest > 0)
		memcpy(target + whole * record_size,
		       records + (entries[whole] & index_mask) * record_size,
		       rest);
}
