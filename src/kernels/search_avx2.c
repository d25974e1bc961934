/*
 * search_avx2.c - a node is two registers
 */
#include <immintrin.h>

#include "kernels/search.h"

/* AVX2 compares signed integers only: with the top bit turned over they are in
 * the order of unsigned ones. */
static inline __m256i turn(__m256i integers)
{
	return _mm256_xor_si256(integers, _mm256_set1_epi64x(INT64_MIN));
}

static inline unsigned less_than(const uint64_t *splitters, __m256i key)
{
	__m256i node = turn(_mm256_load_si256((const void *)splitters));

	return (unsigned)_mm256_movemask_pd(
		_mm256_castsi256_pd(_mm256_cmpgt_epi64(key, node)));
}

void search_avx2(const struct search_tree *tree, const uint64_t *keys,
		 uint32_t *below)
{
	for (unsigned k = 0; k < SEARCH_BATCH; k++)
		below[k] = 0;
	for (unsigned level = 0; level < tree->level_count; level++) {
		const uint64_t(*nodes)[SEARCH_FANOUT - 1] =
			tree->nodes + tree->level_start[level];

		for (unsigned k = 0; k < SEARCH_BATCH; k++) {
			const uint64_t *node = nodes[below[k]];
			__m256i key =
				turn(_mm256_set1_epi64x((long long)keys[k]));
			unsigned less = less_than(node, key) |
					less_than(node + 4, key) << 4;

			below[k] = below[k] * SEARCH_FANOUT +
				   (uint32_t)__builtin_popcount(less);
		}
	}
}
