/*
 * gather_avx2.c - a record of 100 bytes is four registers, two of them
 * overlapping
 */
#include <immintrin.h>

#include "kernels/gather.h"
#include "kernels/gather_impl.h"

GATHER_INLINE void copy_100(uint8_t *target, const uint8_t *record,
			    size_t record_size)
{
	static const unsigned starts[] = { 0, 32, 64, 68 };
	__m256i part[4];

	(void)record_size;
	for (int i = 0; i < 4; i++)
		part[i] = _mm256_loadu_si256(
			(const __m256i *)(record + starts[i]));
	for (int i = 0; i < 4; i++)
		_mm256_storeu_si256((__m256i *)(target + starts[i]), part[i]);
}

void gather_100_avx2(uint8_t *target, const uint8_t *records,
		     size_t record_size, const uint64_t *entries, size_t count,
		     uint64_t index_mask)
{
	(void)record_size;
	gather_records(target, records, 100, entries, count, index_mask,
		       copy_100);
}
