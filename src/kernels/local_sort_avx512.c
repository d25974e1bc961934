/*
 * local_sort_avx512.c - eight entries a register
 */
#include <immintrin.h>

#include "kernels/local_sort.h"

typedef __m512i vec;

#define LANES 8
#define SAMPLE_COUNT 31
#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE __mmask8 first_lanes(int lanes)
{
	if (lanes <= 0)
		return 0;
	return lanes >= LANES ? 0xff : (__mmask8)((1 << lanes) - 1);
}

VEC_INLINE vec vec_load(const uint64_t *entries)
{
	return _mm512_loadu_si512(entries);
}

VEC_INLINE void vec_store(uint64_t *entries, vec v)
{
	_mm512_storeu_si512(entries, v);
}

VEC_INLINE vec vec_load_part(const uint64_t *entries, int lanes)
{
	return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1),
				       first_lanes(lanes), entries);
}

VEC_INLINE void vec_store_part(uint64_t *entries, vec v, int lanes)
{
	_mm512_mask_storeu_epi64(entries, first_lanes(lanes), v);
}

VEC_INLINE vec vec_load_last(const uint64_t *end, int lanes)
{
	return _mm512_mask_mov_epi64(_mm512_set1_epi64(-1),
				     (__mmask8)(0xff << (LANES - lanes)),
				     vec_load(end - LANES));
}

VEC_INLINE void vec_store_last(uint64_t *end, vec before, vec last, int lanes)
{
	vec from = _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
				    _mm512_set1_epi64(lanes));

	vec_store(end - LANES, _mm512_permutex2var_epi64(before, from, last));
}

VEC_INLINE void vec_order(vec *a, vec *b)
{
	vec low = _mm512_min_epu64(*a, *b);

	*b = _mm512_max_epu64(*a, *b);
	*a = low;
}

VEC_INLINE vec vec_reverse(vec v, int group)
{
	if (group == 2)
		return _mm512_shuffle_epi32(v, _MM_PERM_BADC);
	if (group == 4)
		return _mm512_permutex_epi64(v, _MM_SHUFFLE(0, 1, 2, 3));
	return _mm512_permutexvar_epi64(
		_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), v);
}

/* The minimum of each lane and its partner, but the maximum where asked. */
VEC_INLINE vec order_lanes(vec v, vec partner, __mmask8 larger)
{
	return _mm512_mask_max_epu64(_mm512_min_epu64(v, partner), larger, v,
				     partner);
}

VEC_INLINE vec merge_distance_1(vec v)
{
	return order_lanes(v, vec_reverse(v, 2), 0xaa);
}

VEC_INLINE vec merge_distance_2(vec v)
{
	vec partner = _mm512_permutex_epi64(v, _MM_SHUFFLE(1, 0, 3, 2));

	return order_lanes(v, partner, 0xcc);
}

VEC_INLINE vec merge_distance_4(vec v)
{
	vec partner = _mm512_shuffle_i64x2(v, v, _MM_SHUFFLE(1, 0, 3, 2));

	return order_lanes(v, partner, 0xf0);
}

VEC_INLINE vec vec_merge_folded(vec v, int group)
{
	if (group == 2)
		return merge_distance_1(v);
	if (group == 4) {
		v = order_lanes(v, vec_reverse(v, 4), 0xcc);
		return merge_distance_1(v);
	}
	v = order_lanes(v, vec_reverse(v, 8), 0xf0);
	return merge_distance_1(merge_distance_2(v));
}

VEC_INLINE vec vec_merge_row(vec v)
{
	return merge_distance_1(merge_distance_2(merge_distance_4(v)));
}

/* Compressing in registers: the store that compresses is microcode on Zen 4. */
VEC_INLINE vec vec_split(vec v, uint64_t pivot, unsigned *below)
{
	__mmask8 low =
		_mm512_cmplt_epu64_mask(v, _mm512_set1_epi64((long long)pivot));
	vec highs = _mm512_maskz_compress_epi64((__mmask8)~low, v);

	*below = (unsigned)__builtin_popcount(low);
	return _mm512_mask_expand_epi64(_mm512_maskz_compress_epi64(low, v),
					(__mmask8)(0xff << *below), highs);
}

#include "kernels/local_sort_network.h"
#include "kernels/local_sort_quick.h"

void local_sort_avx512(uint64_t *entries, size_t count)
{
	if (count <= LEAF_COUNT_MAX)
		sort_leaf(entries, count);
	else
		quick_sort(entries, count, quick_sort_splits_max(count));
}
