/*
 * local_sort.c - choose the kernel
 */
#include "kernels/local_sort.h"

local_sort_fn *local_sort_kernel(enum cpu_level level)
{
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return local_sort_avx512;
	if (level >= CPU_AVX2)
		return local_sort_avx2;
#else
	(void)level;
#endif
	return local_sort_scalar;
}
