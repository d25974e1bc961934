/*
 * checksum.c - choose the kernel that adds up the CRC-32s
 */
#include "record/checksum.h"

#include "record/record.h"

checksum_fn *checksum_kernel(enum cpu_level level, size_t record_size)
{
#if defined(__x86_64__)
	if (record_size == RECORD_SIZE_DEFAULT) {
		if (level >= CPU_AVX512)
			return checksum_100_vpclmul;
		if (level >= CPU_AVX2)
			return checksum_100_pclmul;
	}
#endif
	(void)level;
	(void)record_size;
	return checksum_scalar;
}
