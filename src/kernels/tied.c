/*
 * tied.c - choose the kernel
 */
#include "kernels/tied.h"

tied_fn *tied_kernel(enum cpu_level level)
{
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return tied_avx512;
	if (level >= CPU_AVX2)
		return tied_avx2;
#else
	(void)level;
#endif
	return tied_scalar;
}
