/*
 * search_avx512.c - a node is a register
 */
#include <immintrin.h>

#include "kernels/search.h"

void search_avx512(const struct search_tree *tree, const uint64_t *keys,
		   uint32_t *below)
{
	for (unsigned k = 0; k < SEARCH_BATCH; k++)
		below[k] = 0;
	for (unsigned level = 0; level < tree->level_count; level++) {
		const uint64_t(*nodes)[SEARCH_FANOUT - 1] =
			tree->nodes + tree->level_start[level];

		for (unsigned k = 0; k < SEARCH_BATCH; k++) {
			__mmask8 less = _mm512_cmplt_epu64_mask(
				_mm512_load_si512(nodes[below[k]]),
				_mm512_set1_epi64((long long)keys[k]));

			below[k] = below[k] * SEARCH_FANOUT +
				   (uint32_t)__builtin_popcount(less);
		}
	}
}
