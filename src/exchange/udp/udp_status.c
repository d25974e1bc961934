/*
 * udp_status.c - tell where this rank stands, and hear where the others are
 *
 * A STATUS is made from the state of the moment, whatever the occasion: there
 * is no reply or event that could be lost, only newer states.
 */
#include "base/clock.h"
#include "exchange/udp/udp_state.h"

/* STATUS that one call takes: several of each rank.  A rank that sends them
 * without end does not keep us from the rest. */
#define TAKEN_AT_ONCE (8 * UDP_NODES_MAX)

void udp_status_begin(struct udp *x)
{
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_heard *heard = &x->peers[node].heard;

		heard->round = 0;
		heard->ready = false;
		heard->prefix_bytes = 0;
		heard->grant_bytes = 0;
		heard->sent_bytes = 0;
	}
}

/* --- sending ----------------------------------------------------------------
 */

static void fill_message_state(const struct udp *x, unsigned node,
			       struct udp_wire_status *status)
{
	const struct udp_peer *peer = &x->peers[node];

	status->round = x->rounds_handed_over;
	status->segment_bytes = peer->out.segment_bytes;
	status->sent_bytes = peer->out.sent_bytes;
	if (x->prepared && peer->meets) {
		status->flags |= UDP_STATUS_READY;
		status->prefix_bytes =
			arrivals_prefix_bytes(&peer->in.arrivals);
		status->grant_bytes = peer->in.granted_bytes;
	}
	/* A peer that is ready has all announcements. */
	if (peer->heard.ready)
		return;
	status->totals = (const uint8_t *)x->totals;
	status->total_count = (uint16_t)udp_node_count(x);
	if (!x->tells_all) {
		status->totals = (const uint8_t *)&x->totals[node];
		status->total_count = 1;
	}
}

/* Before the first barrier: the hello, until the peer has it. */
static void fill_application(const struct udp *x, unsigned node,
			     struct udp_wire_status *status)
{
	if (x->phase == 0 && !x->peers[node].heard.hears_us) {
		status->application = x->hello;
		status->application_bytes = (uint16_t)(UDP_PAGE_OFFER_BYTES +
						       x->options.hello_bytes);
	} else if (node == 0) {
		status->application = x->application;
		status->application_bytes = (uint16_t)x->application_bytes;
		if (x->phase == 0 && x->application_bytes > 0)
			status->flags |= UDP_STATUS_TOLD;
	}
}

static void fill_failure(const struct udp *x, struct udp_wire_status *status)
{
	const struct exchange_failed *failed = &x->base.failed;

	if (!failed->any)
		return;
	status->flags |= UDP_STATUS_FAILED;
	status->failure_node = (uint16_t)failed->node;
	status->failure_status = (uint16_t)failed->failure.status;
	status->text = failed->failure.why;
	status->text_bytes =
		(uint16_t)MIN(strlen(failed->failure.why), UDP_TEXT_BYTES_MAX);
}

static void fill_gaps(const struct udp_peer *peer,
		      struct udp_wire_status *status)
{
	const struct arrivals *arrivals = &peer->in.arrivals;
	uint64_t limit =
		DIV_ROUND_UP(peer->heard.sent_bytes, arrivals->segment_bytes);

	limit = MIN(MAX(limit, arrivals->end), arrivals->segment_count);
	status->gap_count = (uint16_t)arrivals_gaps(arrivals, limit,
						    status->gaps, UDP_GAPS_MAX);
}

/* To the peer's address; before the peer was heard, to all ports that it may
 * have. */
static void send_datagram(struct udp *x, unsigned node, const uint8_t *datagram,
			  size_t byte_count)
{
	struct udp_peer *peer = &x->peers[node];
	struct iovec part = { (void *)datagram, byte_count };
	unsigned tries =
		peer->heard.any || peer->status_serial < 3 ? 1 : UDP_PORT_TRIES;

	for (unsigned i = 0; i < tries; i++) {
		struct address to = peer->control;

		address_set_port(
			&to, (uint16_t)(address_port(&to) + i * x->port_step));
		datagram_send(&x->control, &to, &part, 1, byte_count,
			      byte_count);
		x->base.counters.status_datagrams++;
	}
}

/* The peer then looks at the status page. */
static void send_wake_up(struct udp *x, unsigned node)
{
	struct address to = x->peers[node].control;
	uint8_t nothing[UDP_WAKE_UP_BYTES] = { 0 };
	struct iovec part = { nothing, sizeof(nothing) };

	address_set_port(&to, udp_page_port(x->page, node));
	datagram_send(&x->control, &to, &part, 1, sizeof(nothing),
		      sizeof(nothing));
	x->base.counters.status_datagrams++;
}

/* Put the STATUS into the peer's mailbox.  False: a datagram is needed. */
static bool put_on_page(struct udp *x, unsigned node,
			const struct udp_wire_status *status)
{
	bool urgent =
		(status->flags & (UDP_STATUS_QUERY | UDP_STATUS_FAILED)) != 0;
	uint8_t bytes[UDP_STATUS_BYTES_MAX];

	if (status->gap_count > 0 ||
	    !udp_page_put(x->page, node, bytes,
			  udp_wire_put_status(status, bytes)))
		return false;
	if (udp_page_port(x->page, node) != 0) {
		if (udp_page_takes_wake_up(x->page, node, urgent))
			send_wake_up(x, node);
		return true;
	}
	/* A peer that is not there yet finds the STATUS when it comes, or
	 * queries us.  But rank 0 has to tell where the page is. */
	return udp_own(x) != 0 && !x->peers[node].heard.any && !urgent;
}

static void send_status(struct udp *x, unsigned node, uint32_t flags,
			bool with_gaps)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_peer *peer = &x->peers[node];
	struct udp_wire_status status = {
		.source = (uint16_t)udp_own(x),
		.destination = (uint16_t)node,
		.serial = ++peer->status_serial,
		.flags = flags,
		.phase = x->phase,
		.epoch = x->epoch,
		.data_port = address_port(&x->data.local),
		.delay_ms = x->delay_ms,
		.served_serial = peer->out.served_serial,
		.gap_serial = peer->in.gap_serial,
	};

	if (x->epoch > 0)
		fill_message_state(x, node, &status);
	if (with_gaps)
		fill_gaps(peer, &status);
	fill_application(x, node, &status);
	fill_failure(x, &status);
	status.clock_ns = clock_now_ns();
	udp_clock_echo(&peer->clock, &status);
	if (x->page && put_on_page(x, node, &status))
		return;
	send_datagram(x, node, datagram,
		      udp_wire_seal_status(&status, &x->keys, datagram));
}

void udp_status_send(struct udp *x, unsigned node, uint32_t flags)
{
	send_status(x, node, flags, false);
}

/* The next rank first: all ranks do this at about the same time. */
void udp_status_send_all(struct udp *x, uint32_t flags)
{
	unsigned count = udp_node_count(x);

	for (unsigned i = 1; i < count; i++)
		udp_status_send(x, (udp_own(x) + i) % count, flags);
}

void udp_status_send_ring(struct udp *x)
{
	for (unsigned i = 1; i < x->ring_count; i++)
		udp_status_send(x, x->ring[i], 0);
}

/* A STATUS is as easily lost as the segments that it names: send it twice. */
void udp_status_send_twice(struct udp *x, unsigned node)
{
	send_status(x, node, 0, false);
	send_status(x, node, 0, false);
}

void udp_status_send_gaps(struct udp *x, unsigned node)
{
	send_status(x, node, 0, true);
	send_status(x, node, 0, true);
}

/* --- hearing ---------------------------------------------------------------
 */

/* Use rank 0's status page from now on; or, if there is none for us, send all
 * other ranks in datagrams what they have not been told yet. */
static void take_offer(struct udp *x, const uint8_t *offer)
{
	x->awaits_page = false;
	x->page = udp_page_find(offer, udp_node_count(x), udp_own(x));
	if (x->page)
		udp_page_attach(x->page, address_port(&x->control.local));
	udp_status_send_all(x, 0);
}

static void handle_hello(struct udp *x, struct udp_heard *heard,
			 const struct udp_wire_status *status)
{
	if (status->application_bytes < UDP_PAGE_OFFER_BYTES)
		return;
	/* Only the first hello counts: what follows from it may be under way.
	 */
	if (heard->hello_bytes == 0) {
		heard->hello_bytes =
			status->application_bytes - UDP_PAGE_OFFER_BYTES;
		memcpy(heard->hello, status->application + UDP_PAGE_OFFER_BYTES,
		       heard->hello_bytes);
	}
	if (status->source == 0 && x->awaits_page)
		take_offer(x, status->application);
}

static void handle_application(struct udp *x, struct udp_heard *heard,
			       const struct udp_wire_status *status)
{
	/* What a rank has told before a barrier is not what it says there, even
	 * if it says nothing there. */
	if (status->phase > heard->phase)
		heard->application_bytes = 0;
	if (status->application_bytes == 0)
		return;
	if (status->phase == 0 && !(status->flags & UDP_STATUS_TOLD)) {
		handle_hello(x, heard, status);
		return;
	}
	heard->application_bytes = status->application_bytes;
	memcpy(heard->application, status->application,
	       status->application_bytes);
}

/* A length for each rank, or the one for us; all lengths only of so many ranks
 * that we keep them. */
static bool is_wrong_count(const struct udp *x,
			   const struct udp_wire_status *status)
{
	return status->total_count > 1 &&
	       (status->total_count != udp_node_count(x) ||
		udp_node_count(x) > EXCHANGE_KNOWN_MAX);
}

/* Totals count once for each epoch, and not for one that is over: what was made
 * after them must not change. */
static void handle_totals(struct udp *x, struct udp_heard *heard,
			  const struct udp_wire_status *status)
{
	struct udp_announced *announced =
		&heard->announced[status->epoch % UDP_ANNOUNCED];
	bool all = status->total_count > 1;

	if (status->total_count == 0 || is_wrong_count(x, status) ||
	    status->epoch < MAX(x->epoch, 1) ||
	    announced->epoch >= status->epoch)
		return;
	announced->byte_count = udp_wire_total(status, all ? udp_own(x) : 0);
	announced->has_totals = all;
	for (unsigned i = 0; all && i < status->total_count; i++)
		announced->totals[i] = udp_wire_total(status, i);
	announced->segment_bytes = status->segment_bytes;
	announced->epoch = status->epoch;
}

/* A list of gaps takes the place of an earlier one. */
static void handle_gaps(struct udp_out *out,
			const struct udp_wire_status *status)
{
	if (status->gap_count == 0 || status->gap_serial == out->resend_serial)
		return;
	memcpy(out->resend, status->gaps,
	       status->gap_count * sizeof(status->gaps[0]));
	out->resend_count = status->gap_count;
	out->resend_at = 0;
	out->resend_serial = status->gap_serial;
}

static void handle_message_state(struct udp_peer *peer,
				 const struct udp_wire_status *status)
{
	struct udp_heard *heard = &peer->heard;

	if (status->flags & UDP_STATUS_READY)
		heard->ready = true;
	heard->round = MAX(heard->round, status->round);
	heard->prefix_bytes = MAX(heard->prefix_bytes, status->prefix_bytes);
	heard->grant_bytes = MAX(heard->grant_bytes, status->grant_bytes);
	heard->sent_bytes = MAX(heard->sent_bytes, status->sent_bytes);
	heard->served_serial = status->served_serial;
	handle_gaps(&peer->out, status);
}

static void handle_failure(struct udp *x, const struct udp_wire_status *status)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why), "%.*s", (int)status->text_bytes,
		 status->text);
	exchange_note_failure(&x->base,
			      status->failure_node < udp_node_count(x)
				      ? status->failure_node
				      : status->source,
			      EXIT_PEER, why);
}

/* A peer is at the address that the list of ranks has for it, and DATA goes to
 * the port that the STATUS itself tells, under its tag.  The sender's address
 * only tells the other port, which need not be the default one: a process that
 * took a rank's default port and passes STATUS on from an address of its own
 * gets no record by it. */
static void handle_address(const struct udp *x, struct udp_peer *peer,
			   const struct udp_wire_status *status,
			   const struct address *from)
{
	address_set_port(&peer->control,
			 from ? address_port(from)
			      : udp_page_port(x->page, status->source));
	peer->data = peer->control;
	address_set_port(&peer->data, status->data_port);
}

static bool is_progress(const struct udp *x, const struct udp_heard *heard,
			const struct udp_wire_status *status)
{
	if (status->phase > heard->phase || status->epoch > heard->epoch)
		return true;
	return status->epoch == x->epoch &&
	       (status->round > heard->round ||
		status->prefix_bytes > heard->prefix_bytes ||
		status->grant_bytes > heard->grant_bytes ||
		status->sent_bytes > heard->sent_bytes ||
		(!heard->ready && status->flags & UDP_STATUS_READY));
}

/* --- impossible numbers -----------------------------------------------------
 */

/* A rank that is ready has all announcements, and is not sent them again; and
 * beside a failure there may be no room for them. */
static bool lacks_totals(const struct udp *x, const struct udp_heard *heard,
			 const struct udp_wire_status *status)
{
	if (status->total_count != 0)
		return is_wrong_count(x, status);
	return status->epoch >= MAX(x->epoch, 1) &&
	       !(status->flags & UDP_STATUS_FAILED) &&
	       heard->announced[status->epoch % UDP_ANNOUNCED].epoch !=
		       status->epoch;
}

/* All ranks come to the same collectives and barriers in the same order: none
 * is ahead in one and behind in the other. */
static bool is_out_of_step(const struct udp *x,
			   const struct udp_wire_status *status)
{
	uint32_t phase = MAX(x->phase, x->phase_wanted);

	return (status->epoch < x->epoch && status->phase > phase) ||
	       (status->epoch > x->epoch && status->phase < phase);
}

/* A peer begins the next collective when we have all of its message and it has
 * all of ours.  We would wait no longer for one that claims it before. */
static bool goes_on_too_early(const struct udp *x, const struct udp_peer *peer,
			      const struct udp_wire_status *status)
{
	return x->collective && peer->meets && status->epoch > x->epoch &&
	       (!x->prepared || !arrivals_complete(&peer->in.arrivals) ||
		peer->out.sent_bytes < peer->out.byte_count);
}

static bool asks_for_too_much(const struct udp_out *out,
			      const struct udp_wire_status *status)
{
	uint64_t segment_count = out->byte_count / out->segment_bytes +
				 (out->byte_count % out->segment_bytes != 0);

	/* Gaps ascend: udp_wire.c has checked that. */
	for (unsigned i = 0; i < status->gap_count; i++)
		if (status->gaps[i].first >= segment_count ||
		    status->gaps[i].count >
			    segment_count - status->gaps[i].first)
			return true;
	return status->prefix_bytes > out->byte_count ||
	       status->grant_bytes > out->byte_count;
}

/* What is impossible in this STATUS, whose totals have been taken; or NULL. */
static const char *find_lie(const struct udp *x, const struct udp_peer *peer,
			    const struct udp_wire_status *status)
{
	if (lacks_totals(x, &peer->heard, status))
		return "does not tell all ranks how much it has for them";
	if (is_out_of_step(x, status))
		return "does other things than this rank, or in another order";
	if (goes_on_too_early(x, peer, status))
		return "goes on to the next collective before this one is over";
	if (status->epoch != x->epoch || x->epoch == 0)
		return NULL;
	if (asks_for_too_much(&peer->out, status))
		return "speaks of more than was announced to it";
	if (udp_has_announced(x, status->source) &&
	    status->sent_bytes > udp_announced(x, status->source)->byte_count)
		return "says that it has sent more than it has announced";
	return NULL;
}

/* --- taking STATUS ----------------------------------------------------------
 */

/* What holds whether or not the rest of the STATUS can be true. */
static void handle_presence(const struct udp *x, struct udp_peer *peer,
			    const struct udp_wire_status *status,
			    const struct address *from, uint64_t now_ns)
{
	peer->heard.serial = status->serial;
	peer->heard.any = true;
	peer->heard.hears_us |= status->echo_ns != 0;
	peer->liveness.heard_ns = now_ns;
	peer->liveness.quiet_until_ns =
		now_ns + status->delay_ms * (uint64_t)1000000;
	handle_address(x, peer, status, from);
	udp_clock_hear(&peer->clock, status, now_ns);
}

/* from: NULL if it came by way of the status page. */
static void handle_status(struct udp *x, const struct udp_wire_status *status,
			  const struct address *from)
{
	struct udp_peer *peer = &x->peers[status->source];
	struct udp_heard *heard = &peer->heard;
	uint64_t now_ns = clock_now_ns();
	bool answer = (status->flags & UDP_STATUS_QUERY) != 0;
	bool awaited_page = x->awaits_page;
	const char *lie;

	if (heard->any && (int32_t)(status->serial - heard->serial) <= 0)
		return;
	/* A peer that has not heard us yet waits for that; one that uses the
	 * status page has only to look. */
	answer |= from && !heard->any && status->echo_ns == 0;
	handle_presence(x, peer, status, from, now_ns);
	handle_application(x, heard, status);
	handle_totals(x, heard, status);
	if (status->flags & UDP_STATUS_FAILED)
		handle_failure(x, status);
	lie = find_lie(x, peer, status);
	if (lie) {
		exchange_note_failure(&x->base, status->source, EXIT_PEER, lie);
		return;
	}
	if (is_progress(x, heard, status))
		peer->liveness.progress_ns = now_ns;
	heard->phase = MAX(heard->phase, status->phase);
	heard->epoch = MAX(heard->epoch, status->epoch);
	if (peer->meets && status->epoch == x->epoch && x->epoch > 0)
		handle_message_state(peer, status);
	/* If this was rank 0's offer, take_offer() has sent to all ranks. */
	if (answer && awaited_page == x->awaits_page)
		udp_status_send(x, status->source, 0);
}

static bool is_for_us(const struct udp *x, const struct udp_wire_status *status)
{
	return status->destination == udp_own(x) &&
	       status->source < udp_node_count(x) &&
	       status->source != udp_own(x) &&
	       status->epoch <= x->epoch + EXCHANGE_LEAD_MAX;
}

static bool receive_datagrams(struct udp *x)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX + 1];
	struct datagram_head head;
	unsigned count = 0;

	while (count < TAKEN_AT_ONCE &&
	       datagram_receive(&x->control, datagram, sizeof(datagram),
				&head) > 0) {
		struct udp_wire_status status;

		count++;
		if (x->page && head.total_bytes == UDP_WAKE_UP_BYTES)
			continue;
		if (head.total_bytes > UDP_STATUS_BYTES_MAX ||
		    !udp_wire_open_status(datagram, head.total_bytes, &x->keys,
					  &status) ||
		    !is_for_us(x, &status)) {
			x->base.counters.stray_datagrams++;
			continue;
		}
		handle_status(x, &status, &head.from);
	}
	return count > 0;
}

static bool receive_from_page(struct udp *x)
{
	uint8_t bytes[UDP_STATUS_BYTES_MAX];
	size_t byte_count;
	unsigned source;
	bool any = false;

	for (unsigned i = 0; i < TAKEN_AT_ONCE; i++) {
		struct udp_wire_status status;

		byte_count = udp_page_take(x->page, bytes, &source);
		if (byte_count == 0)
			break;
		if (!udp_wire_take_status(bytes, byte_count, &status) ||
		    !is_for_us(x, &status) || status.source != source)
			continue;
		any = true;
		handle_status(x, &status, NULL);
	}
	return any;
}

/* Datagrams first: they may be older, and then would be of no use. */
bool udp_status_receive(struct udp *x)
{
	bool any = receive_datagrams(x);

	if (x->page)
		any |= receive_from_page(x);
	return any;
}

unsigned udp_status_needed(const struct udp *x)
{
	unsigned unheard = 0, unannounced = 0, unacked = 0, behind = 0;

	for (unsigned i = 1; x->collective && i < x->ring_count; i++) {
		const struct udp_peer *peer = &x->peers[x->ring[i]];

		if (x->prepared && peer->out.sent_bytes < peer->out.byte_count)
			return 1;
		unannounced += !udp_has_announced(x, x->ring[i]);
		unacked += !udp_is_acked(x, x->ring[i]);
	}
	if (x->collective)
		return MAX(1, x->prepared ? unacked : unannounced);
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		const struct udp_peer *peer = &x->peers[node];

		if (node == udp_own(x))
			continue;
		unheard += !peer->heard.any;
		behind += peer->heard.phase < x->phase_wanted;
	}
	if (unheard > 0)
		return unheard;
	return udp_own(x) == 0 ? MAX(1, behind) : 1;
}
