/*
 * equal_keys.c - choose the kernel
 */
#include "kernels/equal_keys.h"

equal_keys_fn *equal_keys_kernel(enum cpu_level level)
{
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return equal_keys_avx512;
	if (level >= CPU_AVX2)
		return equal_keys_avx2;
#else
	(void)level;
#endif
	return equal_keys_scalar;
}
