/*
 * crc32c.c - choose the kernel
 */
#include "kernels/crc32c.h"

crc32c_fn *crc32c_kernel(enum cpu_level level)
{
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return crc32c_vpclmul;
	if (level >= CPU_AVX2)
		return crc32c_pclmul;
#endif
	(void)level;
	return crc32c_scalar;
}
