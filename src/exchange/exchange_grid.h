/*
 * exchange_grid.h - a collective as two: over the rows of a grid, then over its
 * columns
 *
 * grid_shape.h tells in which row and column each rank stands, also if the last
 * row is incomplete; grid_bundle.h tells what a bundle is.  A message first
 * goes to the rank that stands in the sender's row and in the receiver's
 * column, then down that column:
 *
 *      row      to each rank of the own row: what is for its column
 *      column   to each rank of the own column: what has come for it
 *
 * So a rank speaks to some 2 * sqrt(n) others, not to n, and each byte travels
 * twice: this pays if messages are short (exchange_model.h).  It is the
 * two-level exchange of AMS-sort (Axtmann et al. 2015) and of KaMPIng's grid.
 *
 * A message of either step is a bundle, with a part for each rank of the
 * receiver's column, or of the sender's row, in the order of grid_shape.h.  The
 * rank that passes it on checks what each source announces for each receiver,
 * and the receiver checks it again: a rank that passes on an impossible length
 * is blamed itself.  A length that is possible but wrong is taken for the
 * source's own, even if the rank on the way has changed it.
 *
 * The grid is an exchange over another one: it puts a table of its own before
 * that of the exchange, and calls that one twice for each collective.
 */
#ifndef EXCHANGE_GRID_H
#define EXCHANGE_GRID_H

#include "exchange/exchange.h"

/*
 * All collectives that follow go by a grid, unless their messages are long.
 * After exchange_join(), between collectives, once, and alike on all ranks. The
 * grid has rows * columns places, as many as ranks or more, and a rank in each
 * row and column.  It keeps what it passes on in memory.  Returns 0, or -errno
 * with *failure filled.
 */
int exchange_grid_set(struct exchange *exchange, unsigned rows,
		      unsigned columns, struct failure *failure);

#endif /* EXCHANGE_GRID_H */
