/*
 * test_grid.c - the places of ranks in a grid, counted one by one, and bundles,
 * read in pieces of any length
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exchange/exchange.h"
#include "exchange/grid_bundle.h"
#include "exchange/grid_shape.h"

#define NODES_MAX 200
#define PARTS_MAX 5
#define BUNDLE_BYTES_MAX 200

/* --- places -----------------------------------------------------------------
 */

static struct grid_shape shape;

static void set_shape(unsigned node_count, unsigned columns)
{
	shape = (struct grid_shape){
		.node_count = node_count,
		.columns = columns,
		.full_rows = node_count / columns,
	};
}

/* The members of a row, by what is said of each rank, are those that the row
 * names: first all that pass on, and each part ascending. */
static void check_row(unsigned row)
{
	unsigned k = 0;

	for (unsigned passes = 1; passes < 2; passes--) {
		for (unsigned node = 0; node < shape.node_count; node++)
			if (grid_row_of(&shape, node) == row &&
			    grid_passes_on(&shape, node) == (passes == 1))
				assert_int_equal(
					grid_row_member(&shape, row, k++),
					node);
		if (passes == 1)
			assert_int_equal(k, shape.columns);
	}
	assert_int_equal(grid_row_count(&shape, row), k);
}

static void check_column(unsigned column)
{
	unsigned k = 0;

	for (unsigned node = 0; node < shape.node_count; node++)
		if (grid_column_of(&shape, node) == column)
			assert_int_equal(
				grid_column_member(&shape, column, k++), node);
	assert_int_equal(grid_column_count(&shape, column), k);
}

/* Where a row and a column meet, one rank passes on. */
static void check_meetings(void)
{
	static unsigned passing[NODES_MAX * NODES_MAX]; /* [row][column] */
	size_t count = (size_t)shape.full_rows * shape.columns;

	memset(passing, 0, count * sizeof(*passing));
	for (unsigned node = 0; node < shape.node_count; node++)
		if (grid_passes_on(&shape, node))
			passing[grid_row_of(&shape, node) * shape.columns +
				grid_column_of(&shape, node)]++;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(passing[i], 1);
}

static void grid__all_shapes(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= NODES_MAX; n++)
		for (unsigned columns = 1; columns <= n; columns++) {
			unsigned members = 0;

			set_shape(n, columns);
			for (unsigned row = 0; row < shape.full_rows; row++) {
				check_row(row);
				members += grid_row_count(&shape, row);
			}
			/* So no rank is of a row that there is not. */
			assert_int_equal(members, n);
			for (members = 0; members < columns; members++)
				check_column(members);
			check_meetings();
		}
}

/* The most ranks, of which the last stands alone in its row. */
static void grid__largest(void **state)
{
	(void)state;
	set_shape(RANK_NODES_MAX, RANK_NODES_MAX - 1);
	check_row(0);
	assert_int_equal(grid_row_count(&shape, 0), RANK_NODES_MAX);
	assert_int_equal(grid_column_count(&shape, 0), 2);
	assert_false(grid_passes_on(&shape, RANK_NODES_MAX - 1));
	set_shape(RANK_NODES_MAX, 1);
	check_column(0);
	check_row(RANK_NODES_MAX - 1);
}

/* --- bundles ----------------------------------------------------------------
 */

static uint8_t whole[BUNDLE_BYTES_MAX]; /* as it is to be read */

/* Of node N, byte i; the collective's. */
static uint8_t byte_of(unsigned node, uint64_t i)
{
	return (uint8_t)(node * 64 + i + 1);
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	assert_ptr_equal(context, whole);
	for (size_t i = 0; i < byte_count; i++)
		target[i] = byte_of(node, offset + i);
}

/* Every other part is the collective's; the others are in memory. */
static void make_parts(struct grid_part *parts, const uint64_t *lengths,
		       unsigned part_count, uint8_t *memory)
{
	for (unsigned k = 0; k < part_count; k++) {
		parts[k] = (struct grid_part){ .byte_count = lengths[k],
					       .node = k };
		if (k % 2 == 0)
			continue;
		parts[k].bytes = memory;
		for (uint64_t i = 0; i < lengths[k]; i++)
			*memory++ = byte_of(k, i);
	}
}

static size_t make_whole(const uint64_t *lengths, unsigned part_count)
{
	size_t at = 0;

	for (unsigned k = 0; k < part_count; k++, at += GRID_LENGTH_BYTES)
		store_le64(whole + at, lengths[k]);
	for (unsigned k = 0; k < part_count; k++)
		for (uint64_t i = 0; i < lengths[k]; i++)
			whole[at++] = byte_of(k, i);
	return at;
}

static void check_pieces(const struct grid_bundle *bundle, size_t byte_count)
{
	static const struct exchange_collective collective = {
		.context = whole,
		.read = read_message,
	};
	uint8_t got[BUNDLE_BYTES_MAX + 1];

	for (size_t offset = 0; offset <= byte_count; offset++)
		for (size_t bytes = 0; bytes <= byte_count - offset; bytes++) {
			memset(got, 0xee, sizeof(got));
			grid_bundle_read(bundle, &collective, offset, got,
					 bytes);
			assert_memory_equal(got, whole + offset, bytes);
			assert_int_equal(got[bytes], 0xee);
		}
}

static void grid_bundle__read_in_pieces(void **state)
{
	static const struct {
		unsigned part_count;
		uint64_t lengths[PARTS_MAX];
	} cases[] = {
		{ 1, { 0 } },
		{ 1, { 9 } },
		{ 3, { 5, 7, 11 } },
		{ 5, { 0, 0, 0, 0, 0 } },
		{ 5, { 3, 0, 0, 40, 1 } },
		{ 5, { 0, 17, 0, 0, 2 } },
		{ 4, { 13, 0, 1, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct grid_part parts[PARTS_MAX];
		uint8_t memory[BUNDLE_BYTES_MAX];
		const struct grid_bundle bundle = { parts,
						    cases[i].part_count };
		size_t bytes =
			make_whole(cases[i].lengths, cases[i].part_count);

		make_parts(parts, cases[i].lengths, cases[i].part_count,
			   memory);
		assert_int_equal(grid_bundle_bytes(&bundle), bytes);
		check_pieces(&bundle, bytes);
		for (unsigned k = 0; k < bundle.part_count; k++)
			assert_int_equal(grid_bundle_part_bytes(whole, k),
					 cases[i].lengths[k]);
	}
}

/* All 64 bits of a length are told. */
static void grid_bundle__long_parts(void **state)
{
	const struct grid_part part = { .byte_count = 0x8877665544332211 };
	const struct grid_bundle bundle = { &part, 1 };
	uint8_t lengths[GRID_LENGTH_BYTES];

	(void)state;
	grid_bundle_read(&bundle, NULL, 0, lengths, sizeof(lengths));
	for (unsigned i = 0; i < sizeof(lengths); i++)
		assert_int_equal(lengths[i], 0x11 * (i + 1));
	assert_int_equal(grid_bundle_part_bytes(lengths, 0), part.byte_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grid__all_shapes),
		cmocka_unit_test(grid__largest),
		cmocka_unit_test(grid_bundle__read_in_pieces),
		cmocka_unit_test(grid_bundle__long_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
