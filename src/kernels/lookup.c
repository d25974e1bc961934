/*
 * lookup.c - choose the kernel
 */
#include "kernels/lookup.h"

lookup_fn *lookup_kernel(enum cpu_level level,
			 const struct splitters *splitters)
{
	bool ascii = splitters->kind == SPLITTERS_STATIC_95;

	/* The vector kernels multiply 32 bits by 32. */
	if (ascii && splitters->ascii_factor > UINT32_MAX)
		return lookup_95_scalar;
#if defined(__x86_64__)
	if (level >= CPU_AVX512)
		return ascii ? lookup_95_avx512 : lookup_256_avx512;
	if (level >= CPU_AVX2)
		return ascii ? lookup_95_avx2 : lookup_256_avx2;
#else
	(void)level;
#endif
	return ascii ? lookup_95_scalar : lookup_256_scalar;
}
