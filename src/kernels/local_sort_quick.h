/*
 * local_sort_quick.h - quicksort around a leaf sort, bounded by a heap sort
 *
 * Included by one kernel each, which first defines
 *
 *	LEAF_COUNT_MAX		what sort_leaf() takes, at least SAMPLE_COUNT
 *	SAMPLE_COUNT		entries whose median is the pivot, odd
 *	sort_leaf(entries, count)
 *	partition_below(entries, count, pivot)
 *				moves the entries below the pivot to the front,
 *				returns their number; count > LEAF_COUNT_MAX
 */
#ifndef LOCAL_SORT_QUICK_H
#define LOCAL_SORT_QUICK_H

#include "base/base.h"

static void heap_sift_down(uint64_t *heap, size_t root, size_t count)
{
	uint64_t entry = heap[root];
	size_t child;

	while ((child = 2 * root + 1) < count) {
		if (child + 1 < count && heap[child] < heap[child + 1])
			child++;
		if (heap[child] <= entry)
			break;
		heap[root] = heap[child];
		root = child;
	}
	heap[root] = entry;
}

static void heap_sort(uint64_t *entries, size_t count)
{
	for (size_t root = count / 2; root-- > 0;)
		heap_sift_down(entries, root, count);
	for (size_t last = count; last-- > 1;) {
		uint64_t largest = entries[0];

		entries[0] = entries[last];
		entries[last] = largest;
		heap_sift_down(entries, 0, last);
	}
}

static uint64_t sample_median(const uint64_t *entries, size_t count)
{
	uint64_t sample[SAMPLE_COUNT];

	for (size_t i = 0; i < SAMPLE_COUNT; i++)
		sample[i] = entries[i * (count / SAMPLE_COUNT)];
	sort_leaf(sample, SAMPLE_COUNT);
	return sample[SAMPLE_COUNT / 2];
}

/*
 * Recurses into the smaller part only, so the stack stays logarithmic; each
 * split costs one of splits_left, so the time stays O(n log n).
 */
static void quick_sort(uint64_t *entries, size_t count, unsigned splits_left)
{
	while (count > LEAF_COUNT_MAX) {
		uint64_t pivot;
		size_t below, above;

		if (splits_left-- == 0) {
			heap_sort(entries, count);
			return;
		}
		pivot = sample_median(entries, count);
		below = partition_below(entries, count, pivot);
		if (below == 0) {
			/* The pivot is the minimum: its equals are in place. */
			if (pivot == UINT64_MAX)
				return;
			below = partition_below(entries, count, pivot + 1);
			entries += below;
			count -= below;
			continue;
		}
		above = count - below;
		if (below < above) {
			quick_sort(entries, below, splits_left);
			entries += below;
			count = above;
		} else {
			quick_sort(entries + below, above, splits_left);
			count = below;
		}
	}
	sort_leaf(entries, count);
}

/* Twice the splits of perfect halving: random data stays far below. */
static unsigned quick_sort_splits_max(size_t count)
{
	return 2 * (64 - (unsigned)__builtin_clzll(count | 1));
}

#endif /* LOCAL_SORT_QUICK_H */
