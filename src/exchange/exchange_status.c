/*
 * exchange_status.c - say where we stand, and hear where the others are
 *
 * A STATUS is made from what is so at the moment, whatever the occasion: there
 * is no reply or event that could be lost, only news that come later.
 */
#include "base/clock.h"
#include "exchange/exchange_state.h"

/* A list of gaps that was not served by then is told again, later each time; or
 * after so many round trips, which are long while queues on the way are full,
 * and short again when they are not. */
#define GAPS_AGAIN_NS ((uint64_t)4000000)
#define GAPS_AGAIN_DOUBLED_MAX 4
#define GAPS_AGAIN_ROUND_TRIPS 4
#define ROUND_TRIP_NS_MAX ((uint64_t)250000000)
/* STATUS that one call looks at: several of each rank.  A rank that sends them
 * without end does not keep us from the rest. */
#define HEARD_AT_ONCE (8 * EXCHANGE_NODES_MAX)

/* --- saying ----------------------------------------------------------------
 */

static void put_message_state(struct exchange *x, unsigned node,
			      struct exchange_status *status)
{
	struct exchange_peer *peer = &x->peers[node];

	status->round = x->rounds_yielded;
	status->segment_bytes = peer->segment_bytes;
	status->sent_bytes = peer->sent_bytes;
	if (x->prepared) {
		status->flags |= EXCHANGE_READY;
		status->prefix_bytes = arrivals_prefix_bytes(&peer->in);
		status->grant_bytes = peer->granted_bytes;
		peer->told_bytes = status->prefix_bytes;
	}
	/* Who is ready has all announcements. */
	if (!peer->ready) {
		status->totals = (const uint8_t *)x->totals;
		status->total_count = (uint16_t)exchange_node_count(x);
	}
}

static void put_blob(struct exchange *x, unsigned node,
		     struct exchange_status *status)
{
	if (x->phase > 0) {
		status->blob = x->blob;
		status->blob_bytes = node == 0 ? (uint16_t)x->blob_bytes : 0;
	} else if (!x->peers[node].hears) {
		status->blob = x->hello;
		status->blob_bytes = (uint16_t)(EXCHANGE_BOARD_OFFER_BYTES +
						x->options.hello_bytes);
	}
}

static void put_failure(struct exchange *x, struct exchange_status *status)
{
	if (!x->failed)
		return;
	status->flags |= EXCHANGE_FAILED;
	status->failure_node = (uint16_t)x->failed_node;
	status->failure_status = (uint16_t)x->failure.status;
	status->text = x->failure.why;
	status->text_bytes =
		(uint16_t)MIN(strlen(x->failure.why), EXCHANGE_TEXT_BYTES_MAX);
}

static void put_gaps(struct exchange_peer *peer, struct exchange_status *status)
{
	uint64_t limit =
		DIV_ROUND_UP(peer->in_sent_bytes, peer->in.segment_bytes);

	limit = MIN(MAX(limit, peer->in.end), peer->in.segment_count);
	status->gap_count = (uint16_t)arrivals_gaps(
		&peer->in, limit, status->gaps, EXCHANGE_GAPS_MAX);
}

/* To where it is, or, before it was heard, wherever it may be. */
static void send_status(struct exchange *x, unsigned node,
			const uint8_t *datagram, size_t byte_count)
{
	struct exchange_peer *peer = &x->peers[node];
	struct iovec part = { (void *)datagram, byte_count };
	unsigned tries =
		peer->heard || peer->serial_out < 3 ? 1 : EXCHANGE_PORT_TRIES;

	for (unsigned i = 0; i < tries; i++) {
		struct address to = peer->control;

		address_set_port(&to, (uint16_t)(address_port(&to) +
						 i * EXCHANGE_PORT_STEP));
		datagram_send(&x->control, &to, &part, 1, byte_count,
			      byte_count);
		x->counters.status_datagrams++;
	}
}

/* Wake it: it will look at the board. */
static void ring(struct exchange *x, unsigned node)
{
	struct address to = x->peers[node].control;
	uint8_t nothing[EXCHANGE_RING_BYTES] = { 0 };
	struct iovec part = { nothing, sizeof(nothing) };

	address_set_port(&to, exchange_board_port(x->board, node));
	datagram_send(&x->control, &to, &part, 1, sizeof(nothing),
		      sizeof(nothing));
	x->counters.status_datagrams++;
}

/* True if no datagram is needed. */
static bool post(struct exchange *x, unsigned node,
		 const struct exchange_status *status)
{
	bool urgent = (status->flags & (EXCHANGE_ASKS | EXCHANGE_FAILED)) != 0;
	uint8_t bytes[EXCHANGE_STATUS_BYTES_MAX];

	if (status->gap_count > 0 ||
	    !exchange_board_post(x->board, node, bytes,
				 exchange_status_put(status, bytes)))
		return false;
	if (exchange_board_port(x->board, node) != 0) {
		if (exchange_board_wakes(x->board, node, urgent))
			ring(x, node);
		return true;
	}
	/* It finds that when it comes to look; if it does not, it asks.  But
	 * rank 0 has to tell where to look. */
	return exchange_own(x) != 0 && !x->peers[node].heard && !urgent;
}

static void tell(struct exchange *x, unsigned node, uint32_t flags,
		 bool with_gaps)
{
	uint8_t datagram[EXCHANGE_STATUS_BYTES_MAX];
	struct exchange_peer *peer = &x->peers[node];
	struct exchange_status status = {
		.source = (uint16_t)exchange_own(x),
		.destination = (uint16_t)node,
		.serial = ++peer->serial_out,
		.flags = flags,
		.phase = x->phase,
		.exchange = x->exchange,
		.data_port = address_port(&x->data.local),
		.busy_ms = x->busy_ms,
		.served_serial = peer->served_serial,
		.gap_serial = peer->gap_serial,
		.echo_ns = peer->clock_ns,
	};

	if (x->exchange > 0)
		put_message_state(x, node, &status);
	if (with_gaps)
		put_gaps(peer, &status);
	put_blob(x, node, &status);
	put_failure(x, &status);
	status.clock_ns = clock_now_ns();
	if (peer->clock_ns)
		status.held_ns = status.clock_ns - peer->clock_heard_ns;
	if (x->board && post(x, node, &status))
		return;
	send_status(x, node, datagram,
		    exchange_status_seal(&status, &x->keys, datagram));
}

void exchange_tell(struct exchange *x, unsigned node, uint32_t flags)
{
	tell(x, node, flags, false);
}

/* The next rank first: all ranks do this at about the same time. */
void exchange_tell_all(struct exchange *x, uint32_t flags)
{
	unsigned count = exchange_node_count(x);

	for (unsigned i = 1; i < count; i++)
		exchange_tell(x, (exchange_own(x) + i) % count, flags);
}

static bool has_gaps(const struct exchange_peer *peer)
{
	return peer->in_open && !arrivals_complete(&peer->in) &&
	       (peer->in.end > peer->in.prefix ||
		peer->in_sent_bytes > arrivals_prefix_bytes(&peer->in));
}

static uint64_t gaps_again_ns(const struct exchange_peer *peer)
{
	return MAX(GAPS_AGAIN_NS << peer->gap_repeats,
		   GAPS_AGAIN_ROUND_TRIPS * peer->last_round_trip_ns);
}

/* A STATUS is as easily lost as what it names: both are said twice. */
void exchange_tell_twice(struct exchange *x, unsigned node)
{
	tell(x, node, 0, false);
	tell(x, node, 0, false);
}

static uint64_t tell_gaps_to(struct exchange *x, unsigned node, uint64_t now_ns)
{
	struct exchange_peer *peer = &x->peers[node];

	if (!has_gaps(peer))
		return UINT64_MAX;
	if (peer->gap_served == peer->gap_serial)
		peer->gap_repeats = 0;
	else if (now_ns < peer->gap_told_ns + gaps_again_ns(peer))
		return peer->gap_told_ns + gaps_again_ns(peer);
	else if (peer->gap_repeats < GAPS_AGAIN_DOUBLED_MAX)
		peer->gap_repeats++;
	peer->gap_serial++;
	peer->gap_told_ns = now_ns;
	tell(x, node, 0, true);
	tell(x, node, 0, true);
	return now_ns + gaps_again_ns(peer);
}

uint64_t exchange_tell_gaps(struct exchange *x, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	if (x->in_left == 0)
		return next_ns;
	for (unsigned node = 0; node < exchange_node_count(x); node++)
		next_ns = MIN(next_ns, tell_gaps_to(x, node, now_ns));
	return next_ns;
}

/* --- hearing ---------------------------------------------------------------
 */

/* now_ns: read after the STATUS came, or its round trip would be negative. */
static void hear_clock(struct exchange_peer *peer,
		       const struct exchange_status *status, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - status->echo_ns;
	uint64_t round_trip_ns = passed_ns - status->held_ns;

	peer->clock_ns = status->clock_ns;
	peer->clock_heard_ns = now_ns;
	/* Held for longer than it took: clocks may run at different rates.
	 * What our clock has not shown yet is no echo. */
	if (status->echo_ns == 0 || status->echo_ns > now_ns ||
	    status->held_ns > passed_ns)
		return;
	/* Of a clock_ns that was repeated, it grows. */
	peer->last_round_trip_ns = MIN(round_trip_ns, ROUND_TRIP_NS_MAX);
	if (round_trip_ns >= peer->round_trip_ns)
		return;
	peer->round_trip_ns = round_trip_ns;
	peer->offset_ns =
		(int64_t)(status->clock_ns + round_trip_ns / 2 - now_ns);
}

/* Look at rank 0's board from now on; or, for lack of it, tell all others by
 * datagrams what they have not been told yet. */
static void take_offer(struct exchange *x, const uint8_t *offer)
{
	x->waits_for_board = false;
	x->board = exchange_board_find(offer, exchange_node_count(x),
				       exchange_own(x));
	if (x->board)
		exchange_board_attach(x->board,
				      address_port(&x->control.local));
	exchange_tell_all(x, 0);
}

static void hear_hello(struct exchange *x, struct exchange_peer *peer,
		       const struct exchange_status *status)
{
	if (status->blob_bytes < EXCHANGE_BOARD_OFFER_BYTES)
		return;
	/* The first one stands: what follows from it may be under way. */
	if (peer->hello_bytes == 0) {
		peer->hello_bytes =
			status->blob_bytes - EXCHANGE_BOARD_OFFER_BYTES;
		memcpy(peer->hello, status->blob + EXCHANGE_BOARD_OFFER_BYTES,
		       peer->hello_bytes);
	}
	if (status->source == 0 && x->waits_for_board)
		take_offer(x, status->blob);
}

static void hear_blob(struct exchange *x, struct exchange_peer *peer,
		      const struct exchange_status *status)
{
	if (status->blob_bytes == 0)
		return;
	if (status->phase == 0) {
		hear_hello(x, peer, status);
		return;
	}
	peer->blob_bytes = status->blob_bytes;
	memcpy(peer->blob, status->blob, status->blob_bytes);
}

/* Once for each exchange, and not for one that is over: what was made after it
 * must not change. */
static void hear_totals(struct exchange *x, struct exchange_peer *peer,
			const struct exchange_status *status)
{
	unsigned slot = status->exchange % 2;

	if (status->total_count != exchange_node_count(x) ||
	    status->exchange < MAX(x->exchange, 1) ||
	    peer->announced[slot] >= status->exchange)
		return;
	for (unsigned i = 0; i < status->total_count; i++)
		peer->totals[slot][i] = exchange_total(status, i);
	peer->announced_segment_bytes[slot] = status->segment_bytes;
	peer->announced[slot] = status->exchange;
}

/* A list of gaps takes the place of an earlier one. */
static void hear_gaps(struct exchange_peer *peer,
		      const struct exchange_status *status)
{
	if (status->gap_count == 0 || status->gap_serial == peer->resend_serial)
		return;
	memcpy(peer->resend, status->gaps,
	       status->gap_count * sizeof(status->gaps[0]));
	peer->resend_count = status->gap_count;
	peer->resend_at = 0;
	peer->resend_serial = status->gap_serial;
}

static void hear_message_state(struct exchange_peer *peer,
			       const struct exchange_status *status)
{
	if (status->flags & EXCHANGE_READY)
		peer->ready = true;
	peer->round = MAX(peer->round, status->round);
	peer->acked_bytes = MAX(peer->acked_bytes, status->prefix_bytes);
	peer->grant_bytes = MAX(peer->grant_bytes, status->grant_bytes);
	peer->in_sent_bytes = MAX(peer->in_sent_bytes, status->sent_bytes);
	peer->gap_served = status->served_serial;
	hear_gaps(peer, status);
}

static void hear_failure(struct exchange *x,
			 const struct exchange_status *status)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why), "%.*s", (int)status->text_bytes,
		 status->text);
	exchange_note_failure(x,
			      status->failure_node < exchange_node_count(x)
				      ? status->failure_node
				      : status->source,
			      EXIT_PEER, why);
}

/* A peer is at the address that the list of ranks has for it, and DATA goes to
 * the port that the STATUS itself tells, under its tag.  The sender's address
 * only tells the other port, which need not be the default one: a process that
 * took a rank's default port and passes STATUS on from an address of its own
 * gets no record by it. */
static void hear_address(const struct exchange *x, struct exchange_peer *peer,
			 const struct exchange_status *status,
			 const struct address *from)
{
	address_set_port(&peer->control,
			 from ? address_port(from)
			      : exchange_board_port(x->board, status->source));
	peer->data = peer->control;
	address_set_port(&peer->data, status->data_port);
}

static bool is_news(const struct exchange *x, const struct exchange_peer *peer,
		    const struct exchange_status *status)
{
	if (status->phase > peer->phase || status->exchange > peer->exchange)
		return true;
	return status->exchange == x->exchange &&
	       (status->round > peer->round ||
		status->prefix_bytes > peer->acked_bytes ||
		status->grant_bytes > peer->grant_bytes ||
		status->sent_bytes > peer->in_sent_bytes ||
		(!peer->ready && status->flags & EXCHANGE_READY));
}

/* --- what cannot be --------------------------------------------------------
 */

/* Only a rank that is ready, which has all announcements, is not told them
 * again; and beside a failure there may be no room for them. */
static bool lacks_totals(const struct exchange *x,
			 const struct exchange_peer *peer,
			 const struct exchange_status *status)
{
	if (status->total_count != 0)
		return status->total_count != exchange_node_count(x);
	return status->exchange >= MAX(x->exchange, 1) &&
	       !(status->flags & EXCHANGE_FAILED) &&
	       peer->announced[status->exchange % 2] != status->exchange;
}

/* All ranks come to the same collectives and barriers in the same order: none
 * is ahead in one and behind in the other. */
static bool is_out_of_step(const struct exchange *x,
			   const struct exchange_status *status)
{
	uint32_t phase = MAX(x->phase, x->phase_wanted);

	return (status->exchange < x->exchange && status->phase > phase) ||
	       (status->exchange > x->exchange && status->phase < phase);
}

static bool asks_for_too_much(const struct exchange_peer *peer,
			      const struct exchange_status *status)
{
	uint64_t segment_count = peer->out_bytes / peer->segment_bytes +
				 (peer->out_bytes % peer->segment_bytes != 0);

	/* They ascend. */
	for (unsigned i = 0; i < status->gap_count; i++)
		if (status->gaps[i].first >= segment_count ||
		    status->gaps[i].count >
			    segment_count - status->gaps[i].first)
			return true;
	return status->prefix_bytes > peer->out_bytes ||
	       status->grant_bytes > peer->out_bytes;
}

/* NULL: it may be so.  Its totals have been heard. */
static const char *find_lie(const struct exchange *x,
			    const struct exchange_peer *peer,
			    const struct exchange_status *status)
{
	if (lacks_totals(x, peer, status))
		return "does not tell all ranks how much it has for them";
	if (is_out_of_step(x, status))
		return "does other things than this rank, or in another order";
	if (status->exchange != x->exchange || x->exchange == 0)
		return NULL;
	if (asks_for_too_much(peer, status))
		return "speaks of more than was announced to it";
	if (peer->announced[x->exchange % 2] == x->exchange &&
	    status->sent_bytes >
		    exchange_bytes(x, status->source, exchange_own(x)))
		return "says that it has sent more than it has announced";
	return NULL;
}

/* from: NULL if it came by way of the board. */
static void hear(struct exchange *x, const struct exchange_status *status,
		 const struct address *from)
{
	struct exchange_peer *peer = &x->peers[status->source];
	uint64_t now_ns = clock_now_ns();
	bool answer = (status->flags & EXCHANGE_ASKS) != 0;
	bool waited = x->waits_for_board;
	const char *lie;

	if (peer->heard && (int32_t)(status->serial - peer->serial_in) <= 0)
		return;
	peer->serial_in = status->serial;
	/* Who has not heard us yet waits for that; who looks at the board has
	 * only to look. */
	answer |= from && !peer->heard && status->echo_ns == 0;
	peer->heard = true;
	peer->heard_ns = now_ns;
	peer->hears |= status->echo_ns != 0;
	peer->patient_ns = now_ns + status->busy_ms * (uint64_t)1000000;
	hear_address(x, peer, status, from);
	hear_clock(peer, status, now_ns);
	hear_blob(x, peer, status);
	hear_totals(x, peer, status);
	if (status->flags & EXCHANGE_FAILED)
		hear_failure(x, status);
	lie = find_lie(x, peer, status);
	if (lie) {
		exchange_note_failure(x, status->source, EXIT_PEER, lie);
		return;
	}
	if (is_news(x, peer, status))
		peer->progress_ns = now_ns;
	peer->phase = MAX(peer->phase, status->phase);
	peer->exchange = MAX(peer->exchange, status->exchange);
	if (status->exchange == x->exchange && x->exchange > 0)
		hear_message_state(peer, status);
	/* With the board all have been told, or have not. */
	if (answer && waited == x->waits_for_board)
		exchange_tell(x, status->source, 0);
}

static bool is_for_us(const struct exchange *x,
		      const struct exchange_status *status)
{
	return status->destination == exchange_own(x) &&
	       status->source < exchange_node_count(x) &&
	       status->source != exchange_own(x) &&
	       status->exchange <= x->exchange + 1;
}

static bool hear_datagrams(struct exchange *x)
{
	uint8_t datagram[EXCHANGE_STATUS_BYTES_MAX + 1];
	struct datagram_head head;
	unsigned count = 0;

	while (count < HEARD_AT_ONCE &&
	       datagram_receive(&x->control, datagram, sizeof(datagram),
				&head) > 0) {
		struct exchange_status status;

		count++;
		if (x->board && head.total_bytes == EXCHANGE_RING_BYTES)
			continue;
		if (head.total_bytes > EXCHANGE_STATUS_BYTES_MAX ||
		    !exchange_status_open(datagram, head.total_bytes, &x->keys,
					  &status) ||
		    !is_for_us(x, &status)) {
			x->counters.stray_datagrams++;
			continue;
		}
		hear(x, &status, &head.from);
	}
	return count > 0;
}

static bool hear_board(struct exchange *x)
{
	uint8_t bytes[EXCHANGE_STATUS_BYTES_MAX];
	size_t byte_count;
	unsigned source;
	bool any = false;

	for (unsigned i = 0; i < HEARD_AT_ONCE; i++) {
		struct exchange_status status;

		byte_count = exchange_board_take(x->board, bytes, &source);
		if (byte_count == 0)
			break;
		if (!exchange_status_take(bytes, byte_count, &status) ||
		    !is_for_us(x, &status) || status.source != source)
			continue;
		any = true;
		hear(x, &status, NULL);
	}
	return any;
}

/* Datagrams first: they may be older, and then would be of no use. */
bool exchange_hear(struct exchange *x)
{
	bool any = hear_datagrams(x);

	if (x->board)
		any |= hear_board(x);
	return any;
}
