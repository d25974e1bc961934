/*
 * udp_send.c - send DATA: in which order, and batch by batch
 */
#include <assert.h>

#include "exchange/udp/udp_state.h"

/* A receiver that looks at its debts with each query has noticed by then what
 * was overdue. */
#define NOTICED_NS (4 * LIVENESS_QUERY_NS_MAX)

/* --- whose turn it is -------------------------------------------------------
 */

static unsigned next_of(const struct udp *x, unsigned steps)
{
	assert(x->base.ring_count > 0);
	return x->base.ring[steps % x->base.ring_count];
}

/* Bytes of new segments that may be sent to the node now: whole segments,
 * unless they end the message. */
static uint64_t sendable_bytes(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];
	uint64_t grant_bytes =
		MAX(peer->heard.grant_bytes, peer->heard.first_grant_bytes);
	uint64_t limit = MIN(grant_bytes, peer->out.byte_count);
	uint64_t bytes;

	if (limit <= peer->out.sent_bytes)
		return 0;
	bytes = limit - peer->out.sent_bytes;
	return limit == peer->out.byte_count
		       ? bytes
		       : ROUND_DOWN(bytes, peer->segment_bytes);
}

bool udp_send_awaits_grant(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];

	return x->base.is_prepared && peer->heard.grant_bytes == 0 &&
	       peer->out.sent_bytes < peer->out.byte_count &&
	       sendable_bytes(x, node) == 0;
}

bool udp_send_will_tell(const struct udp *x, unsigned node)
{
	const struct udp_batch *batch = &udp_mover_to(x, node)->sending;
	bool is_filled = batch->active && !batch->again && batch->node == node;

	return x->peers[node]->out.byte_count >
	       x->peers[node]->out.sent_bytes +
		       (is_filled ? batch->byte_count : 0);
}

/* A rank that is ready takes what comes, asks for what does not, and lets us
 * send a window more than it has, whatever it waits for.  It notices itself at
 * the deadline if nothing of ours comes, and its failure names the rank whose
 * DATA is lost: it has some queries more time than the deadline for that.  One
 * that has begun the collective is ready when all have announced, as we have
 * found, unless another rank does not tell it so: then it has twice the time,
 * to give that one up itself. */
bool udp_send_is_stuck(struct udp *x, unsigned node, uint64_t now_ns)
{
	struct udp_peer *peer = x->peers[node];
	const struct udp_heard *heard = &peer->heard;
	bool owes = x->base.is_prepared && x->base.peers[node]->meets &&
		    heard->epoch == x->base.epoch && !udp_is_acked(x, node) &&
		    sendable_bytes(x, node) == 0;

	return debt_is_overdue(
		&peer->out.debt, owes,
		heard->ready + heard->prefix_bytes + heard->grant_bytes,
		x->base.peers[node]->liveness.heard_ns,
		(heard->ready ? 1 : 2) * x->base.deadline_ns + NOTICED_NS,
		now_ns);
}

/*
 * Bytes before its end, at most, at which a round is handed over early: the
 * STATUS is under way while the rest is sent, behind what already waits in
 * queues, so that the next sender's link does not stand idle.  Meanwhile two
 * senders may meet at a receiver: the queue of a switch port must hold these
 * bytes.
 */
#define HANDOVER_BYTES (32 * KIB)

/* Does the source hand over its round to the destination, so that the rank
 * whose next round that is waits for a STATUS?  Not if the queue of a switch
 * port holds the whole message, and both ranks know its length. */
static bool is_handed_over(const struct udp *x, unsigned source,
			   unsigned destination)
{
	return !x->base.tells_all ||
	       exchange_message_bytes(&x->base, source, destination) >
		       HANDOVER_BYTES;
}

/* Our next round sends to the rank that the next rank sends to in its
 * current round. */
unsigned udp_send_waits_for(const struct udp *x)
{
	unsigned next = next_of(x, 1);
	const struct udp_peer *peer = x->peers[next];

	if (x->base.schedule != EXCHANGE_ROUNDS || x->round == 0 ||
	    x->round + 1 >= x->base.ring_count || x->round_ns == 0 ||
	    peer->heard.round >= x->round ||
	    peer->heard.epoch > x->base.epoch ||
	    !is_handed_over(x, next, next_of(x, x->round + 1)))
		return udp_own(x);
	return next;
}

/* True if the round may begin; then counts for how long it has waited. */
static bool is_our_turn(struct udp *x, uint64_t now_ns)
{
	unsigned waits_for;

	if (x->round_ns == 0)
		x->round_ns = now_ns;
	waits_for = udp_send_waits_for(x);
	if (waits_for != udp_own(x)) {
		/* Turns keep senders apart, but nothing is wrong without them:
		 * do not wait for a rank that may soon be given up. */
		if (now_ns - x->round_ns < x->base.deadline_ns / 2)
			return false;
		x->base.counters.rounds_unwaited++;
	}
	x->base.counters.round_wait_ns += now_ns - x->round_ns;
	return true;
}

static uint64_t handover_bytes(const struct udp_peer *peer)
{
	return MIN(HANDOVER_BYTES, peer->out.byte_count / 4);
}

/* Count rounds that are over; tell the rank that waits for one when it is
 * nearly over. */
static void end_rounds(struct udp *x)
{
	unsigned rounds = x->base.ring_count - 1;

	while (x->round < rounds) {
		unsigned node = next_of(x, x->round + 1);
		const struct udp_peer *peer = x->peers[node];
		uint64_t left_bytes =
			peer->out.byte_count - peer->out.sent_bytes;

		if (x->rounds_handed_over == x->round &&
		    left_bytes <= handover_bytes(peer)) {
			x->rounds_handed_over++;
			if (x->rounds_handed_over < rounds &&
			    is_handed_over(x, udp_own(x), node))
				udp_status_send(x, next_of(x, rounds), 0);
		}
		if (left_bytes > 0)
			return;
		x->round++;
		x->round_ns = 0;
	}
}

/* A batch to each in turn, in the order of rounds. */
static unsigned choose_in_turn(struct udp_mover *mover)
{
	const struct udp *x = mover->x;

	for (unsigned i = 1; i <= x->base.ring_count; i++) {
		unsigned turn = (mover->last_turn + i) % x->base.ring_count;
		unsigned node = x->base.ring[turn];

		if (turn == 0 || udp_mover_to(x, node) != mover)
			continue;
		if (sendable_bytes(x, node) > 0) {
			mover->last_turn = turn;
			return node;
		}
	}
	return udp_own(x);
}

/* The node that new segments go to now; the own rank: to none. */
static unsigned choose_node(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp *x = mover->x;
	unsigned count = x->base.ring_count;
	unsigned node;

	if (x->base.schedule == EXCHANGE_ROUNDS) {
		if (mover != x->movers)
			return udp_own(x);
		end_rounds(x);
		if (x->round + 1 >= count)
			return udp_own(x);
		node = next_of(x, x->round + 1);
		if (sendable_bytes(x, node) == 0 ||
		    (x->peers[node]->out.sent_bytes == 0 &&
		     !is_our_turn(x, now_ns)))
			return udp_own(x);
		return node;
	}
	return choose_in_turn(mover);
}

/* --- batches ---------------------------------------------------------------
 */

static uint64_t batch_bytes_max(const struct udp_peer *peer)
{
	uint64_t segments = DATAGRAM_BATCH_BYTES_MAX /
			    (peer->segment_bytes + UDP_DATA_HEADER_BYTES);

	return MIN(segments, DATAGRAM_SEGMENTS_MAX) * peer->segment_bytes;
}

/* Segments of the message from offset on are next. */
static void fill_batch(struct udp_mover *mover, unsigned node, uint64_t offset,
		       uint64_t byte_count, bool again)
{
	const struct udp_peer *peer = mover->x->peers[node];
	struct udp_batch *batch = &mover->sending;

	batch->active = true;
	batch->is_made = false;
	batch->again = again;
	batch->flags =
		arrivals_complete(&peer->in.arrivals) ? UDP_DATA_WHOLE : 0;
	batch->node = node;
	batch->offset = offset;
	batch->byte_count = byte_count;
	batch->segments_sent = 0;
	batch->segment_count =
		(unsigned)DIV_ROUND_UP(byte_count, peer->segment_bytes);
}

/* Make their headers and payload; without the state, which the caller has given
 * away: a peer's segments keep their length. */
static void make_batch(struct udp *x, struct udp_batch *batch)
{
	const struct udp_peer *peer = x->peers[batch->node];
	struct udp_wire_data data = {
		.epoch = (uint16_t)x->base.epoch,
		.source = (uint16_t)udp_own(x),
		.destination = (uint16_t)batch->node,
		.flags = batch->flags,
	};

	x->base.collective->read(x->base.collective->context, batch->node,
				 batch->offset, batch->payload,
				 batch->byte_count);
	for (unsigned i = 0; i < batch->segment_count; i++) {
		uint64_t begin = (uint64_t)i * peer->segment_bytes;

		data.offset = batch->offset + begin;
		data.length = (uint16_t)MIN(batch->byte_count - begin,
					    peer->segment_bytes);
		udp_wire_seal_data(&data, &x->keys, x->crc32c,
				   batch->payload + begin, batch->headers[i]);
	}
	batch->is_made = true;
}

/* There is a list of gaps that was not all sent. */
static bool misses_some(const struct udp_peer *peer)
{
	return peer->heard.gap_serial != peer->out.served_serial;
}

/* Begin with a list of gaps that has come in the meantime. */
static void take_list(struct udp_peer *peer)
{
	if (peer->out.resend_serial == peer->heard.gap_serial)
		return;
	peer->out.resend_serial = peer->heard.gap_serial;
	peer->out.resend_at = 0;
	peer->out.resend_done = 0;
}

/* Fill a batch with the next segments to be sent again to this node.  False:
 * there are none. */
static bool fill_again(struct udp_mover *mover, unsigned node)
{
	struct udp *x = mover->x;
	struct udp_peer *peer = x->peers[node];
	struct udp_out *out = &peer->out;
	uint64_t segment_count =
		DIV_ROUND_UP(out->byte_count, peer->segment_bytes);

	take_list(peer);
	while (out->resend_at < peer->heard.gap_count) {
		struct arrivals_gap gap = peer->heard.gaps[out->resend_at];
		uint64_t offset, bytes;

		gap.first += out->resend_done;
		gap.count -= out->resend_done;
		if (gap.count == 0 || gap.first >= segment_count) {
			out->resend_at++;
			out->resend_done = 0;
			continue;
		}
		gap.count = MIN(gap.count, segment_count - gap.first);
		offset = gap.first * peer->segment_bytes;
		bytes = MIN(gap.count * peer->segment_bytes,
			    batch_bytes_max(peer));
		out->resend_done += bytes / peer->segment_bytes;
		fill_batch(mover, node, offset,
			   MIN(bytes, out->byte_count - offset), true);
		return true;
	}
	/* The whole list was sent: what is still missing was lost once more. */
	out->served_serial = out->resend_serial;
	udp_status_send_twice(x, node);
	return false;
}

/* Bytes of the next batch, which ends where the round is handed over. */
static uint64_t new_bytes(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];
	uint64_t bytes = MIN(sendable_bytes(x, node), batch_bytes_max(peer));
	uint64_t left_bytes = peer->out.byte_count - peer->out.sent_bytes;
	uint64_t last_bytes = handover_bytes(peer);

	if (x->base.schedule != EXCHANGE_ROUNDS || left_bytes <= last_bytes)
		return bytes;
	return MIN(bytes,
		   ROUND_UP(left_bytes - last_bytes, peer->segment_bytes));
}

/* Lost segments first: a receiver waits for them. */
static bool fill_next(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp *x = mover->x;
	unsigned node;

	for (unsigned i = 1; i < x->base.ring_count; i++) {
		node = x->base.ring[i];
		if (misses_some(x->peers[node]) &&
		    udp_mover_to(x, node) == mover && fill_again(mover, node))
			return true;
	}
	node = choose_node(mover, now_ns);
	if (node == udp_own(x))
		return false;
	fill_batch(mover, node, x->peers[node]->out.sent_bytes,
		   new_bytes(x, node), false);
	return true;
}

static void end_batch(struct udp_mover *mover)
{
	struct udp_batch *batch = &mover->sending;
	struct udp *x = mover->x;

	batch->active = false;
	if (batch->again) {
		x->base.counters.resent_datagrams += batch->segment_count;
		return;
	}
	x->base.counters.sent_datagrams += batch->segment_count;
	x->base.counters.sent_bytes += batch->byte_count;
	flow_add(FLOW_SEND, 0, batch->byte_count);
	x->peers[batch->node]->out.sent_bytes += batch->byte_count;
	if (x->base.schedule == EXCHANGE_ROUNDS)
		end_rounds(x);
}

/* Send as much of the batch as the socket takes.  Returns the segments, or
 * -errno. */
static int send_batch(struct udp_mover *mover)
{
	struct udp_batch *batch = &mover->sending;
	struct udp *x = mover->x;
	const struct udp_peer *peer = x->peers[batch->node];
	const struct address to = udp_address(x, batch->node, peer->data_port);
	struct iovec parts[2 * DATAGRAM_SEGMENTS_MAX];
	unsigned part_count = 0;
	size_t total_bytes = 0;
	int sent;

	batch->is_leaving = true;
	udp_mover_lend_state(x);
	if (!batch->is_made)
		make_batch(x, batch);
	for (unsigned i = batch->segments_sent; i < batch->segment_count; i++) {
		size_t begin = (size_t)i * peer->segment_bytes;
		size_t length =
			MIN(batch->byte_count - begin, peer->segment_bytes);

		parts[part_count++] = (struct iovec){ batch->headers[i],
						      UDP_DATA_HEADER_BYTES };
		parts[part_count++] =
			(struct iovec){ batch->payload + begin, length };
		total_bytes += UDP_DATA_HEADER_BYTES + length;
	}
	sent = datagram_send(&mover->data, &to, parts, part_count,
			     UDP_DATA_HEADER_BYTES + peer->segment_bytes,
			     total_bytes);
	udp_mover_retake_state(x);
	batch->is_leaving = false;
	if (sent > 0)
		batch->segments_sent += (unsigned)sent;
	return sent;
}

/* Between collectives all ranks have all messages. */
static bool may_send(const struct udp *x)
{
	return x->base.collective && udp_may_move(x) && !x->awaits_lent;
}

bool udp_send_some(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp_batch *batch = &mover->sending;
	struct udp *x = mover->x;
	struct trace_lane *lane = mover == x->movers ? x->base.lane : NULL;
	uint64_t begin_ns;
	int sent;

	mover->blocked = false;
	if (!may_send(x) || (!batch->active && !fill_next(mover, now_ns)))
		return false;
	/* The mover may have told others to fill it, and so lent the state. */
	if (!may_send(x))
		return false;
	begin_ns = lane ? trace_begin(lane) : 0;
	sent = send_batch(mover);
	if (sent < 0) {
		exchange_note_failure(&x->base, batch->node, EXIT_PEER,
				      strerror(-sent));
		return false;
	}
	if (lane)
		trace_end(lane, begin_ns, "send");
	if (batch->segments_sent == batch->segment_count)
		end_batch(mover);
	else
		mover->blocked = true;
	return sent > 0;
}

void udp_send_begin(struct udp *x)
{
	x->round = 0;
	x->rounds_handed_over = 0;
	x->round_ns = 0;
	for (unsigned i = 0; i < x->mover_count; i++) {
		x->movers[i].last_turn = 0;
		x->movers[i].sending.active = false;
	}
	for (unsigned i = 1; i < x->base.ring_count; i++)
		udp_peer_of(x, x->base.ring[i]);
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_peer *peer = x->peers[node];

		peer->out.sent_bytes = 0;
		peer->out.served_serial = peer->heard.gap_serial;
		peer->out.debt = (struct debt){ 0 };
		peer->out.byte_count =
			exchange_message_bytes(&x->base, udp_own(x), node);
	}
}
