#include "external/runs/key_order.h"

#include <stdlib.h>

#include "base/failure.h"
#include "sort/plan.h"
#include "sort/tie_break.h"

uint32_t *key_order_make(const struct record_shape *shape, const uint8_t *keys,
			 uint32_t count, enum cpu_level kernel,
			 struct failure *failure)
{
	uint64_t *entries = malloc(((size_t)count + 1) * sizeof(*entries));
	uint32_t *order = (uint32_t *)entries;
	const struct tie_break tie_break = {
		.shape = shape,
		.records = keys,
		.index_bits = plan_index_bits(count),
		.sort = local_sort_kernel(kernel),
		.any = equal_keys_kernel(kernel),
	};
	uint64_t mask = UINT64_MAX << tie_break.index_bits;

	if (!entries) {
		failure_no_memory(failure);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		entries[i] =
			(record_key_word(shape, keys + (size_t)i * shape->size,
					 0) &
			 mask) |
			i;
	tie_break.sort(entries, count);
	tie_break_settle(&tie_break, entries, count);
	/* The words become numbers of half the size, from the front on. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = (uint32_t)(entries[i] & ~mask);

		memcpy(&order[i], &number, sizeof(number));
	}
	return order;
}
