/*
 * mpi_chunks.c - the messages of a collective, in chunks
 *
 * In round i rank j sends to j + i and receives from j - i, all of that message
 * before the next round.  Sender and receiver cut a message alike, so that each
 * knows the chunks without a word.  A window of chunks is under way in either
 * direction: what is read for one is still in the cache when MPI takes it.
 *
 * Fewer chunks are awaited than may be sent.  An MPI of one machine copies all
 * chunks that others have offered and that are awaited before MPI_Testsome
 * returns, and meanwhile they offer more: with as many awaited as sent, a rank
 * would get its whole message before it sends anything itself.
 *
 * No rank waits in a circle: of all pairs that are not through, those of the
 * lowest round have nothing before them, neither the sender nor the receiver.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/flow.h"
#include "exchange/mpi/mpi_state.h"

#define TAG_CHUNK 2

/* The rank that the message of this turn is from, or goes to. */
static unsigned node_of(const struct mpi *x, const struct mpi_turn *turn)
{
	return turn == &x->in_turn
		       ? x->base.ring[x->base.ring_count - turn->round]
		       : x->base.ring[turn->round];
}

static uint64_t bytes_of(const struct mpi *x, const struct mpi_turn *turn)
{
	const struct mpi_peer *peer = &x->peers[node_of(x, turn)];

	return turn == &x->in_turn ? peer->in_bytes : peer->out_bytes;
}

/* Go on to the next message that has a chunk left. */
static void end_turn(const struct mpi *x, struct mpi_turn *turn)
{
	while (turn->round < x->base.ring_count &&
	       turn->offset == bytes_of(x, turn)) {
		turn->round++;
		turn->offset = 0;
	}
}

void mpi_chunks_init(struct mpi *x)
{
	for (unsigned slot = 0; slot < ARRAY_LEN(x->requests); slot++)
		x->requests[slot] = MPI_REQUEST_NULL;
}

void mpi_chunks_begin(struct mpi *x)
{
	x->in_turn = x->out_turn = (struct mpi_turn){ .round = 1 };
	x->in_first = x->in_count = x->out_count = 0;
	for (unsigned i = 1; i < x->base.ring_count; i++) {
		unsigned node = x->base.ring[i];
		struct mpi_peer *peer = &x->peers[node];

		peer->in_prefix = peer->out_done_bytes = 0;
		peer->in_bytes = exchange_announced(&x->base, node)->byte_count;
		peer->out_bytes =
			exchange_message_bytes(&x->base, mpi_own(x), node);
	}
	end_turn(x, &x->in_turn);
	end_turn(x, &x->out_turn);
}

/* False: the chunk needs a buffer, and there is no memory. */
static bool need_buffer(struct mpi *x, struct mpi_chunk *chunk)
{
	if (!chunk->buffer)
		chunk->buffer = malloc(x->chunk_bytes);
	if (chunk->buffer)
		return true;
	exchange_note_failure(&x->base, mpi_own(x), EXIT_RESOURCES, "memory");
	return false;
}

/* --- to us ------------------------------------------------------------------
 */

/* Straight to its place, unless that is in two parts or nowhere. */
static bool choose_target(struct mpi *x, struct mpi_chunk *chunk)
{
	size_t room;

	chunk->target = x->base.collective->place(
		x->base.collective->context, chunk->node, chunk->offset, &room);
	if (chunk->target && room >= chunk->byte_count)
		return true;
	if (!need_buffer(x, chunk))
		return false;
	chunk->target = chunk->buffer;
	return true;
}

/* The next chunk of a direction. */
static void cut(const struct mpi *x, struct mpi_turn *turn,
		struct mpi_chunk *chunk)
{
	chunk->node = node_of(x, turn);
	chunk->offset = turn->offset;
	chunk->byte_count =
		MIN(x->chunk_bytes, bytes_of(x, turn) - turn->offset);
	chunk->is_done = false;
	turn->offset += chunk->byte_count;
	end_turn(x, turn);
}

static bool expect_chunk(struct mpi *x)
{
	unsigned slot = (x->in_first + x->in_count) % x->window;
	struct mpi_chunk *chunk = &x->chunks[slot];

	if (x->in_count == x->in_window ||
	    x->in_turn.round == x->base.ring_count)
		return false;
	cut(x, &x->in_turn, chunk);
	if (!choose_target(x, chunk) ||
	    !mpi_succeeds(x, MPI_Irecv(chunk->target, (int)chunk->byte_count,
				       MPI_BYTE, (int)chunk->node, TAG_CHUNK,
				       MPI_COMM_WORLD, &x->requests[slot])))
		return false;
	x->in_count++;
	return true;
}

static void copy_to_places(struct mpi *x, const struct mpi_chunk *chunk)
{
	size_t done = 0;

	while (done < chunk->byte_count) {
		size_t room;
		uint8_t *place = x->base.collective->place(
			x->base.collective->context, chunk->node,
			chunk->offset + done, &room);

		room = MIN(room, chunk->byte_count - done);
		if (place)
			memcpy(place, chunk->buffer + done, room);
		done += room;
	}
}

/* Chunks that are done, up to the first one that is not. */
static void take_chunks(struct mpi *x)
{
	while (x->in_count > 0 && x->chunks[x->in_first].is_done &&
	       !x->base.failed.any) {
		const struct mpi_chunk *chunk = &x->chunks[x->in_first];
		struct mpi_peer *peer = &x->peers[chunk->node];

		if (chunk->target == chunk->buffer)
			copy_to_places(x, chunk);
		x->base.counters.received_bytes += chunk->byte_count;
		flow_add(FLOW_RECEIVE, 0, chunk->byte_count);
		peer->in_prefix += chunk->byte_count;
		x->in_first = (x->in_first + 1) % x->window;
		x->in_count--;
		exchange_pass_on(&x->base, chunk->node, peer->in_prefix,
				 peer->in_prefix == peer->in_bytes);
	}
}

/* --- from us ----------------------------------------------------------------
 */

static unsigned free_slot(const struct mpi *x)
{
	unsigned slot = x->window;

	while (x->requests[slot] != MPI_REQUEST_NULL)
		slot++;
	return slot;
}

/* Straight from where the message lies, unless it has to be made.  NULL: there
 * is no memory. */
static const uint8_t *choose_source(struct mpi *x, struct mpi_chunk *chunk)
{
	const struct exchange_collective *collective = x->base.collective;
	const uint8_t *source = NULL;
	size_t room = 0;

	if (collective->find)
		source = collective->find(collective->context, chunk->node,
					  chunk->offset, &room);
	if (source && room >= chunk->byte_count)
		return source;
	if (!need_buffer(x, chunk))
		return NULL;
	collective->read(collective->context, chunk->node, chunk->offset,
			 chunk->buffer, chunk->byte_count);
	return chunk->buffer;
}

static bool send_chunk(struct mpi *x)
{
	struct mpi_chunk *chunk;
	const uint8_t *source;
	unsigned slot;

	if (x->out_count == x->window ||
	    x->out_turn.round == x->base.ring_count)
		return false;
	slot = free_slot(x);
	chunk = &x->chunks[slot];
	cut(x, &x->out_turn, chunk);
	source = choose_source(x, chunk);
	if (!source ||
	    !mpi_succeeds(x, MPI_Isend(source, (int)chunk->byte_count, MPI_BYTE,
				       (int)chunk->node, TAG_CHUNK,
				       MPI_COMM_WORLD, &x->requests[slot])))
		return false;
	x->out_count++;
	return true;
}

/* --- both -------------------------------------------------------------------
 */

static void end_chunk(struct mpi *x, unsigned slot, const MPI_Status *status,
		      uint64_t now_ns)
{
	struct mpi_chunk *chunk = &x->chunks[slot];
	struct mpi_peer *peer = &x->peers[chunk->node];
	struct failure failure;
	int byte_count = 0;

	liveness_hear(&x->base.peers[chunk->node]->liveness, now_ns);
	if (slot >= x->window) {
		peer->out_done_bytes += chunk->byte_count;
		x->base.counters.sent_bytes += chunk->byte_count;
		flow_add(FLOW_SEND, 0, chunk->byte_count);
		x->out_count--;
		return;
	}
	chunk->is_done = true;
	MPI_Get_count(status, MPI_BYTE, &byte_count);
	if ((size_t)byte_count != chunk->byte_count)
		exchange_blame(&x->base, chunk->node, &failure,
			       "sends a chunk of %d bytes, not %zu", byte_count,
			       chunk->byte_count);
}

/* Chunks that MPI has done with. */
static bool end_chunks(struct mpi *x, uint64_t now_ns)
{
	int slots[2 * MPI_WINDOW_MAX];
	MPI_Status statuses[2 * MPI_WINDOW_MAX];
	int count = 0;

	if (x->in_count + x->out_count == 0 ||
	    !mpi_succeeds(x, MPI_Testsome((int)(2 * x->window), x->requests,
					  &count, slots, statuses)) ||
	    count == MPI_UNDEFINED)
		return false;
	for (int i = 0; i < count; i++)
		end_chunk(x, (unsigned)slots[i], &statuses[i], now_ns);
	return count > 0;
}

/* A chunk that is to come is begun before one is sent: what has its place ready
 * is copied once. */
bool mpi_chunks_advance(struct mpi *x, uint64_t now_ns)
{
	bool any = end_chunks(x, now_ns);

	take_chunks(x);
	while (!x->base.failed.any && expect_chunk(x))
		any = true;
	while (!x->base.failed.any && send_chunk(x))
		any = true;
	return any;
}

static void cancel_all(struct mpi *x)
{
	for (unsigned slot = 0; slot < x->window; slot++)
		if (x->requests[slot] != MPI_REQUEST_NULL)
			MPI_Cancel(&x->requests[slot]);
}

bool mpi_chunks_close(struct mpi *x)
{
	bool ended;

	cancel_all(x);
	mpi_await((int)(2 * x->window), x->requests,
		  clock_now_ns() + MPI_CANCEL_NS, &ended);
	if (!ended)
		return false;
	for (unsigned slot = 0; slot < 2 * x->window; slot++)
		free(x->chunks[slot].buffer);
	return true;
}
