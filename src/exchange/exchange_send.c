/*
 * exchange_send.c - DATA out: in which order, and batch by batch
 */
#include <assert.h>

#include "exchange/exchange_state.h"

/* --- whose turn it is -------------------------------------------------------
 */

static unsigned next_of(const struct exchange *x, unsigned steps)
{
	unsigned count = exchange_node_count(x);

	assert(count > 0);
	return (exchange_own(x) + steps) % count;
}

/* Bytes of new segments that may go to it now: whole ones, but at the end. */
static uint64_t sendable_bytes(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];
	uint64_t limit = MIN(peer->grant_bytes, peer->out_bytes);
	uint64_t bytes;

	if (!peer->ready || limit <= peer->sent_bytes)
		return 0;
	bytes = limit - peer->sent_bytes;
	return limit == peer->out_bytes
		       ? bytes
		       : ROUND_DOWN(bytes, peer->segment_bytes);
}

/* In the next round we send to whom the next rank has sent in its last. */
unsigned exchange_round_waits_for(const struct exchange *x)
{
	unsigned next = next_of(x, 1);
	const struct exchange_peer *peer = &x->peers[next];

	if (x->options.schedule != EXCHANGE_ROUNDS || x->round == 0 ||
	    x->round + 1 >= exchange_node_count(x) || x->round_ns == 0 ||
	    peer->round >= x->round || peer->exchange > x->exchange)
		return exchange_own(x);
	return next;
}

/* True if the round may begin; counts what it waited. */
static bool is_our_turn(struct exchange *x, uint64_t now_ns)
{
	unsigned waits_for;

	if (x->round_ns == 0)
		x->round_ns = now_ns;
	waits_for = exchange_round_waits_for(x);
	if (waits_for != exchange_own(x)) {
		/* Turns keep senders apart, but nothing is wrong without them:
		 * who is about to be given up is not waited for. */
		if (now_ns - x->round_ns < x->options.deadline_ns / 2)
			return false;
		x->counters.barriers_skipped++;
	}
	x->counters.barrier_wait_ns += now_ns - x->round_ns;
	return true;
}

/*
 * So near its end a round is told to be over: the word is on its way while the
 * rest is sent, behind what already waits in queues, so that the next sender's
 * link does not stand idle.  For as long two senders may meet at a receiver:
 * the queue of a switch port must hold it.
 */
#define ROUND_YIELD_BYTES (32 * KIB)

static uint64_t yield_bytes(const struct exchange_peer *peer)
{
	return MIN(ROUND_YIELD_BYTES, peer->out_bytes / 4);
}

/* Rounds that are over, or nearly so; who waits for it is told. */
static void end_rounds(struct exchange *x)
{
	unsigned rounds = exchange_node_count(x) - 1;

	while (x->round < rounds) {
		const struct exchange_peer *peer =
			&x->peers[next_of(x, x->round + 1)];
		uint64_t left_bytes = peer->out_bytes - peer->sent_bytes;

		if (x->rounds_yielded == x->round &&
		    left_bytes <= yield_bytes(peer)) {
			x->rounds_yielded++;
			if (x->rounds_yielded < rounds)
				exchange_tell(x, next_of(x, rounds), 0);
		}
		if (left_bytes > 0)
			return;
		x->round++;
		x->round_ns = 0;
	}
}

/* The node that new segments go to, or our own: to nobody now. */
static unsigned choose_node(struct exchange *x, uint64_t now_ns)
{
	unsigned count = exchange_node_count(x);
	unsigned node;

	if (x->options.schedule == EXCHANGE_ROUNDS) {
		end_rounds(x);
		if (x->round + 1 >= count)
			return exchange_own(x);
		node = next_of(x, x->round + 1);
		if (sendable_bytes(x, node) == 0 ||
		    (x->peers[node].sent_bytes == 0 && !is_our_turn(x, now_ns)))
			return exchange_own(x);
		return node;
	}
	for (unsigned i = 1; i <= count; i++) {
		node = (x->last_node + i) % count;
		if (node != exchange_own(x) && sendable_bytes(x, node) > 0)
			return node;
	}
	return exchange_own(x);
}

/* --- batches ---------------------------------------------------------------
 */

static uint64_t batch_bytes_max(const struct exchange_peer *peer)
{
	uint64_t segments = DATAGRAM_BATCH_BYTES_MAX /
			    (peer->segment_bytes + EXCHANGE_DATA_HEADER_BYTES);

	return MIN(segments, DATAGRAM_SEGMENTS_MAX) * peer->segment_bytes;
}

/* Headers and bytes of the message's segments from offset on. */
static void fill_batch(struct exchange *x, unsigned node, uint64_t offset,
		       uint64_t byte_count, bool again)
{
	const struct exchange_peer *peer = &x->peers[node];
	struct exchange_batch *batch = &x->batch;
	struct exchange_data data = {
		.exchange = (uint8_t)x->exchange,
		.source = (uint16_t)exchange_own(x),
		.destination = (uint16_t)node,
		.round = (uint16_t)(x->round + 1),
	};

	batch->active = true;
	batch->again = again;
	batch->node = node;
	batch->offset = offset;
	batch->byte_count = byte_count;
	batch->segments_sent = 0;
	batch->segment_count =
		(unsigned)DIV_ROUND_UP(byte_count, peer->segment_bytes);
	x->collective->read(x->collective->context, node, offset,
			    batch->payload, byte_count);
	for (unsigned i = 0; i < batch->segment_count; i++) {
		uint64_t begin = (uint64_t)i * peer->segment_bytes;

		data.offset = offset + begin;
		data.length =
			(uint16_t)MIN(byte_count - begin, peer->segment_bytes);
		exchange_data_seal(&data, &x->keys, x->digest,
				   batch->payload + begin, batch->headers[i]);
	}
	x->last_node = node;
}

/* The next of what is to be sent again to this node. */
static bool fill_again(struct exchange *x, unsigned node)
{
	struct exchange_peer *peer = &x->peers[node];
	uint64_t segment_count =
		DIV_ROUND_UP(peer->out_bytes, peer->segment_bytes);

	while (peer->resend_at < peer->resend_count) {
		struct arrivals_gap *gap = &peer->resend[peer->resend_at];
		uint64_t offset, bytes;

		if (gap->count == 0 || gap->first >= segment_count) {
			peer->resend_at++;
			continue;
		}
		gap->count = MIN(gap->count, segment_count - gap->first);
		offset = gap->first * peer->segment_bytes;
		bytes = MIN(gap->count * peer->segment_bytes,
			    batch_bytes_max(peer));
		gap->first += bytes / peer->segment_bytes;
		gap->count -= bytes / peer->segment_bytes;
		fill_batch(x, node, offset,
			   MIN(bytes, peer->out_bytes - offset), true);
		return true;
	}
	if (peer->resend_count > 0) {
		/* All sent: what is missing yet was lost once more. */
		peer->resend_count = 0;
		peer->served_serial = peer->resend_serial;
		exchange_tell_twice(x, node);
	}
	return false;
}

/* A batch's; one does not go past where the round is yielded. */
static uint64_t new_bytes(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];
	uint64_t bytes = MIN(sendable_bytes(x, node), batch_bytes_max(peer));
	uint64_t left_bytes = peer->out_bytes - peer->sent_bytes;
	uint64_t yield = yield_bytes(peer);

	if (x->options.schedule != EXCHANGE_ROUNDS || left_bytes <= yield)
		return bytes;
	return MIN(bytes, ROUND_UP(left_bytes - yield, peer->segment_bytes));
}

/* What was lost first: it is what a receiver waits for. */
static bool fill_next(struct exchange *x, uint64_t now_ns)
{
	struct exchange_peer *peer;
	unsigned node;

	for (node = 0; node < exchange_node_count(x); node++)
		if (x->peers[node].resend_count > 0 && fill_again(x, node))
			return true;
	node = choose_node(x, now_ns);
	if (node == exchange_own(x))
		return false;
	peer = &x->peers[node];
	fill_batch(x, node, peer->sent_bytes, new_bytes(x, node), false);
	return true;
}

static void end_batch(struct exchange *x)
{
	struct exchange_batch *batch = &x->batch;

	batch->active = false;
	if (batch->again) {
		x->counters.resent_datagrams += batch->segment_count;
		return;
	}
	x->counters.sent_datagrams += batch->segment_count;
	x->counters.sent_bytes += batch->byte_count;
	x->peers[batch->node].sent_bytes += batch->byte_count;
	if (x->options.schedule == EXCHANGE_ROUNDS)
		end_rounds(x);
}

/* As much of the batch as the socket takes. */
static int send_batch(struct exchange *x)
{
	struct exchange_batch *batch = &x->batch;
	const struct exchange_peer *peer = &x->peers[batch->node];
	struct iovec parts[2 * DATAGRAM_SEGMENTS_MAX];
	unsigned part_count = 0;
	size_t total_bytes = 0;
	int sent;

	for (unsigned i = batch->segments_sent; i < batch->segment_count; i++) {
		size_t begin = (size_t)i * peer->segment_bytes;
		size_t length =
			MIN(batch->byte_count - begin, peer->segment_bytes);

		parts[part_count++] =
			(struct iovec){ batch->headers[i],
					EXCHANGE_DATA_HEADER_BYTES };
		parts[part_count++] =
			(struct iovec){ batch->payload + begin, length };
		total_bytes += EXCHANGE_DATA_HEADER_BYTES + length;
	}
	sent = datagram_send(&x->data, &peer->data, parts, part_count,
			     EXCHANGE_DATA_HEADER_BYTES + peer->segment_bytes,
			     total_bytes);
	if (sent > 0)
		batch->segments_sent += (unsigned)sent;
	return sent;
}

bool exchange_send_some(struct exchange *x, uint64_t now_ns)
{
	uint64_t begin_ns;
	int sent;

	x->blocked = false;
	/* Between collectives all have what they were sent. */
	if (!x->collective || !x->prepared ||
	    (!x->batch.active && !fill_next(x, now_ns)))
		return false;
	begin_ns = x->options.lane ? trace_begin(x->options.lane) : 0;
	sent = send_batch(x);
	if (sent < 0) {
		exchange_note_failure(x, x->batch.node, EXIT_PEER,
				      strerror(-sent));
		return false;
	}
	if (x->options.lane)
		trace_end(x->options.lane, begin_ns, "send");
	if (x->batch.segments_sent == x->batch.segment_count)
		end_batch(x);
	else
		x->blocked = true;
	return sent > 0;
}

void exchange_send_begin(struct exchange *x)
{
	x->round = 0;
	x->rounds_yielded = 0;
	x->round_ns = 0;
	x->last_node = exchange_own(x);
	x->batch.active = false;
	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		struct exchange_peer *peer = &x->peers[node];

		peer->ready = false;
		peer->round = 0;
		peer->sent_bytes = 0;
		peer->acked_bytes = 0;
		peer->grant_bytes = 0;
		peer->resend_count = 0;
		peer->served_serial = peer->resend_serial;
		peer->out_bytes = node == exchange_own(x)
					  ? 0
					  : x->collective->send_bytes[node];
	}
}
