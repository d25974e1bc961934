/*
 * local_sort_network.h - sort a few vectors full of entries in registers
 *
 * The entries of a block fill up to 16 registers, its rows; what is left of the
 * last row is padded with the maximum.
 *
 * 1. A sorting network over the rows sorts each lane's column.
 * 2. Pairs of neighbouring columns are merged, then pairs of pairs, until the
 *    whole block is one group.  A merged group of g lanes is in memory order:
 *    row 0 has its smallest g entries.
 *
 * Merging is bitonic.  The two halves A and B of a group lie side by side in
 * the same rows, and A[p] is to meet B[last - p]: that is row r against the
 * lanes of row (last row - r) reversed within the group.  The smaller ones are
 * the lower half and go to row r, the larger ones to the other row; both halves
 * are again pairs of sequences to be met end to end, so the same step repeats
 * within 8, 4 and 2 rows, and last within each row.
 *
 * A block with fewer than 16 rows acts as if the others held the maximum.
 * Comparisons with those change nothing, and as the number of rows is a
 * constant in each copy of sort_block() below, they cost nothing.
 *
 * Included by one kernel each, which first defines
 *
 *	vec, LANES		a register of entries
 *	vec_load, vec_store	a whole row
 *	vec_load_part, vec_store_part
 *				its first lanes: LANES or more means all, 0 or
 *				less none; the other lanes load as the maximum
 *	vec_load_last(end, lanes), vec_store_last(end, before, last, lanes)
 *				the last row of two or more, of 1..LANES lanes:
 *				as a whole row that ends at the block's end and
 *				overlaps the row before.  After a masked access
 *				the next access to its neighbours stalls: 20 ns
 *	vec_order(&a, &b)	lanewise minimum to a, maximum to b
 *	vec_reverse(v, group)	reverse the lanes of each group
 *	vec_merge_folded(v, group)
 *				merge each group, whose second half is reversed
 *	vec_merge_row(v)	merge one row holding a bitonic sequence
 *	vec_split(v, pivot, &below)
 *				lanes below the pivot first, and their number
 */
#ifndef LOCAL_SORT_NETWORK_H
#define LOCAL_SORT_NETWORK_H

#include "base/base.h"

#define ROWS_MAX 16
#define BLOCK_COUNT_MAX (ROWS_MAX * LANES)
#define LEAF_COUNT_MAX (2 * BLOCK_COUNT_MAX)

/* Inlining is necessary: row numbers are constants only after it. */
#define INLINE static inline __attribute__((always_inline))

/* clang-format off */
#define FOR_EACH_ROW(DO)                                                       \
	DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)                        \
	DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)

/* Green's network of 60 comparisons. */
#define FOR_EACH_PAIR_OF_SORT(DO)                                              \
	DO(0, 1) DO(2, 3) DO(4, 5) DO(6, 7)                                    \
	DO(8, 9) DO(10, 11) DO(12, 13) DO(14, 15)                              \
	DO(0, 2) DO(1, 3) DO(4, 6) DO(5, 7)                                    \
	DO(8, 10) DO(9, 11) DO(12, 14) DO(13, 15)                              \
	DO(0, 4) DO(1, 5) DO(2, 6) DO(3, 7)                                    \
	DO(8, 12) DO(9, 13) DO(10, 14) DO(11, 15)                              \
	DO(0, 8) DO(1, 9) DO(2, 10) DO(3, 11)                                  \
	DO(4, 12) DO(5, 13) DO(6, 14) DO(7, 15)                                \
	DO(5, 10) DO(6, 9) DO(3, 12) DO(13, 14) DO(4, 8) DO(7, 11) DO(1, 2)    \
	DO(1, 4) DO(7, 13) DO(2, 8) DO(11, 14)                                 \
	DO(2, 4) DO(5, 6) DO(9, 10) DO(11, 13) DO(3, 8) DO(7, 12)              \
	DO(6, 8) DO(10, 12) DO(3, 5) DO(7, 9)                                  \
	DO(3, 4) DO(5, 6) DO(7, 8) DO(9, 10) DO(11, 12)                        \
	DO(6, 7) DO(8, 9)

/* End to end within 16 rows, 8, 4 and 2. */
#define FOR_EACH_PAIR_OF_FOLDED_MERGE(DO)                                      \
	DO(0, 15) DO(1, 14) DO(2, 13) DO(3, 12)                                \
	DO(4, 11) DO(5, 10) DO(6, 9) DO(7, 8)                                  \
	DO(0, 7) DO(1, 6) DO(2, 5) DO(3, 4)                                    \
	DO(8, 15) DO(9, 14) DO(10, 13) DO(11, 12)                              \
	DO(0, 3) DO(1, 2) DO(4, 7) DO(5, 6)                                    \
	DO(8, 11) DO(9, 10) DO(12, 15) DO(13, 14)                              \
	DO(0, 1) DO(2, 3) DO(4, 5) DO(6, 7)                                    \
	DO(8, 9) DO(10, 11) DO(12, 13) DO(14, 15)

/* Compare at distances of 8 rows, 4, 2 and 1. */
#define FOR_EACH_PAIR_OF_MERGE(DO)                                             \
	DO(0, 8) DO(1, 9) DO(2, 10) DO(3, 11)                                  \
	DO(4, 12) DO(5, 13) DO(6, 14) DO(7, 15)                                \
	DO(0, 4) DO(1, 5) DO(2, 6) DO(3, 7)                                    \
	DO(8, 12) DO(9, 13) DO(10, 14) DO(11, 15)                              \
	DO(0, 2) DO(1, 3) DO(4, 6) DO(5, 7)                                    \
	DO(8, 10) DO(9, 11) DO(12, 14) DO(13, 15)                              \
	DO(0, 1) DO(2, 3) DO(4, 5) DO(6, 7)                                    \
	DO(8, 9) DO(10, 11) DO(12, 13) DO(14, 15)
/* clang-format on */

INLINE void sort_columns(vec *row, int rows)
{
#define ORDER(a, b)                                                            \
	if (b < rows)                                                          \
		vec_order(&row[a], &row[b]);
	FOR_EACH_PAIR_OF_SORT(ORDER)
#undef ORDER
}

/* Merge the sorted halves of each group of lanes. */
INLINE void merge_columns(vec *row, int rows, int group)
{
#define ORDER(a, b)                                                            \
	if (b < rows) {                                                        \
		row[b] = vec_reverse(row[b], group);                           \
		vec_order(&row[a], &row[b]);                                   \
	}
#define MERGE(r)                                                               \
	if (r < rows)                                                          \
		row[r] = vec_merge_folded(row[r], group);
	FOR_EACH_PAIR_OF_FOLDED_MERGE(ORDER)
	FOR_EACH_ROW(MERGE)
#undef ORDER
#undef MERGE
}

/* Sort a block in which only the last row may be partly filled.  It does not
 * matter where the last row's entries are loaded: they are about to be sorted.
 */
INLINE void sort_block(uint64_t *entries, size_t count, int rows)
{
	int last_lanes = (int)count - (rows - 1) * LANES;
	uint64_t *end = entries + count;
	vec row[ROWS_MAX];

#define LOAD(r)                                                                \
	if (r < rows - 1)                                                      \
		row[r] = vec_load(entries + r * LANES);
#define STORE(r)                                                               \
	if (r < rows - 1)                                                      \
		vec_store(entries + r * LANES, row[r]);
	FOR_EACH_ROW(LOAD)
	if (rows == 1)
		row[0] = vec_load_part(entries, last_lanes);
	else
		row[rows - 1] = vec_load_last(end, last_lanes);
	sort_columns(row, rows);
	for (int group = 2; group <= LANES; group *= 2)
		merge_columns(row, rows, group);
	FOR_EACH_ROW(STORE)
	if (rows == 1)
		vec_store_part(entries, row[0], last_lanes);
	else
		vec_store_last(end, row[rows - 2], row[rows - 1], last_lanes);
#undef LOAD
#undef STORE
}

/*
 * Merge rows [first, rows) of a bitonic sequence.  The rows before act as
 * minima, those behind as maxima.
 */
INLINE void merge_rows(vec *row, int first, int rows)
{
#define ORDER(a, b)                                                            \
	if (a >= first && b < rows)                                            \
		vec_order(&row[a], &row[b]);
#define MERGE(r)                                                               \
	if (r >= first && r < rows)                                            \
		row[r] = vec_merge_row(row[r]);
	FOR_EACH_PAIR_OF_MERGE(ORDER)
	FOR_EACH_ROW(MERGE)
#undef ORDER
#undef MERGE
}

/* sort_two_blocks() tells sizes apart in steps of this many rows. */
#define MERGE_STEP_ROWS 4

/*
 * Merge two sorted blocks, the first of exactly these rows, the second of up to
 * MERGE_STEP_ROWS - 1 fewer, and the last one part of a row.  Entry p of the
 * first meets entry (last - p) of the second, padding included: the smaller
 * ones rise and then fall, so minima may stand before them; the larger ones
 * fall and then rise, so maxima may stand behind them.
 */
INLINE void merge_blocks(uint64_t *entries, size_t count, int rows)
{
	uint64_t *second = entries + rows * LANES;
	int second_count = (int)count - rows * LANES;
	int first = ROWS_MAX - rows;
	vec low[ROWS_MAX], high[ROWS_MAX];

/* The compiler knows whether the row is whole in all cases. */
#define IS_WHOLE(r) ((r) < rows - MERGE_STEP_ROWS)
#define LOAD_SECOND(r)                                                         \
	(IS_WHOLE(r) ? vec_load(second + (r)*LANES)                            \
		     : vec_load_part(second + (r)*LANES,                       \
				     second_count - (r)*LANES))
#define MEET(r)                                                                \
	if (r < rows) {                                                        \
		low[first + r] = vec_load(entries + r * LANES);                \
		high[r] = vec_reverse(LOAD_SECOND(rows - 1 - r), LANES);       \
		vec_order(&low[first + r], &high[r]);                          \
	}
#define STORE_LOW(r)                                                           \
	if (r < rows)                                                          \
		vec_store(entries + r * LANES, low[first + r]);
#define STORE_HIGH(r)                                                          \
	if (IS_WHOLE(r))                                                       \
		vec_store(second + r * LANES, high[r]);                        \
	else if (r < rows)                                                     \
		vec_store_part(second + r * LANES, high[r],                    \
			       second_count - r * LANES);
	FOR_EACH_ROW(MEET)
	merge_rows(low, first, ROWS_MAX);
	FOR_EACH_ROW(STORE_LOW)
	merge_rows(high, 0, rows);
	FOR_EACH_ROW(STORE_HIGH)
#undef IS_WHOLE
#undef LOAD_SECOND
#undef MEET
#undef STORE_LOW
#undef STORE_HIGH
}

/* A copy for each number of rows: no entry is padded to the next power of two,
 * which would be up to twice the work. */
#define DEFINE_SORT_BLOCK(r)                                                   \
	static void sort_block_##r(uint64_t *entries, size_t count)            \
	{                                                                      \
		sort_block(entries, count, r + 1);                             \
	}
FOR_EACH_ROW(DEFINE_SORT_BLOCK)
#undef DEFINE_SORT_BLOCK

#define DEFINE_MERGE_BLOCKS(rows)                                              \
	static void merge_blocks_##rows(uint64_t *entries, size_t count)       \
	{                                                                      \
		merge_blocks(entries, count, rows);                            \
	}
DEFINE_MERGE_BLOCKS(10)
DEFINE_MERGE_BLOCKS(12)
DEFINE_MERGE_BLOCKS(14)
DEFINE_MERGE_BLOCKS(16)
#undef DEFINE_MERGE_BLOCKS

static void sort_one_block(uint64_t *entries, size_t count)
{
#define NAME(r) sort_block_##r,
	static void (*const sort_rows[])(uint64_t *,
					 size_t) = { FOR_EACH_ROW(NAME) };
#undef NAME

	sort_rows[(count - 1) / LANES](entries, count);
}

static void sort_two_blocks(uint64_t *entries, size_t count)
{
	static void (*const merge[])(uint64_t *, size_t) = {
		merge_blocks_10,
		merge_blocks_12,
		merge_blocks_14,
		merge_blocks_16,
	};
	size_t step = (count - BLOCK_COUNT_MAX - 1) / (MERGE_STEP_ROWS * LANES);
	size_t first_count = (10 + 2 * step) * LANES;

	sort_one_block(entries, first_count);
	sort_one_block(entries + first_count, count - first_count);
	merge[step](entries, count);
}

static void sort_leaf(uint64_t *entries, size_t count)
{
	if (count > BLOCK_COUNT_MAX)
		sort_two_blocks(entries, count);
	else if (count > 1)
		sort_one_block(entries, count);
}

/*
 * The first and last vector are set aside, which leaves room for two vectors;
 * reading always where less room is left keeps one free on either side, so
 * whole vectors can be written at both ends.
 */
static size_t partition_below(uint64_t *entries, size_t count, uint64_t pivot)
{
	uint64_t aside[3 * LANES];
	size_t write_low = 0, write_high = count;
	size_t read_low = LANES, read_high = count - LANES;
	size_t rest;

	memcpy(aside, entries, LANES * sizeof(*aside));
	memcpy(aside + LANES, entries + read_high, LANES * sizeof(*aside));
	while (read_high - read_low >= LANES) {
		unsigned below;
		vec split;

		if (read_low - write_low <= write_high - read_high) {
			split = vec_load(entries + read_low);
			read_low += LANES;
		} else {
			read_high -= LANES;
			split = vec_load(entries + read_high);
		}
		split = vec_split(split, pivot, &below);
		vec_store(entries + write_low, split);
		vec_store(entries + write_high - LANES, split);
		write_low += below;
		write_high -= LANES - below;
	}
	rest = read_high - read_low;
	memcpy(aside + 2 * LANES, entries + read_low, rest * sizeof(*aside));
	for (size_t i = 0; i < 2 * LANES + rest; i++) {
		uint64_t entry = aside[i];

		entries[write_low] = entry;
		entries[write_high - 1] = entry;
		write_low += entry < pivot;
		write_high -= entry >= pivot;
	}
	return write_low;
}

#endif /* LOCAL_SORT_NETWORK_H */
