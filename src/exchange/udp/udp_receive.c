/*
 * udp_receive.c - receive DATA, every byte straight to its final place
 *
 * We look at a batch's first header before we take the batch.  The header says
 * where all segments belong if they follow each other, as they were sent, so
 * that the kernel copies each payload there.  Only segments that have not
 * arrived get their final place: a complete one is never touched again,
 * whatever may come.  A segment counts as arrived when its own header and
 * CRC-32C confirm it.
 */
#include "exchange/udp/udp_state.h"

#define BATCHES_AT_ONCE 16

/* A list of gaps that the sender has not served by then is sent again, later
 * each time; or after this many round trips, which are long while queues on the
 * way are full. */
#define GAPS_AGAIN_NS ((uint64_t)4000000)
#define GAPS_AGAIN_DOUBLED_MAX 4
#define GAPS_AGAIN_ROUND_TRIPS 4
/* So many lists in a row are made as soon as the one before has been served,
 * though nothing came of it.  What the network never takes, such as DATA that
 * is longer than its MTU, is asked for at those intervals from then on. */
#define FRUITLESS_LISTS_MAX 16

void udp_receive_begin(struct udp *x)
{
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_in *in = &x->peers[node]->in;

		arrivals_fini(&in->arrivals);
		in->open = false;
		in->granted_bytes = 0;
		in->debt = (struct debt){ 0 };
	}
}

int udp_receive_prepare(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);
	unsigned slot = x->base.epoch % EXCHANGE_ANNOUNCED;
	int error = 0;

	for (unsigned i = 1; i < x->base.ring_count && !error; i++) {
		unsigned node = x->base.ring[i];
		struct udp_peer *peer = x->peers[node];

		error = arrivals_init(
			&peer->in.arrivals,
			exchange_announced(exchange, node)->byte_count,
			MAX(1, peer->heard.segment_bytes[slot]));
		peer->in.open = error == 0;
	}
	return error;
}

/* --- where it goes ---------------------------------------------------------
 */

/* Is it of this job, of this epoch, and of a message that was announced?  And
 * does the sender have this mover's port: no other one writes there. */
static bool is_ours(const struct udp_mover *mover,
		    const struct datagram_head *head, const uint8_t *header,
		    struct udp_wire_data *data)
{
	const struct udp *x = mover->x;
	const struct udp_peer *peer;

	if (head->head_bytes < UDP_DATA_HEADER_BYTES ||
	    !udp_wire_open_data(header, &x->keys, data) ||
	    !x->base.is_prepared || data->epoch != (uint16_t)x->base.epoch ||
	    data->destination != udp_own(x) ||
	    data->source >= udp_node_count(x) || data->source == udp_own(x) ||
	    udp_mover_from(x, data->source) != mover)
		return false;
	peer = x->peers[data->source];
	return peer->in.open && data->offset < peer->in.arrivals.byte_count &&
	       data->offset % peer->in.arrivals.segment_bytes == 0;
}

static void add_part(struct udp_receive_batch *r, uint8_t *bytes,
		     size_t byte_count)
{
	r->parts[r->part_count++] = (struct iovec){ bytes, byte_count };
}

/* Add the places where the collective wants the bytes.  False: they are more
 * than UDP_SEGMENT_PARTS. */
static bool add_place(struct udp *x, struct udp_receive_batch *r,
		      uint64_t offset, size_t byte_count)
{
	unsigned pieces = 0;

	while (byte_count > 0) {
		size_t room;
		uint8_t *bytes = x->base.collective->place(
			x->base.collective->context, r->first.source, offset,
			&room);

		if (++pieces == UDP_SEGMENT_PARTS)
			return false;
		/* Each segment by itself, for its CRC-32C. */
		if (!bytes)
			bytes = r->discarded + (offset - r->first.offset);
		room = MIN(room, byte_count);
		add_part(r, bytes, room);
		offset += room;
		byte_count -= room;
	}
	return true;
}

static void add_target(struct udp *x, struct udp_receive_batch *r,
		       uint64_t segment, size_t byte_count)
{
	const struct arrivals *in = &r->peer->in.arrivals;
	struct udp_segment_target *target = &r->targets[r->segment_count];

	add_part(r, r->headers[r->segment_count++], UDP_DATA_HEADER_BYTES);
	target->segment = segment;
	target->first_part = r->part_count;
	target->missing = segment < in->segment_count &&
			  byte_count == arrivals_length(in, segment) &&
			  !arrivals_has(in, segment);
	if (target->missing &&
	    !add_place(x, r, segment * in->segment_bytes, byte_count)) {
		target->missing = false;
		r->part_count = target->first_part;
	}
	if (!target->missing)
		add_part(r, r->discarded, byte_count);
	target->part_count = r->part_count - target->first_part;
}

static void lay_out(struct udp *x, struct udp_receive_batch *r,
		    const struct datagram_head *head)
{
	uint64_t segment = r->first.offset / r->peer->in.arrivals.segment_bytes;
	size_t left = head->total_bytes;

	r->segment_count = 0;
	r->part_count = 0;
	while (left > UDP_DATA_HEADER_BYTES &&
	       r->segment_count < DATAGRAM_SEGMENTS_MAX) {
		size_t length = MIN(left, head->segment_bytes);

		if (length <= UDP_DATA_HEADER_BYTES)
			break;
		add_target(x, r, segment++, length - UDP_DATA_HEADER_BYTES);
		left -= length;
	}
}

/* --- what has come ---------------------------------------------------------
 */

static bool is_as_expected(const struct udp *x,
			   const struct udp_receive_batch *r,
			   struct udp_segment_target *target,
			   const uint8_t *header)
{
	struct udp_wire_data data;

	if (!udp_wire_open_data(header, &x->keys, &data))
		return false;
	target->flags = data.flags;
	return data.epoch == r->first.epoch && data.source == r->first.source &&
	       data.destination == r->first.destination &&
	       data.offset ==
		       target->segment * r->peer->in.arrivals.segment_bytes &&
	       data.length ==
		       arrivals_length(&r->peer->in.arrivals, target->segment);
}

/* Look at what has been taken, without the state: a message's lengths do not
 * change while its bytes are copied. */
static void check(const struct udp *x, struct udp_receive_batch *r)
{
	for (unsigned i = 0; i < r->segment_count; i++) {
		struct udp_segment_target *target = &r->targets[i];

		target->is_whole =
			target->missing &&
			is_as_expected(x, r, target, r->headers[i]) &&
			(!x->options.crc32c ||
			 udp_wire_data_is_whole(r->headers[i], &x->keys,
						x->crc32c,
						r->parts + target->first_part,
						target->part_count));
	}
}

static void account(struct udp *x, const struct udp_receive_batch *r)
{
	struct arrivals *in = &r->peer->in.arrivals;
	uint64_t byte_count = 0;

	for (unsigned i = 0; i < r->segment_count; i++) {
		const struct udp_segment_target *target = &r->targets[i];

		x->base.counters.received_datagrams++;
		if (!target->missing) {
			x->base.counters.duplicate_datagrams++;
			continue;
		}
		if (!target->is_whole) {
			x->base.counters.damaged_datagrams++;
			continue;
		}
		udp_status_hear_data(x, r->first.source, target->flags);
		arrivals_add(in, target->segment);
		byte_count += arrivals_length(in, target->segment);
	}
	x->base.counters.received_bytes += byte_count;
	flow_add(FLOW_RECEIVE, 0, byte_count);
}

/* Tell the collective how far the message has come.  When it is whole, tell the
 * sender, too, which may then forget it, unless DATA will tell that. */
static void pass_on(struct udp *x, unsigned node, uint64_t prefix)
{
	struct udp_peer *peer = x->peers[node];
	bool whole = arrivals_complete(&peer->in.arrivals);

	if (peer->in.arrivals.prefix == prefix)
		return;
	exchange_pass_on(&x->base, node,
			 arrivals_prefix_bytes(&peer->in.arrivals), whole);
	/* The rank's own thread waits for the last message, and computes. */
	if (x->base.in_left == 0 || x->base.collective->idle)
		udp_mover_wake(x->movers);
	if (whole && !udp_send_will_tell(x, node))
		udp_status_send(x, node, 0);
}

/* Copy the bytes to where they belong.  False: it has failed. */
static bool take(struct udp_mover *mover)
{
	struct udp_receive_batch *r = &mover->receiving;
	struct udp *x = mover->x;
	ssize_t taken;

	udp_mover_lend_state(x);
	taken = datagram_take(&mover->data, r->parts, r->part_count);
	if (taken >= 0)
		check(x, r);
	udp_mover_retake_state(x);
	return taken >= 0 && udp_may_move(x);
}

/* Take one batch.  1; 0: there is none; -1: it was not for us. */
static int receive_batch(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp_receive_batch *r = &mover->receiving;
	struct udp *x = mover->x;
	uint8_t header[UDP_DATA_HEADER_BYTES];
	struct iovec all = { r->discarded, sizeof(r->discarded) };
	struct datagram_head head;
	struct liveness *liveness;
	uint64_t prefix;

	if (datagram_peek(&mover->data, header, sizeof(header), &head) <= 0)
		return 0;
	if (!is_ours(mover, &head, header, &r->first)) {
		datagram_take(&mover->data, &all, 1);
		x->base.counters.stray_datagrams++;
		return -1;
	}
	r->peer = x->peers[r->first.source];
	liveness = &x->base.peers[r->first.source]->liveness;
	prefix = r->peer->in.arrivals.prefix;
	lay_out(x, r, &head);
	if (!take(mover))
		return -1;
	account(x, r);
	liveness_hear(liveness, now_ns);
	liveness_progress(liveness, now_ns);
	pass_on(x, r->first.source, prefix);
	return 1;
}

/* --- grants ----------------------------------------------------------------
 */

/* Each sender may be a window ahead of what has arrived: so none of them can
 * fill our socket's buffer. */
static uint64_t grantable_bytes(const struct udp *x, const struct arrivals *in)
{
	return MIN(arrivals_prefix_bytes(in) + x->window_bytes, in->byte_count);
}

/* The node must hear that we are ready: it may not send all of its message
 * before; or, in a group, no DATA of ours tells it that we have its
 * announcement. */
static bool must_know(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];
	uint64_t bytes = peer->in.arrivals.byte_count;

	return bytes > x->first_window_bytes ||
	       (bytes == 0 && peer->out.byte_count == 0 && !x->base.all_meet);
}

void udp_receive_ready(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	for (unsigned i = 1; i < x->base.ring_count; i++) {
		unsigned node = x->base.ring[i];
		struct udp_in *in = &x->peers[node]->in;

		in->granted_bytes = grantable_bytes(x, &in->arrivals);
		if (must_know(x, node))
			udp_status_send(x, node, 0);
	}
}

static void grant_to(struct udp *x, unsigned node)
{
	struct udp_in *in = &x->peers[node]->in;
	uint64_t bytes = grantable_bytes(x, &in->arrivals);
	uint64_t step =
		bytes == in->arrivals.byte_count ? 1 : x->window_bytes / 4;

	if (bytes < in->granted_bytes + step)
		return;
	in->granted_bytes = bytes;
	udp_status_send(x, node, 0);
}

/* Let the mover's peers send more, after prefixes have moved. */
static void grant(const struct udp_mover *mover)
{
	struct udp *x = mover->x;

	for (unsigned i = x->base.ring_count; --i > 0;) {
		unsigned node = x->base.ring[i];

		if (!arrivals_complete(&x->peers[node]->in.arrivals) &&
		    udp_mover_from(x, node) == mover)
			grant_to(x, node);
	}
}

bool udp_receive_some(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp *x = mover->x;
	struct trace_lane *lane = mover == x->movers ? x->base.lane : NULL;
	uint64_t begin_ns = lane ? trace_begin(lane) : 0;
	unsigned batches = 0;

	while (batches < BATCHES_AT_ONCE && udp_may_move(x) &&
	       !x->awaits_lent && receive_batch(mover, now_ns) != 0)
		batches++;
	if (batches == 0)
		return false;
	if (lane)
		trace_end(lane, begin_ns, "receive");
	grant(mover);
	return true;
}

/* --- gaps -------------------------------------------------------------------
 */

static bool has_gaps(const struct udp_peer *peer)
{
	const struct arrivals *arrivals = &peer->in.arrivals;

	return peer->in.open && !arrivals_complete(arrivals) &&
	       (arrivals->end > arrivals->prefix ||
		peer->heard.sent_bytes > arrivals_prefix_bytes(arrivals));
}

static uint64_t gaps_again_ns(const struct udp_peer *peer)
{
	return MAX(GAPS_AGAIN_NS << peer->in.gap_repeats,
		   GAPS_AGAIN_ROUND_TRIPS * peer->clock.last_round_trip_ns);
}

/* The peer has sent all of the last list, and what is still missing was lost
 * once more. */
static bool is_served(const struct udp_peer *peer)
{
	return peer->heard.served_serial == peer->in.gap_serial &&
	       peer->in.fruitless_lists < FRUITLESS_LISTS_MAX;
}

static uint64_t request_gaps_of(struct udp *x, unsigned node, uint64_t now_ns)
{
	struct udp_peer *peer = x->peers[node];
	struct udp_in *in = &peer->in;

	if (!has_gaps(peer))
		return UINT64_MAX;
	if (in->arrivals.arrived_count != in->gap_arrived_count)
		in->fruitless_lists = 0;
	if (is_served(peer))
		in->gap_repeats = 0;
	else if (now_ns < in->gap_sent_ns + gaps_again_ns(peer))
		return in->gap_sent_ns + gaps_again_ns(peer);
	else if (in->gap_repeats < GAPS_AGAIN_DOUBLED_MAX)
		in->gap_repeats++;
	in->gap_serial++;
	in->gap_sent_ns = now_ns;
	in->gap_arrived_count = in->arrivals.arrived_count;
	in->fruitless_lists++;
	udp_status_send_gaps(x, node);
	return now_ns + gaps_again_ns(peer);
}

uint64_t udp_receive_request_gaps(struct udp_mover *mover, uint64_t now_ns)
{
	struct udp *x = mover->x;
	uint64_t next_ns = UINT64_MAX;

	if (x->base.in_left == 0)
		return next_ns;
	for (unsigned i = 1; i < x->base.ring_count; i++) {
		unsigned node = x->base.ring[i];

		if (udp_mover_from(x, node) == mover)
			next_ns =
				MIN(next_ns, request_gaps_of(x, node, now_ns));
	}
	return next_ns;
}

bool udp_receive_is_stuck(struct udp *x, unsigned node, uint64_t now_ns)
{
	struct udp_peer *peer = x->peers[node];

	return debt_is_overdue(&peer->in.debt,
			       x->base.is_prepared && has_gaps(peer),
			       peer->in.arrivals.arrived_count,
			       x->base.peers[node]->liveness.heard_ns,
			       x->base.deadline_ns, now_ns);
}
