/*
 * gather_avx512.c - a record of 100 bytes is two registers that overlap
 */
#include <immintrin.h>

#include "kernels/gather.h"
#include "kernels/gather_impl.h"

GATHER_INLINE void copy_100(uint8_t *target, const uint8_t *record,
			    size_t record_size)
{
	__m512i head = _mm512_loadu_si512(record);
	__m512i tail = _mm512_loadu_si512(record + 36);

	(void)record_size;
	_mm512_storeu_si512(target, head);
	_mm512_storeu_si512(target + 36, tail);
}

void gather_100_avx512(uint8_t *target, const uint8_t *records,
		       size_t record_size, const uint64_t *entries,
		       size_t count, uint64_t index_mask)
{
	(void)record_size;
	gather_records(target, records, 100, entries, count, index_mask,
		       copy_100);
}
