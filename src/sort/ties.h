/*
 * ties.h - order what the entries' key bits left undecided
 *
 * Entries sorted as integers are in order by the key bits they hold, and among
 * equal ones by record number.  Where neighbours agree in all these bits, the
 * keys themselves decide.
 */
#ifndef TIES_H
#define TIES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/local_sort.h"
#include "record/record.h"
#include "kernels/tied.h"

struct ties {
	const struct record_shape *shape;
	const uint8_t *records; /* slot 0 */
	unsigned index_bits;
	local_sort_fn *sort;
	tied_fn *any;
};

/*
 * entries[0..count) ascending as integers: put them into stable key order.
 * Only their index bits are meaningful afterwards.
 */
void ties_settle(const struct ties *ties, uint64_t *entries, size_t count);

#endif /* TIES_H */
