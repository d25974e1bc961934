/*
 * exchange_receive.c - DATA in: every byte straight to its final place
 *
 * A batch is looked at before it is taken: its first header says where all its
 * segments belong if they follow each other, as they were sent, and so the
 * kernel copies each payload there.  Only to places of segments that have not
 * arrived: what is complete is never touched again, whatever may come.  A
 * segment counts as arrived when its own header and digest confirm it.
 */
#include "exchange/exchange_state.h"

#define BATCHES_AT_ONCE 16

/* --- where it goes ---------------------------------------------------------
 */

/* Of this job, of this exchange, of a message that we know. */
static bool is_ours(struct exchange *x, const struct datagram_head *head,
		    const uint8_t *header, struct exchange_data *data)
{
	const struct exchange_peer *peer;

	if (head->head_bytes < EXCHANGE_DATA_HEADER_BYTES ||
	    !exchange_data_open(header, &x->keys, data) || !x->prepared ||
	    data->exchange != (uint8_t)x->exchange ||
	    data->destination != exchange_own(x) ||
	    data->source >= exchange_node_count(x) ||
	    data->source == exchange_own(x))
		return false;
	peer = &x->peers[data->source];
	return peer->in_open && data->offset < peer->in.byte_count &&
	       data->offset % peer->in.segment_bytes == 0;
}

static void add_part(struct exchange_reception *r, uint8_t *bytes,
		     size_t byte_count)
{
	r->parts[r->part_count++] = (struct iovec){ bytes, byte_count };
}

/* Where the collective wants the bytes; false: in more pieces than that. */
static bool add_place(struct exchange *x, struct exchange_reception *r,
		      uint64_t offset, size_t byte_count)
{
	unsigned pieces = 0;

	while (byte_count > 0) {
		size_t room;
		uint8_t *bytes = x->collective->place(
			x->collective->context, r->first.source, offset, &room);

		if (++pieces == EXCHANGE_SEGMENT_PARTS)
			return false;
		room = MIN(room, byte_count);
		add_part(r, bytes, room);
		offset += room;
		byte_count -= room;
	}
	return true;
}

static void add_landing(struct exchange *x, struct exchange_reception *r,
			uint64_t segment, size_t byte_count)
{
	const struct arrivals *in = &r->peer->in;
	struct exchange_landing *landing = &r->landings[r->segment_count];

	add_part(r, r->headers[r->segment_count++], EXCHANGE_DATA_HEADER_BYTES);
	landing->segment = segment;
	landing->first_part = r->part_count;
	landing->wanted = segment < in->segment_count &&
			  byte_count == arrivals_length(in, segment) &&
			  !arrivals_has(in, segment);
	if (landing->wanted &&
	    !add_place(x, r, segment * in->segment_bytes, byte_count)) {
		landing->wanted = false;
		r->part_count = landing->first_part;
	}
	if (!landing->wanted)
		add_part(r, x->trash, byte_count);
	landing->part_count = r->part_count - landing->first_part;
}

static void lay_out(struct exchange *x, struct exchange_reception *r,
		    const struct datagram_head *head)
{
	uint64_t segment = r->first.offset / r->peer->in.segment_bytes;
	size_t left = head->total_bytes;

	r->segment_count = 0;
	r->part_count = 0;
	while (left > EXCHANGE_DATA_HEADER_BYTES &&
	       r->segment_count < DATAGRAM_SEGMENTS_MAX) {
		size_t length = MIN(left, head->segment_bytes);

		if (length <= EXCHANGE_DATA_HEADER_BYTES)
			break;
		add_landing(x, r, segment++,
			    length - EXCHANGE_DATA_HEADER_BYTES);
		left -= length;
	}
}

/* --- what has come ---------------------------------------------------------
 */

static bool is_as_expected(const struct exchange *x,
			   const struct exchange_reception *r, unsigned i)
{
	const struct exchange_landing *landing = &r->landings[i];
	struct exchange_data data;

	return exchange_data_open(r->headers[i], &x->keys, &data) &&
	       data.exchange == r->first.exchange &&
	       data.source == r->first.source &&
	       data.destination == r->first.destination &&
	       data.offset == landing->segment * r->peer->in.segment_bytes &&
	       data.length == arrivals_length(&r->peer->in, landing->segment);
}

static bool is_whole(const struct exchange *x,
		     const struct exchange_reception *r, unsigned i)
{
	const struct exchange_landing *landing = &r->landings[i];

	return !x->options.digests ||
	       exchange_data_is_whole(r->headers[i], &x->keys, x->digest,
				      r->parts + landing->first_part,
				      landing->part_count);
}

static void account(struct exchange *x, const struct exchange_reception *r)
{
	struct arrivals *in = &r->peer->in;

	for (unsigned i = 0; i < r->segment_count; i++) {
		const struct exchange_landing *landing = &r->landings[i];

		x->counters.received_datagrams++;
		if (!landing->wanted) {
			x->counters.duplicate_datagrams++;
			continue;
		}
		if (!is_as_expected(x, r, i) || !is_whole(x, r, i)) {
			x->counters.damaged_datagrams++;
			continue;
		}
		arrivals_add(in, landing->segment);
		x->counters.received_bytes +=
			arrivals_length(in, landing->segment);
	}
}

/* Its bytes up to the first gap are there: tell the collective; when it is
 * whole, its sender, who may forget it then. */
static void pass_on(struct exchange *x, unsigned node, uint64_t prefix)
{
	struct exchange_peer *peer = &x->peers[node];
	bool whole = arrivals_complete(&peer->in);

	if (peer->in.prefix == prefix)
		return;
	x->collective->arrived(x->collective->context, node,
			       arrivals_prefix_bytes(&peer->in), whole);
	if (!whole)
		return;
	x->in_left--;
	exchange_tell(x, node, 0);
}

/* One batch; 0: there is none, -1: it was for nobody here. */
static int receive_batch(struct exchange *x, uint64_t now_ns)
{
	struct exchange_reception *r = &x->reception;
	uint8_t header[EXCHANGE_DATA_HEADER_BYTES];
	struct iovec trash = { x->trash, sizeof(x->trash) };
	struct datagram_head head;
	uint64_t prefix;
	ssize_t taken;

	if (datagram_peek(&x->data, header, sizeof(header), &head) <= 0)
		return 0;
	if (!is_ours(x, &head, header, &r->first)) {
		datagram_take(&x->data, &trash, 1);
		x->counters.stray_datagrams++;
		return -1;
	}
	r->peer = &x->peers[r->first.source];
	prefix = r->peer->in.prefix;
	lay_out(x, r, &head);
	taken = datagram_take(&x->data, r->parts, r->part_count);
	if (taken < 0)
		return -1;
	account(x, r);
	r->peer->heard_ns = now_ns;
	r->peer->progress_ns = now_ns;
	pass_on(x, r->first.source, prefix);
	return 1;
}

bool exchange_receive_some(struct exchange *x, uint64_t now_ns)
{
	uint64_t begin_ns = x->options.lane ? trace_begin(x->options.lane) : 0;
	unsigned batches = 0;

	while (batches < BATCHES_AT_ONCE && receive_batch(x, now_ns) != 0)
		batches++;
	if (batches == 0)
		return false;
	if (x->options.lane)
		trace_end(x->options.lane, begin_ns, "receive");
	exchange_grant(x);
	return true;
}

/* --- grants ----------------------------------------------------------------
 */

static void grant_to(struct exchange *x, unsigned node)
{
	struct exchange_peer *peer = &x->peers[node];
	uint64_t bytes = MIN(arrivals_prefix_bytes(&peer->in) + x->window_bytes,
			     peer->in.byte_count);
	uint64_t step = bytes == peer->in.byte_count ? 1 : x->window_bytes / 4;

	if (bytes < peer->granted_bytes + step)
		return;
	peer->granted_bytes = bytes;
	if (x->prepared)
		exchange_tell(x, node, 0);
}

/* Windows to all keep a sender from filling our socket. */
void exchange_grant(struct exchange *x)
{
	unsigned count = exchange_node_count(x);

	for (unsigned i = 1; i < count; i++) {
		unsigned node = (exchange_own(x) + count - i) % count;

		if (!arrivals_complete(&x->peers[node].in))
			grant_to(x, node);
	}
}
