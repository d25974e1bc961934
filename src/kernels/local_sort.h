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

/* Returns the best kernel up to this level that was compiled in. */
local_sort_fn *local_sort_kernel(enum cpu_level level);

void local_sort_scalar(uint64_t *entries, size_t count);
#if defined(__x86_64__)
void local_sort_avx2(uint64_t *entries, size_t count);
void local_sort_avx512(uint64_t *entries, size_t count);
#endif

#endif /* LOCAL_SORT_H */
