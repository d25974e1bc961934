/*
 * exchange_grid.c - a collective by way of a grid: what goes along the rows,
 * and then along the columns
 */
#include "exchange/exchange_grid.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "exchange/exchange_state.h"
#include "exchange/grid_bundle.h"
#include "exchange/grid_shape.h"

/* Delivered between two calls of exchange_serve(): to copy them,
 * and to make entries of their records, takes some 20 ms. */
#define UNSERVED_BYTES_MAX (16 * MIB)

/* One rank's bundle to us, in the memory of its step.  The lengths of all
 * bundles lie together, before the parts of all: most lengths would otherwise
 * be alone in their page. */
struct incoming_bundle {
	uint8_t *lengths, *parts;
	uint64_t lengths_bytes, parts_bytes;
};

/* One of the two exchanges. */
struct step {
	struct exchange_grid *grid;
	unsigned *group;      /* owned */
	uint64_t *send_bytes; /* [node]; owned */
	/* [place in the group], of which there are few beside all nodes;
	 * owned. */
	struct grid_bundle *outgoing;
	struct incoming_bundle *incoming;
	uint8_t *memory; /* of all that comes; owned */
	struct exchange_collective inner;
};

struct exchange_grid {
	struct exchange *exchange;
	const struct exchange_ops *inner; /* of the exchange below */
	unsigned own;
	struct grid_shape shape;
	bool passes_on; /* we stand in a complete row */
	struct step row, column;
	/* They tell of all that we send: to the row, and when that has it all,
	 * to the column; owned. */
	struct grid_part *parts;
	/* The collective at hand does not go by the grid. */
	bool is_direct;
	/* The one that does; NULL: between them. */
	const struct exchange_collective *collective;
	bool is_received;
	uint64_t *receive_bytes;	/* [node] of messages to us; owned */
	const uint8_t **received_bytes; /* [node]: where they are; owned */
	uint64_t unserved_bytes; /* delivered since other ranks were served */
};

/* --- places -----------------------------------------------------------------
 */

static unsigned place_of(const struct step *step, unsigned node)
{
	const struct exchange_grid *grid = step->grid;

	assert(grid->shape.full_rows > 0); /* columns are no more than nodes */
	return step == &grid->row ? grid_row_place(&grid->shape, node)
				  : grid_column_place(&grid->shape, node);
}

static struct grid_bundle *outgoing_to(const struct step *step, unsigned node)
{
	return &step->outgoing[place_of(step, node)];
}

static struct incoming_bundle *incoming_from(const struct step *step,
					     unsigned node)
{
	return &step->incoming[place_of(step, node)];
}

/* So many parts the sender's bundle has: one from our row is for our column,
 * and one from our column has what the sender's row has for us. */
static unsigned incoming_parts(const struct step *step, unsigned sender)
{
	const struct grid_shape *shape = &step->grid->shape;

	return step == &step->grid->row
		       ? step->grid->column.inner.group_count
		       : grid_row_count(shape, grid_row_of(shape, sender));
}

/* --- lengths ----------------------------------------------------------------
 */

/* One more part in a bundle, the message from source to destination: how long
 * the two may be. */
static void add_part(const struct exchange_grid *grid, unsigned source,
		     unsigned destination, struct exchange_length *sum)
{
	const struct exchange_collective *collective = grid->collective;
	struct exchange_length length = { 0, 1, 0 };
	uint64_t most;

	if (source != destination)
		length = collective->length(collective->context, source,
					    destination);
	sum->head_bytes += GRID_LENGTH_BYTES + length.head_bytes;
	if (__builtin_mul_overflow(length.unit_bytes, length.unit_count_max,
				   &most) ||
	    __builtin_add_overflow(sum->unit_count_max, most,
				   &sum->unit_count_max))
		sum->unit_count_max = UINT64_MAX;
	sum->unit_count_max =
		MIN(sum->unit_count_max, UINT64_MAX - sum->head_bytes);
}

static struct exchange_length row_length(const void *context, unsigned source,
					 unsigned destination)
{
	const struct step *step = context;
	const struct exchange_grid *grid = step->grid;
	unsigned column = grid_column_of(&grid->shape, destination);
	struct exchange_length sum = { .unit_bytes = 1 };

	for (unsigned k = 0; grid_passes_on(&grid->shape, destination) &&
			     k < grid_column_count(&grid->shape, column);
	     k++)
		add_part(grid, source,
			 grid_column_member(&grid->shape, column, k), &sum);
	return sum;
}

static struct exchange_length
column_length(const void *context, unsigned source, unsigned destination)
{
	const struct step *step = context;
	const struct exchange_grid *grid = step->grid;
	unsigned row = grid_row_of(&grid->shape, source);
	struct exchange_length sum = { .unit_bytes = 1 };

	for (unsigned k = 0; grid_passes_on(&grid->shape, source) &&
			     k < grid_row_count(&grid->shape, row);
	     k++)
		add_part(grid, grid_row_member(&grid->shape, row, k),
			 destination, &sum);
	return sum;
}

/* --- bundles that we send ---------------------------------------------------
 */

static void read_bundle(void *context, unsigned node, uint64_t offset,
			uint8_t *target, size_t byte_count)
{
	const struct step *step = context;

	grid_bundle_read(outgoing_to(step, node), step->grid->collective,
			 offset, target, byte_count);
}

/* What the collective has for a rank; nothing for ourselves. */
static struct grid_part own_part(const struct exchange_grid *grid, unsigned to)
{
	return (struct grid_part){
		.byte_count =
			to == grid->own ? 0 : grid->collective->send_bytes[to],
		.node = to,
	};
}

static void end_bundle(struct step *step, unsigned to,
		       const struct grid_part *parts, unsigned part_count)
{
	struct grid_bundle *bundle = outgoing_to(step, to);

	*bundle = (struct grid_bundle){ parts, part_count };
	step->send_bytes[to] = grid_bundle_bytes(bundle);
}

/* Each rank of our row that passes on gets what is for its column. */
static void bundle_by_columns(struct exchange_grid *grid)
{
	struct grid_part *next = grid->parts;

	for (unsigned column = 0; column < grid->shape.columns; column++) {
		const struct grid_part *first = next;

		for (unsigned k = 0;
		     k < grid_column_count(&grid->shape, column); k++)
			*next++ =
				own_part(grid, grid_column_member(&grid->shape,
								  column, k));
		end_bundle(&grid->row, grid->row.group[column], first,
			   (unsigned)(next - first));
	}
}

/* Each rank of our column gets what has come from our row for it. */
static void bundle_by_rows(struct exchange_grid *grid)
{
	unsigned sources = grid->row.inner.group_count;
	unsigned targets = grid->column.inner.group_count;
	struct grid_part *parts = grid->parts; /* [target][source] */

	for (unsigned s = 0; s < sources; s++) {
		unsigned from = grid->row.group[s];
		const struct incoming_bundle *bundle =
			incoming_from(&grid->row, from);
		const uint8_t *at = bundle->parts;

		for (unsigned k = 0; k < targets; k++) {
			struct grid_part *part =
				&parts[k * (size_t)sources + s];

			if (from == grid->own) {
				*part = own_part(grid, grid->column.group[k]);
				continue;
			}
			part->byte_count =
				grid_bundle_part_bytes(bundle->lengths, k);
			part->bytes = at;
			at += part->byte_count;
		}
	}
	for (unsigned k = 0; k < targets; k++)
		end_bundle(&grid->column, grid->column.group[k],
			   parts + k * (size_t)sources, sources);
}

/* --- bundles that come ------------------------------------------------------
 */

/* The memory has first the lengths of all bundles, and then their parts. */
static void lay_bundles(struct step *step, const uint64_t *receive_bytes)
{
	unsigned count = step->inner.group_count;
	uint8_t *next = step->memory;

	for (unsigned k = 0; k < count; k++) {
		struct incoming_bundle *bundle = &step->incoming[k];
		unsigned node = step->group[k];
		uint64_t bytes = receive_bytes[node];

		/* A rank that passes nothing on gets none, and sends none. */
		bundle->lengths_bytes =
			MIN(bytes, incoming_parts(step, node) *
					   (uint64_t)GRID_LENGTH_BYTES);
		bundle->parts_bytes = bytes - bundle->lengths_bytes;
		bundle->lengths = next;
		next += bundle->lengths_bytes;
	}
	for (unsigned k = 0; k < count; k++) {
		step->incoming[k].parts = next;
		next += step->incoming[k].parts_bytes;
	}
}

/* The sum of the lengths does not wrap: exchange.h. */
static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct step *step = context;
	uint64_t bytes = 0;

	for (unsigned k = 0; k < step->inner.group_count; k++)
		bytes += receive_bytes[step->group[k]];
	step->memory = malloc(bytes + 1);
	if (!step->memory)
		return failure_no_memory(failure);
	exchange_place(step->grid->exchange, step->memory, bytes);
	lay_bundles(step, receive_bytes);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct step *step = context;
	const struct incoming_bundle *bundle = incoming_from(step, node);

	if (offset < bundle->lengths_bytes) {
		*room = bundle->lengths_bytes - offset;
		return bundle->lengths + offset;
	}
	offset -= bundle->lengths_bytes;
	*room = bundle->parts_bytes - offset;
	return bundle->parts + offset;
}

static bool idle(void *context)
{
	const struct step *step = context;
	const struct exchange_collective *collective = step->grid->collective;

	return collective->idle(collective->context);
}

/* Is part k of the sender's bundle as long as the collective allows the message
 * from source to destination to be?  *left: bytes of the bundle that its parts
 * have not taken yet.  The sender has checked the source's length before it
 * passed it on, so the sender is to blame and not the source. */
static int check_part(const struct exchange_grid *grid, const struct step *step,
		      unsigned sender, unsigned k, uint64_t *left,
		      unsigned source, unsigned destination,
		      struct failure *failure)
{
	uint64_t bytes =
		grid_bundle_part_bytes(incoming_from(step, sender)->lengths, k);

	if (bytes > *left)
		return exchange_blame(
			grid->exchange, sender, failure,
			"forwarded more bytes than it had announced");
	*left -= bytes;
	if (source == destination && bytes > 0)
		return exchange_blame(
			grid->exchange, sender, failure,
			"forwarded a message from rank %u to itself", source);
	if (source == destination ||
	    exchange_allows_length(grid->collective, source, destination,
				   bytes))
		return 0;
	if (source == sender)
		return exchange_check_length(grid->exchange, grid->collective,
					     source, destination, bytes,
					     failure);
	return exchange_blame(grid->exchange, sender, failure,
			      "forwarded %" PRIu64
			      " bytes from rank %u to rank "
			      "%u, which is impossible",
			      bytes, source, destination);
}

static int check_bundle(const struct exchange_grid *grid,
			const struct step *step, unsigned sender,
			struct failure *failure)
{
	bool is_row = step == &grid->row;
	unsigned row = grid_row_of(&grid->shape, sender);
	unsigned count = incoming_parts(step, sender);
	uint64_t left = incoming_from(step, sender)->parts_bytes;
	int error = 0;

	for (unsigned k = 0; k < count && error == 0; k++)
		error = check_part(
			grid, step, sender, k, &left,
			is_row ? sender : grid_row_member(&grid->shape, row, k),
			is_row ? grid->column.group[k] : grid->own, failure);
	if (error == 0 && left > 0)
		return exchange_blame(
			grid->exchange, sender, failure,
			"forwarded fewer bytes than it had announced");
	return error;
}

static int check_row(const struct exchange_grid *grid, struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0;
	     grid->passes_on && i < grid->row.inner.group_count && error == 0;
	     i++)
		if (grid->row.group[i] != grid->own)
			error = check_bundle(grid, &grid->row,
					     grid->row.group[i], failure);
	return error;
}

/* --- delivery ---------------------------------------------------------------
 */

static void note_message(struct exchange_grid *grid, unsigned source,
			 const uint8_t *bytes, uint64_t byte_count)
{
	grid->received_bytes[source] = bytes;
	grid->receive_bytes[source] = byte_count;
}

/* What our own row has for us has come in the first step. */
static void find_in_row(struct exchange_grid *grid)
{
	unsigned sources = grid->row.inner.group_count;
	const struct grid_part *parts =
		grid->parts + grid->own / grid->shape.columns * (size_t)sources;

	for (unsigned s = 0; s < sources; s++)
		note_message(grid, grid->row.group[s], parts[s].bytes,
			     parts[s].byte_count);
}

static void find_in_column(struct exchange_grid *grid, unsigned sender)
{
	const struct incoming_bundle *bundle =
		incoming_from(&grid->column, sender);
	unsigned row = grid_row_of(&grid->shape, sender),
		 sources = grid_row_count(&grid->shape, row);
	const uint8_t *at = bundle->parts;

	for (unsigned s = 0; s < sources; s++) {
		note_message(grid, grid_row_member(&grid->shape, row, s), at,
			     grid_bundle_part_bytes(bundle->lengths, s));
		at += grid_bundle_part_bytes(bundle->lengths, s);
	}
}

/* Where each message to us is. */
static int find_messages(struct exchange_grid *grid, struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; i < grid->column.inner.group_count && error == 0;
	     i++) {
		unsigned node = grid->column.group[i];

		if (!grid_passes_on(&grid->shape, node))
			continue;
		if (node == grid->own) {
			find_in_row(grid);
			continue;
		}
		error = check_bundle(grid, &grid->column, node, failure);
		if (error == 0)
			find_in_column(grid, node);
	}
	grid->receive_bytes[grid->own] = 0;
	return error;
}

static void pass_on(const struct exchange_collective *collective,
		    unsigned source, uint64_t prefix_bytes, bool whole)
{
	if (collective->arrived)
		collective->arrived(collective->context, source, prefix_bytes,
				    whole);
}

/* Copy a message to the places that the collective has for it.  Other ranks,
 * which have all of theirs, may ask meanwhile whether we are alive. */
static int deliver(struct exchange_grid *grid, unsigned source,
		   struct failure *failure)
{
	const struct exchange_collective *collective = grid->collective;
	uint64_t byte_count = grid->receive_bytes[source];
	int error = 0;

	for (uint64_t at = 0; at < byte_count && error == 0;) {
		size_t room;
		uint8_t *place = collective->place(collective->context, source,
						   at, &room);

		room = MIN(MIN(room, UNSERVED_BYTES_MAX), byte_count - at);
		if (place)
			memcpy(place, grid->received_bytes[source] + at, room);
		at += room;
		pass_on(collective, source, at, at == byte_count);
		grid->unserved_bytes += room;
		if (grid->unserved_bytes < UNSERVED_BYTES_MAX)
			continue;
		grid->unserved_bytes = 0;
		error = exchange_serve(grid->exchange, failure);
	}
	if (byte_count == 0)
		pass_on(collective, source, 0, true);
	return error;
}

static int deliver_all(struct exchange_grid *grid, struct failure *failure)
{
	const struct exchange_collective *collective = grid->collective;
	int error = collective->prepare(collective->context,
					grid->receive_bytes, failure);

	if (error) {
		exchange_fail(grid->exchange, failure);
		return error;
	}
	for (unsigned node = 0; node < grid->shape.node_count && error == 0;
	     node++)
		if (node != grid->own)
			error = deliver(grid, node, failure);
	return error;
}

/* --- the calls of the interface ---------------------------------------------
 */

static int begin_step(struct step *step, struct failure *failure)
{
	const struct exchange_grid *grid = step->grid;

	step->inner.idle = grid->collective->idle ? idle : NULL;
	return grid->inner->begin(grid->exchange, &step->inner, failure);
}

static void end_step(struct step *step)
{
	free(step->memory);
	step->memory = NULL;
}

static int begin(struct exchange *exchange,
		 const struct exchange_collective *collective,
		 struct failure *failure)
{
	struct exchange_grid *grid = exchange->grid;

	grid->is_direct = collective->has_long_messages;
	if (grid->is_direct)
		return grid->inner->begin(exchange, collective, failure);
	assert(!collective->group);
	grid->collective = collective;
	grid->is_received = false;
	bundle_by_columns(grid);
	return begin_step(&grid->row, failure);
}

static int go_through_columns(struct exchange_grid *grid,
			      struct failure *failure)
{
	int error = check_row(grid, failure);

	if (error)
		return error;
	if (grid->passes_on)
		bundle_by_rows(grid);
	error = begin_step(&grid->column, failure);
	if (error == 0)
		error = grid->inner->receive(grid->exchange, failure);
	if (error == 0)
		error = find_messages(grid, failure);
	return error ? error : deliver_all(grid, failure);
}

static int receive(struct exchange *exchange, struct failure *failure)
{
	struct exchange_grid *grid = exchange->grid;
	int error;

	if (grid->is_direct)
		return grid->inner->receive(exchange, failure);
	if (grid->is_received)
		return 0;
	error = grid->inner->finish(exchange, failure);
	if (error == 0)
		error = go_through_columns(grid, failure);
	grid->is_received = error == 0;
	return error;
}

static int finish(struct exchange *exchange, struct failure *failure)
{
	struct exchange_grid *grid = exchange->grid;
	int error = receive(exchange, failure);

	if (error == 0)
		error = grid->inner->finish(exchange, failure);
	if (error || grid->is_direct)
		return error;
	end_step(&grid->row);
	end_step(&grid->column);
	grid->collective = NULL;
	return 0;
}

static uint64_t message_bytes(const struct exchange *exchange, unsigned source,
			      unsigned destination)
{
	const struct exchange_grid *grid = exchange->grid;

	if (grid->is_direct)
		return grid->inner->bytes(exchange, source, destination);
	assert(source == grid->own || destination == grid->own);
	return source == grid->own ? grid->collective->send_bytes[destination]
				   : grid->receive_bytes[source];
}

/* --- making it --------------------------------------------------------------
 */

static bool new_step(struct exchange_grid *grid, struct step *step,
		     unsigned group_count)
{
	unsigned count = grid->shape.node_count;

	step->grid = grid;
	step->group = calloc(group_count, sizeof(*step->group));
	step->send_bytes = calloc(count, sizeof(*step->send_bytes));
	step->outgoing = calloc(group_count, sizeof(*step->outgoing));
	step->incoming = calloc(group_count, sizeof(*step->incoming));
	step->inner = (struct exchange_collective){
		.context = step,
		.group = step->group,
		.group_count = group_count,
		.send_bytes = step->send_bytes,
		.read = read_bundle,
		.length = step == &grid->row ? row_length : column_length,
		.prepare = prepare,
		.place = place,
	};
	return step->group && step->send_bytes && step->outgoing &&
	       step->incoming;
}

static void free_step(struct step *step)
{
	free(step->group);
	free(step->send_bytes);
	free(step->outgoing);
	free(step->incoming);
	free(step->memory);
}

static void free_grid(struct exchange_grid *grid)
{
	free_step(&grid->row);
	free_step(&grid->column);
	free(grid->parts);
	free(grid->receive_bytes);
	free(grid->received_bytes);
	free(grid);
}

/* What was under way has its memory in the grid. */
static void close_all(struct exchange *exchange)
{
	struct exchange_grid *grid = exchange->grid;

	grid->inner->close(exchange);
	free_grid(grid);
}

static bool fill(struct exchange_grid *grid)
{
	unsigned row = grid_row_of(&grid->shape, grid->own),
		 in_row = grid_row_count(&grid->shape, row);
	unsigned column = grid_column_of(&grid->shape, grid->own);
	unsigned in_column = grid_column_count(&grid->shape, column);
	unsigned count = grid->shape.node_count;

	grid->receive_bytes = calloc(count, sizeof(*grid->receive_bytes));
	grid->received_bytes = calloc(count, sizeof(*grid->received_bytes));
	grid->parts = calloc(MAX(count, (size_t)in_row * in_column),
			     sizeof(*grid->parts));
	if (!grid->receive_bytes || !grid->received_bytes || !grid->parts ||
	    !new_step(grid, &grid->row, in_row) ||
	    !new_step(grid, &grid->column, in_column))
		return false;
	for (unsigned k = 0; k < in_row; k++)
		grid->row.group[k] = grid_row_member(&grid->shape, row, k);
	for (unsigned k = 0; k < in_column; k++)
		grid->column.group[k] =
			grid_column_member(&grid->shape, column, k);
	return true;
}

static const struct exchange_ops by_grid = {
	.begin = begin,
	.bytes = message_bytes,
	.receive = receive,
	.finish = finish,
	.close = close_all,
};

int exchange_grid_set(struct exchange *exchange, unsigned rows,
		      unsigned columns, struct failure *failure)
{
	unsigned count = exchange->rank->node_count;
	struct exchange_grid *grid = calloc(1, sizeof(*grid));

	assert((uint64_t)rows * columns >= count &&
	       (uint64_t)(rows - 1) * columns < count && columns <= count);
	(void)rows;
	if (!grid)
		return failure_no_memory(failure);
	grid->exchange = exchange;
	grid->shape.node_count = count;
	grid->own = exchange->rank->rank;
	grid->shape.columns = columns;
	grid->shape.full_rows = count / columns;
	grid->passes_on = grid_passes_on(&grid->shape, grid->own);
	if (!fill(grid)) {
		free_grid(grid);
		return failure_no_memory(failure);
	}
	grid->inner = exchange->ops;
	exchange_go_by(exchange, &by_grid, grid);
	return 0;
}
