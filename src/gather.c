/*
 * gather.c - choose the kernel
 */
#include "gather.h"

gather_fn *gather_kernel(enum cpu_level level, size_t record_size)
{
#if defined(__x86_64__)
	if (record_size == 100 && level >= CPU_AVX512)
		return gather_100_avx512;
	if (record_size == 100 && level >= CPU_AVX2)
		return gather_100_avx2;
#else
	(void)level;
	(void)record_size;
#endif
	return gather_scalar;
}
