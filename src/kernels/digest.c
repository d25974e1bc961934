/*
 * digest.c - which kernel checks the segments
 */
#include "kernels/digest.h"

digest_fn *digest_kernel(enum cpu_level level)
{
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return digest_vpclmul;
	if (level >= CPU_AVX2)
		return digest_pclmul;
#endif
	(void)level;
	return digest_scalar;
}
