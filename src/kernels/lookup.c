/*
 * lookup.c - choose the kernel
 */
#include "kernels/lookup.h"

lookup_fn *lookup_kernel(enum cpu_level level,
			 const struct splitters *splitters)
{
	if (splitters->kind != SPLITTERS_STATIC_95)
		return CPU_BEST(level, lookup_256_scalar, lookup_256_avx2,
				lookup_256_avx512);
	/* The vector kernels multiply 32 bits by 32. */
	if (splitters->ascii_factor > UINT32_MAX)
		return lookup_95_scalar;
	return CPU_BEST(level, lookup_95_scalar, lookup_95_avx2,
			lookup_95_avx512);
}
