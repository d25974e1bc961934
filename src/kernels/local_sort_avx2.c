/*
 * local_sort_avx2.c - four entries a register
 *
 * AVX2 compares signed integers only and has no 64-bit minimum: entries have
 * their top bit flipped while they are in registers.
 */
#include <immintrin.h>

#include "kernels/local_sort.h"

typedef __m256i vec;

#define LANES 4
#define SAMPLE_COUNT 15
#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE vec flip_top_bit(vec v)
{
	return _mm256_xor_si256(v, _mm256_set1_epi64x(INT64_MIN));
}

/* Returns a mask with all ones in the first lanes. */
VEC_INLINE vec first_lanes(int lanes)
{
	return _mm256_cmpgt_epi64(_mm256_set1_epi64x(lanes),
				  _mm256_setr_epi64x(0, 1, 2, 3));
}

VEC_INLINE vec vec_load(const uint64_t *entries)
{
	return flip_top_bit(_mm256_loadu_si256((const __m256i *)entries));
}

VEC_INLINE void vec_store(uint64_t *entries, vec v)
{
	_mm256_storeu_si256((__m256i *)entries, flip_top_bit(v));
}

VEC_INLINE vec vec_load_part(const uint64_t *entries, int lanes)
{
	vec mask = first_lanes(lanes);
	vec v = _mm256_maskload_epi64((const long long *)entries, mask);

	return _mm256_blendv_epi8(_mm256_set1_epi64x(INT64_MAX),
				  flip_top_bit(v), mask);
}

VEC_INLINE void vec_store_part(uint64_t *entries, vec v, int lanes)
{
	_mm256_maskstore_epi64((long long *)entries, first_lanes(lanes),
			       flip_top_bit(v));
}

VEC_INLINE vec vec_load_last(const uint64_t *end, int lanes)
{
	return _mm256_blendv_epi8(vec_load(end - LANES),
				  _mm256_set1_epi64x(INT64_MAX),
				  first_lanes(LANES - lanes));
}

/* Rotates both rows by `lanes` lanes, then takes each lane from one of them. */
VEC_INLINE void vec_store_last(uint64_t *end, vec before, vec last, int lanes)
{
	vec from = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
				    _mm256_set1_epi32(2 * lanes));

	vec_store(end - LANES,
		  _mm256_blendv_epi8(_mm256_permutevar8x32_epi32(last, from),
				     _mm256_permutevar8x32_epi32(before, from),
				     first_lanes(LANES - lanes)));
}

VEC_INLINE void vec_order(vec *a, vec *b)
{
	vec swap = _mm256_cmpgt_epi64(*a, *b);
	vec low = _mm256_blendv_epi8(*a, *b, swap);

	*b = _mm256_blendv_epi8(*b, *a, swap);
	*a = low;
}

VEC_INLINE vec vec_reverse(vec v, int group)
{
	if (group == 2)
		return _mm256_shuffle_epi32(v, _MM_SHUFFLE(1, 0, 3, 2));
	return _mm256_permute4x64_epi64(v, _MM_SHUFFLE(0, 1, 2, 3));
}

VEC_INLINE vec merge_distance_1(vec v)
{
	vec low = v, high = vec_reverse(v, 2);

	vec_order(&low, &high);
	return _mm256_blend_epi32(low, high, 0xcc);
}

VEC_INLINE vec vec_merge_folded(vec v, int group)
{
	vec low = v, high = vec_reverse(v, 4);

	if (group == 2)
		return merge_distance_1(v);
	vec_order(&low, &high);
	return merge_distance_1(_mm256_blend_epi32(low, high, 0xf0));
}

VEC_INLINE vec vec_merge_row(vec v)
{
	vec low = v;
	vec high = _mm256_permute4x64_epi64(v, _MM_SHUFFLE(1, 0, 3, 2));

	vec_order(&low, &high);
	return merge_distance_1(_mm256_blend_epi32(low, high, 0xf0));
}

/* Tells where each 32-bit piece of the result comes from, by the bits of the
 * lanes that are not below the pivot. */
static const uint8_t split_order[16][8] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7 }, { 2, 3, 4, 5, 6, 7, 0, 1 },
	{ 0, 1, 4, 5, 6, 7, 2, 3 }, { 4, 5, 6, 7, 0, 1, 2, 3 },
	{ 0, 1, 2, 3, 6, 7, 4, 5 }, { 2, 3, 6, 7, 0, 1, 4, 5 },
	{ 0, 1, 6, 7, 2, 3, 4, 5 }, { 6, 7, 0, 1, 2, 3, 4, 5 },
	{ 0, 1, 2, 3, 4, 5, 6, 7 }, { 2, 3, 4, 5, 0, 1, 6, 7 },
	{ 0, 1, 4, 5, 2, 3, 6, 7 }, { 4, 5, 0, 1, 2, 3, 6, 7 },
	{ 0, 1, 2, 3, 4, 5, 6, 7 }, { 2, 3, 0, 1, 4, 5, 6, 7 },
	{ 0, 1, 2, 3, 4, 5, 6, 7 }, { 0, 1, 2, 3, 4, 5, 6, 7 },
};

VEC_INLINE vec vec_split(vec v, uint64_t pivot, unsigned *below)
{
	vec threshold = flip_top_bit(_mm256_set1_epi64x((long long)pivot));
	vec is_below = _mm256_cmpgt_epi64(threshold, v);
	unsigned high = 0xf & ~(unsigned)_mm256_movemask_pd(
				      _mm256_castsi256_pd(is_below));
	__m128i order = _mm_loadl_epi64((const __m128i *)split_order[high]);

	*below = LANES - (unsigned)__builtin_popcount(high);
	return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(order));
}

#include "kernels/local_sort_network.h"
#include "kernels/local_sort_quick.h"

void local_sort_avx2(uint64_t *entries, size_t count)
{
	if (count <= LEAF_COUNT_MAX)
		sort_leaf(entries, count);
	else
		quick_sort(entries, count, quick_sort_splits_max(count));
}
