/*
 * tie_break.h - order what the entries' key bits left undecided
 *
 * Entries sorted as integers are in order by the key bits they hold, and among
 * equal ones by record number.  Where two neighbours agree in all these bits,
 * the keys themselves decide.
 */
#ifndef TIE_BREAK_H
#define TIE_BREAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/equal_keys.h"
#include "kernels/local_sort.h"
#include "record/record.h"

struct tie_break {
	const struct record_shape *shape;
	const uint8_t *records; /* at slot 0 */
	unsigned index_bits;
	bool keeps_last;     /* of duplicates */
	local_sort_fn *sort; /* of entries as integers */
	equal_keys_fn *any;  /* finds ties */
};

/* Returns the record that the entry's index bits name. */
static inline const uint8_t *tie_break_record(const struct tie_break *tie_break,
					      uint64_t entry)
{
	uint64_t slot = entry & ~(UINT64_MAX << tie_break->index_bits);

	return tie_break->records + slot * tie_break->shape->size;
}

/*
 * entries[0..count) ascending as integers: put them into stable key order.
 * Only their index bits are meaningful afterwards.
 */
void tie_break_settle(const struct tie_break *tie_break, uint64_t *entries,
		      size_t count);

/*
 * entries[0..count) ascending as integers: put those of the first record of
 * each key, or of the last if keeps_last, in key order, to the beginning, and
 * return how many these are. Only their index bits are meaningful afterwards.
 * is_decided: entries with equal key bits have equal keys, so that no record
 * need be read.
 */
size_t tie_break_drop_duplicates(const struct tie_break *tie_break,
				 uint64_t *entries, size_t count,
				 bool is_decided);

#endif /* TIE_BREAK_H */
