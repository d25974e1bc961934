/*
 * grid_shape.h - which rank of a grid stands where
 *
 * Ranks are numbered row by row; all rows but the last are complete.  The ranks
 * of an incomplete last row pass nothing on: each joins a complete row, in
 * turn, as a sender only.  So each rank is of one row and of one column, and in
 * each row and each column together there is one rank that passes on.
 */
#ifndef GRID_SHAPE_H
#define GRID_SHAPE_H

#include <stdbool.h>

struct grid_shape {
	unsigned node_count;
	unsigned columns;   /* 1 .. node_count */
	unsigned full_rows; /* node_count / columns */
};

static inline unsigned grid_column_of(const struct grid_shape *shape,
				      unsigned node)
{
	return node % shape->columns;
}

/* The row that the rank is of, or has joined. */
static inline unsigned grid_row_of(const struct grid_shape *shape,
				   unsigned node)
{
	unsigned row = node / shape->columns;

	return row < shape->full_rows
		       ? row
		       : grid_column_of(shape, node) % shape->full_rows;
}

static inline bool grid_passes_on(const struct grid_shape *shape, unsigned node)
{
	return node / shape->columns < shape->full_rows;
}

/* Ranks of a column, ascending: the k-th, and how many there are. */
static inline unsigned grid_column_member(const struct grid_shape *shape,
					  unsigned column, unsigned k)
{
	return column + k * shape->columns;
}

static inline unsigned grid_column_count(const struct grid_shape *shape,
					 unsigned column)
{
	return (shape->node_count - column + shape->columns - 1) /
	       shape->columns;
}

/* Likewise of a row: first those that pass on, then those that have joined. */
static inline unsigned grid_row_member(const struct grid_shape *shape,
				       unsigned row, unsigned k)
{
	if (k < shape->columns)
		return row * shape->columns + k;
	return shape->full_rows * shape->columns + row +
	       (k - shape->columns) * shape->full_rows;
}

/* Which k a rank has in its row, and in its column. */
static inline unsigned grid_row_place(const struct grid_shape *shape,
				      unsigned node)
{
	unsigned row = grid_row_of(shape, node);

	if (grid_passes_on(shape, node))
		return grid_column_of(shape, node);
	return shape->columns + (node - shape->full_rows * shape->columns -
				 row) / shape->full_rows;
}

static inline unsigned grid_column_place(const struct grid_shape *shape,
					 unsigned node)
{
	return node / shape->columns;
}

static inline unsigned grid_row_count(const struct grid_shape *shape,
				      unsigned row)
{
	unsigned passing = shape->full_rows * shape->columns + row;

	if (passing >= shape->node_count)
		return shape->columns;
	return shape->columns +
	       (shape->node_count - passing + shape->full_rows - 1) /
		       shape->full_rows;
}

#endif /* GRID_SHAPE_H */
