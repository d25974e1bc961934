/*
 * stable_sort.h - a plain stable sort of records, to compare with
 */
#ifndef STABLE_SORT_H
#define STABLE_SORT_H

#include <stdbool.h>
#include <string.h>

#include "record/record.h"

/* Merge sort of the numbers of records: equal keys stay in their order.
 * scratch has room for as many. */
static inline void stable_sort(const struct record_shape *shape,
			       const uint8_t *records, uint32_t *numbers,
			       size_t count, uint32_t *scratch)
{
	size_t half = count / 2, left = 0, right = half;

	if (count < 2)
		return;
	stable_sort(shape, records, numbers, half, scratch);
	stable_sort(shape, records, numbers + half, count - half, scratch);
	for (size_t i = 0; i < count; i++) {
		bool take_left =
			right == count ||
			(left < half &&
			 record_compare(shape,
					records + (size_t)numbers[left] *
							  shape->size,
					records + (size_t)numbers[right] *
							  shape->size) <= 0);

		scratch[i] = take_left ? numbers[left++] : numbers[right++];
	}
	memcpy(numbers, scratch, count * sizeof(*numbers));
}

#endif /* STABLE_SORT_H */
