/*
 * local_sort.h - order the entries of one bucket
 *
 * An entry is a 64-bit integer (key prefix, record index): bits of the key
 * above, the index of the record in the input below.  So all entries differ,
 * and ascending order is stable order.
 *
 * Small counts go through sorting networks laid over the columns of a block of
 * vector registers (as in Bramas 2017 and Intel's x86-simd-sort), larger ones
 * are first split by quicksort around sampled pivots, with a heap sort when the
 * splits are bad, so that no input takes more than O(n log n).
 */
#ifndef LOCAL_SORT_H
#define LOCAL_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Sort entries[0..count) ascending as unsigned integers, of any alignment.
 * Equal entries are allowed.  Accesses nothing else and allocates nothing. */
typedef void local_sort_fn(uint64_t *entries, size_t count);

local_sort_fn local_sort_scalar, local_sort_avx2, local_sort_avx512;

/* Returns the best kernel up to this level that was compiled in. */
static inline local_sort_fn *local_sort_kernel(enum cpu_level level)
{
	return CPU_BEST(level, local_sort_scalar, local_sort_avx2,
			local_sort_avx512);
}

#endif /* LOCAL_SORT_H */
