/*
 * udp_status.c - tell where this rank stands, and hear where the others are
 *
 * A STATUS is made from the state of the moment, whatever the occasion: there
 * is no reply or event that could be lost, only newer states.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/udp/udp_state.h"

/* STATUS that one call takes of each rank.  A rank that sends them without end
 * does not keep us from the rest. */
#define TAKEN_PER_RANK 8
#define ROUND_TRIP_NS_MAX ((uint64_t)250000000)

/* --- peers -------------------------------------------------------------------
 */

int udp_status_open(struct udp *x)
{
	unsigned count = udp_node_count(x);

	x->stranger.clock.round_trip_ns = UINT64_MAX;
	x->stranger.segment_bytes = 1; /* messages of 0 bytes are cut, too */
	x->peers = calloc(count, sizeof(void *));
	x->control_ports = calloc(count, sizeof(*x->control_ports));
	for (unsigned node = 0; x->peers && node < count; node++)
		x->peers[node] = &x->stranger;
	return x->peers && x->control_ports ? 0 : -ENOMEM;
}

void udp_status_close(struct udp *x)
{
	for (unsigned node = 0; x->peers && node < udp_node_count(x); node++) {
		struct udp_peer *peer = x->peers[node];

		if (peer == &x->stranger)
			continue;
		arrivals_fini(&peer->in.arrivals);
		free(peer->heard.gaps);
		free(peer);
	}
	free(x->peers);
	free(x->control_ports);
}

struct udp_peer *udp_peer_of(struct udp *x, unsigned node)
{
	struct udp_peer *peer = x->peers[node];

	if (peer != &x->stranger)
		return peer;
	peer = malloc(sizeof(*peer));
	if (!peer) {
		exchange_note_failure(&x->base, udp_own(x), EXIT_RESOURCES,
				      "memory for a peer");
		return &x->stranger;
	}
	*peer = (struct udp_peer){
		.segment_bytes = x->segment_bytes[node],
		.clock = { .round_trip_ns = UINT64_MAX },
	};
	x->peers[node] = peer;
	return peer;
}

void udp_status_begin(struct udp *x)
{
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_heard *heard = &x->peers[node]->heard;

		heard->round = 0;
		heard->ready = false;
		heard->prefix_bytes = 0;
		heard->grant_bytes = 0;
		heard->sent_bytes = 0;
	}
}

/* --- sending ----------------------------------------------------------------
 */

/* Fill the echo of a STATUS that has its own clock_ns already. */
static void echo_clock(const struct udp_clock *clock,
		       struct udp_wire_status *status)
{
	status->echo_ns = clock->theirs_ns;
	if (clock->theirs_ns)
		status->held_ns = status->clock_ns - clock->heard_ns;
}

/* to_all: the lengths of our messages to all nodes; else that of the one to
 * this node. */
static void fill_totals(const struct udp *x, unsigned node,
			const uint64_t *lengths, bool to_all,
			struct udp_wire_status *status)
{
	status->totals = (const uint8_t *)&lengths[to_all ? 0 : node];
	status->total_count = to_all ? (uint16_t)udp_node_count(x) : 1;
}

static void fill_message_state(const struct udp *x, unsigned node,
			       struct udp_wire_status *status)
{
	const struct udp_peer *peer = x->peers[node];

	status->round = x->rounds_handed_over;
	/* Also if there was no memory for a peer of its own. */
	status->segment_bytes = x->segment_bytes[node];
	status->sent_bytes = peer->out.sent_bytes;
	status->grant_bytes = x->first_window_bytes;
	if (x->base.is_prepared && x->base.peers[node]->meets) {
		status->flags |= UDP_STATUS_READY;
		status->prefix_bytes =
			arrivals_prefix_bytes(&peer->in.arrivals);
		status->grant_bytes = peer->in.granted_bytes;
	}
	/* A peer that is ready has all announcements. */
	if (!peer->heard.ready)
		fill_totals(x, node, x->base.lengths, x->base.tells_all,
			    status);
}

/* The peer is still in the collective that this rank has left: there was
 * nothing for the peer, but it may lack what this rank has announced. */
static bool is_behind(const struct udp *x, unsigned node)
{
	return x->base.before.epoch > 0 &&
	       x->peers[node]->heard.epoch == x->base.before.epoch;
}

/* Tell the peer where this rank stood when it left that collective: all that
 * the peer had for it has come. */
static void fill_state_before(const struct udp *x, unsigned node,
			      struct udp_wire_status *status)
{
	const struct exchange_before *before = &x->base.before;
	const struct exchange_peer *peer = x->base.peers[node];
	uint64_t bytes =
		peer->announced[before->epoch % EXCHANGE_ANNOUNCED].byte_count;

	status->epoch = before->epoch;
	status->round = udp_node_count(x);
	status->segment_bytes = x->segment_bytes[node];
	status->flags |= UDP_STATUS_READY;
	status->prefix_bytes = bytes;
	status->grant_bytes = bytes;
	status->sent_bytes = load_le64(&before->lengths[node]);
	fill_totals(x, node, before->lengths, before->told_all, status);
}

/* A STATUS before the first barrier has the hello, until the peer has it. */
static void fill_application(const struct udp *x, unsigned node,
			     struct udp_wire_status *status)
{
	size_t bytes;
	const void *payload =
		exchange_application_payload(&x->base, udp_own(x), &bytes);

	if (x->base.phase == 0 && !x->peers[node]->heard.hears_us) {
		status->application = x->hello;
		status->application_bytes =
			(uint16_t)(UDP_PAGE_OFFER_BYTES + x->hello_bytes);
	} else if (node == 0) {
		status->application = payload;
		status->application_bytes = (uint16_t)bytes;
		if (x->base.phase == 0 && bytes > 0)
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
	uint64_t limit;

	assert(arrivals->segment_bytes > 0); /* something is missing */
	limit = DIV_ROUND_UP(peer->heard.sent_bytes, arrivals->segment_bytes);
	limit = MIN(MAX(limit, arrivals->end), arrivals->segment_count);
	status->gap_count = (uint16_t)arrivals_gaps(arrivals, limit,
						    status->gaps, UDP_GAPS_MAX);
}

/* Send to the peer's address; before the peer was heard, to all ports that it
 * may have. */
static void send_datagram(struct udp *x, unsigned node, const uint8_t *datagram,
			  size_t byte_count)
{
	struct datagram_socket *socket = &udp_mover_from(x, node)->control;
	struct iovec part = { (void *)datagram, byte_count };
	unsigned tries = x->base.peers[node]->is_here ||
					 x->peers[node]->status_serial < 3
				 ? 1
				 : UDP_PORT_TRIES;
	/* Both are read before the state is lent: meanwhile the rank's own
	 * thread may begin to keep it, and the node tell its port. */
	bool lends = !x->keeps_state;
	unsigned first_port = x->control_ports[node];

	for (unsigned i = 0; i < tries; i++) {
		uint16_t port = (uint16_t)(first_port + i * x->port_step);
		struct address to = udp_address(x, node, port);

		x->base.counters.status_datagrams++;
		if (lends)
			udp_mover_lend_state(x);
		datagram_send(socket, &to, &part, 1, byte_count, byte_count);
		if (lends)
			udp_mover_retake_state(x);
	}
}

/* The peer then looks at the status page. */
static void send_wake_up(struct udp *x, unsigned node)
{
	struct address to = udp_address(x, node, udp_page_port(x->page, node));
	uint8_t nothing[UDP_WAKE_UP_BYTES] = { 0 };
	struct iovec part = { nothing, sizeof(nothing) };

	datagram_send(&x->movers[0].control, &to, &part, 1, sizeof(nothing),
		      sizeof(nothing));
	x->base.counters.status_datagrams++;
}

/* Put the STATUS into the peer's mailbox.  False: a datagram is needed. */
static bool put_on_page(struct udp *x, unsigned node,
			struct udp_wire_status *status)
{
	bool urgent =
		(status->flags & (UDP_STATUS_QUERY | UDP_STATUS_FAILED)) != 0;
	uint8_t bytes[UDP_STATUS_BYTES_MAX];

	if (status->gap_count > 0 ||
	    !udp_page_put(x->page, node, status->epoch, bytes,
			  udp_wire_put_status(status, bytes)))
		return false;
	if (udp_page_port(x->page, node) != 0) {
		if (udp_page_takes_wake_up(x->page, node, urgent))
			send_wake_up(x, node);
		return true;
	}
	/* A peer that is not there yet finds the STATUS when it comes, or
	 * queries us.  But rank 0 has to tell where the page is. */
	return udp_own(x) != 0 && !x->base.peers[node]->is_here && !urgent;
}

enum occasion {
	OCCASION_ANY,
	OCCASION_ANSWER, /* to a peer that may be behind */
	OCCASION_GAPS,	 /* with a list of the segments that are missing */
};

static void send_status(struct udp *x, unsigned node, uint32_t flags,
			enum occasion occasion)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_peer *peer = udp_peer_of(x, node);
	struct udp_wire_status status = {
		.source = (uint16_t)udp_own(x),
		.destination = (uint16_t)node,
		.serial = ++peer->status_serial,
		.flags = flags,
		.phase = x->base.phase,
		.epoch = x->base.epoch,
		.data_port = address_port(&udp_mover_from(x, node)->data.local),
		.delay_ms = x->base.delay_ms,
		.served_serial = peer->out.served_serial,
		.gap_serial = peer->in.gap_serial,
	};

	if (occasion == OCCASION_ANSWER && is_behind(x, node))
		fill_state_before(x, node, &status);
	else if (x->base.epoch > 0)
		fill_message_state(x, node, &status);
	if (occasion == OCCASION_GAPS)
		fill_gaps(peer, &status);
	fill_application(x, node, &status);
	fill_failure(x, &status);
	status.clock_ns = clock_now_ns();
	echo_clock(&peer->clock, &status);
	if (x->page && put_on_page(x, node, &status))
		return;
	send_datagram(x, node, datagram,
		      udp_wire_seal_status(&status, &x->keys, datagram));
}

void udp_status_send(struct udp *x, unsigned node, uint32_t flags)
{
	unsigned count = udp_node_count(x);

	if (node != EXCHANGE_ALL)
		send_status(x, node, flags, OCCASION_ANY);
	/* The next rank first: all ranks do this at about the same time. */
	for (unsigned i = 1; node == EXCHANGE_ALL && i < count; i++)
		send_status(x, (udp_own(x) + i) % count, flags, OCCASION_ANY);
}

void udp_status_announce(struct udp_mover *mover)
{
	struct udp *x = mover->x;

	for (unsigned i = 1; i < x->base.ring_count; i++)
		if (udp_mover_from(x, x->base.ring[i]) == mover)
			udp_status_send(x, x->base.ring[i], 0);
}

void udp_status_send_twice(struct udp *x, unsigned node)
{
	send_status(x, node, 0, OCCASION_ANY);
	send_status(x, node, 0, OCCASION_ANY);
}

/* A STATUS is as easily lost as the segments that it names: send it twice. */
void udp_status_send_gaps(struct udp *x, unsigned node)
{
	send_status(x, node, 0, OCCASION_GAPS);
	send_status(x, node, 0, OCCASION_GAPS);
}

/* --- the first STATUS --------------------------------------------------------
 */

void udp_status_guess(struct udp *x, unsigned node, uint16_t port)
{
	x->control_ports[node] = port;
}

/* Rank 0 tells all ranks where the status page is.  The others tell rank 0 that
 * they are there, and the rest through the page.  Without a page all ranks tell
 * all. */
void udp_status_say_hello(struct udp *x)
{
	const void *hello =
		exchange_hello(&x->base, udp_own(x), &x->hello_bytes);
	unsigned count = udp_node_count(x);
	bool page = x->options.status_page && count > 1;

	memcpy(x->hello + UDP_PAGE_OFFER_BYTES, hello, x->hello_bytes);
	if (page && udp_own(x) != 0) {
		x->awaits_page = true;
		udp_status_send(x, 0, 0);
		return;
	}
	if (page)
		x->page = udp_page_make(count, x->hello);
	if (x->page)
		udp_page_attach(x->page,
				address_port(&x->movers[0].control.local));
	udp_status_send(x, EXCHANGE_ALL, 0);
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
		udp_page_attach(x->page,
				address_port(&x->movers[0].control.local));
	udp_status_send(x, EXCHANGE_ALL, 0);
}

static void handle_hello(struct udp *x, const struct udp_wire_status *status)
{
	if (status->application_bytes < UDP_PAGE_OFFER_BYTES)
		return;
	exchange_hear_hello(&x->base, status->source,
			    status->application + UDP_PAGE_OFFER_BYTES,
			    status->application_bytes - UDP_PAGE_OFFER_BYTES);
	if (status->source == 0 && x->awaits_page)
		take_offer(x, status->application);
}

static void handle_application(struct udp *x,
			       const struct udp_wire_status *status)
{
	unsigned source = status->source;

	/* What a rank has told before a barrier is not what it says there, even
	 * if it says nothing there. */
	if (status->phase > x->base.peers[source]->phase)
		exchange_hear_payload(&x->base, source, NULL, 0);
	if (status->application_bytes == 0)
		return;
	if (status->phase == 0 && !(status->flags & UDP_STATUS_TOLD))
		handle_hello(x, status);
	else
		exchange_hear_payload(&x->base, source, status->application,
				      status->application_bytes);
}

static void handle_totals(struct udp *x, struct udp_heard *heard,
			  const struct udp_wire_status *status)
{
	if (exchange_hear_lengths(&x->base, status->source, status->epoch,
				  status->totals, status->total_count))
		heard->segment_bytes[status->epoch % EXCHANGE_ANNOUNCED] =
			status->segment_bytes;
}

/* A list of gaps takes the place of an earlier one. */
static void handle_gaps(struct udp_heard *heard,
			const struct udp_wire_status *status)
{
	if (status->gap_count == 0 || status->gap_serial == heard->gap_serial)
		return;
	if (!heard->gaps)
		heard->gaps = malloc(UDP_GAPS_MAX * sizeof(*heard->gaps));
	if (!heard->gaps)
		return; /* the peer asks again */
	memcpy(heard->gaps, status->gaps,
	       status->gap_count * sizeof(status->gaps[0]));
	heard->gap_count = status->gap_count;
	heard->gap_serial = status->gap_serial;
}

static void handle_message_state(struct udp_heard *heard,
				 const struct udp_wire_status *status)
{
	if (status->flags & UDP_STATUS_READY) {
		heard->ready = true;
		heard->grant_bytes =
			MAX(heard->grant_bytes, status->grant_bytes);
	}
	heard->round = MAX(heard->round, status->round);
	heard->prefix_bytes = MAX(heard->prefix_bytes, status->prefix_bytes);
	heard->sent_bytes = MAX(heard->sent_bytes, status->sent_bytes);
	heard->served_serial = status->served_serial;
	handle_gaps(heard, status);
}

/* What the node has told may let us send to it, or show that something is lost.
 */
static void wake_movers(struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];

	if (peer->out.sent_bytes < peer->out.byte_count ||
	    peer->heard.gap_serial != peer->out.served_serial)
		udp_mover_wake(udp_mover_to(x, node));
	if (peer->in.open && !arrivals_complete(&peer->in.arrivals))
		udp_mover_wake(udp_mover_from(x, node));
}

void udp_status_hear_data(struct udp *x, unsigned node, uint16_t flags)
{
	struct udp_peer *peer = x->peers[node];

	peer->heard.ready = true;
	wake_movers(x, node);
	/* What was not sent it cannot have. */
	if (flags & UDP_DATA_WHOLE &&
	    udp_mover_sent_bytes(x, node) == peer->out.byte_count)
		peer->heard.prefix_bytes = peer->out.byte_count;
}

/* A peer is at the address that the list of ranks has for it, and DATA goes to
 * the port that the STATUS itself tells, under its tag.  The sender's address
 * only tells the other port, which need not be the default one: a process that
 * took a rank's default port and passes STATUS on from an address of its own
 * gets no record by it. */
static void handle_address(struct udp *x, struct udp_peer *peer,
			   const struct udp_wire_status *status,
			   const struct address *from)
{
	x->control_ports[status->source] =
		from ? address_port(from)
		     : udp_page_port(x->page, status->source);
	peer->data_port = status->data_port;
}

static bool is_progress(const struct udp *x, const struct udp_heard *heard,
			const struct udp_wire_status *status)
{
	if (status->phase > x->base.peers[status->source]->phase ||
	    status->epoch > heard->epoch)
		return true;
	return status->epoch == x->base.epoch &&
	       (status->round > heard->round ||
		status->prefix_bytes > heard->prefix_bytes ||
		status->sent_bytes > heard->sent_bytes ||
		(status->flags & UDP_STATUS_READY &&
		 (!heard->ready || status->grant_bytes > heard->grant_bytes)));
}

/* --- impossible numbers -----------------------------------------------------
 */

/* A rank that is ready has all announcements, and is not sent them again; and
 * beside a failure there may be no room for them. */
static bool lacks_totals(const struct udp *x,
			 const struct udp_wire_status *status)
{
	const struct exchange_announced *announced =
		x->base.peers[status->source]->announced;

	if (status->total_count != 0)
		return exchange_is_wrong_count(&x->base, status->total_count);
	return status->epoch >= MAX(x->base.epoch, 1) &&
	       !(status->flags & UDP_STATUS_FAILED) &&
	       announced[status->epoch % EXCHANGE_ANNOUNCED].epoch !=
		       status->epoch;
}

/* All ranks come to the same collectives and barriers in the same order: none
 * is ahead in one and behind in the other. */
static bool is_out_of_step(const struct udp *x,
			   const struct udp_wire_status *status)
{
	uint32_t phase = MAX(x->base.phase, x->base.phase_wanted);

	return (status->epoch < x->base.epoch && status->phase > phase) ||
	       (status->epoch > x->base.epoch && status->phase < phase);
}

/* Can the node have all of our message, and we all of the node's?  If all ranks
 * meet, a node without bytes for us may go on before its announcement has
 * come. */
static bool may_go_on(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];

	if (x->base.is_prepared)
		return arrivals_complete(&peer->in.arrivals) &&
		       udp_mover_sent_bytes(x, node) == peer->out.byte_count;
	return x->base.all_meet && peer->out.byte_count == 0 &&
	       (!exchange_has_announced(&x->base, node) ||
		exchange_announced(&x->base, node)->byte_count == 0);
}

/* We would wait no longer for a peer that claims to be in the next collective.
 */
static bool goes_on_too_early(const struct udp *x, const struct udp_peer *peer,
			      const struct udp_wire_status *status)
{
	uint32_t epoch = MAX(status->epoch, peer->heard.epoch);

	return x->base.collective && x->base.peers[status->source]->meets &&
	       epoch > x->base.epoch && !may_go_on(x, status->source);
}

static bool asks_for_too_much(const struct udp_peer *peer,
			      const struct udp_wire_status *status)
{
	const struct udp_out *out = &peer->out;
	uint64_t segment_count = out->byte_count / peer->segment_bytes +
				 (out->byte_count % peer->segment_bytes != 0);

	/* Gaps ascend: udp_wire.c has checked that. */
	for (unsigned i = 0; i < status->gap_count; i++)
		if (status->gaps[i].first >= segment_count ||
		    status->gaps[i].count >
			    segment_count - status->gaps[i].first)
			return true;
	return status->prefix_bytes > out->byte_count ||
	       (status->flags & UDP_STATUS_READY &&
		status->grant_bytes > out->byte_count);
}

/* What is impossible in this STATUS, whose totals have been taken; or NULL. */
static const char *find_lie(const struct udp *x, const struct udp_peer *peer,
			    const struct udp_wire_status *status)
{
	if (lacks_totals(x, status))
		return "did not announce its messages to all ranks";
	if (is_out_of_step(x, status))
		return "took other steps than this rank, or in another order";
	if (goes_on_too_early(x, peer, status))
		return "began the next exchange before this one was over";
	if (status->epoch != x->base.epoch || x->base.epoch == 0)
		return NULL;
	if (asks_for_too_much(peer, status))
		return "told of more bytes than this rank has announced to it";
	if (exchange_has_announced(&x->base, status->source) &&
	    status->sent_bytes >
		    exchange_announced(&x->base, status->source)->byte_count)
		return "told of more bytes sent than it has announced";
	return NULL;
}

/* --- taking STATUS ----------------------------------------------------------
 */

/* now_ns: our clock, read after the STATUS had come. */
static void hear_clock(struct udp_clock *clock,
		       const struct udp_wire_status *status, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - status->echo_ns;
	uint64_t round_trip_ns = passed_ns - status->held_ns;

	clock->theirs_ns = status->clock_ns;
	clock->heard_ns = now_ns;
	/* An echo of what our clock has not shown yet is none.  One that was
	 * held for longer than has passed may come of clocks that run at
	 * different rates. */
	if (status->echo_ns == 0 || status->echo_ns > now_ns ||
	    status->held_ns > passed_ns)
		return;
	/* The round trip of a repeated echo grows: bound it. */
	clock->last_round_trip_ns = MIN(round_trip_ns, ROUND_TRIP_NS_MAX);
	if (round_trip_ns >= clock->round_trip_ns)
		return;
	clock->round_trip_ns = round_trip_ns;
	clock->offset_ns =
		(int64_t)(status->clock_ns + round_trip_ns / 2 - now_ns);
}

/* What holds whether or not the rest of the STATUS can be true. */
static void handle_presence(struct udp *x, const struct udp_wire_status *status,
			    const struct address *from, uint64_t now_ns)
{
	struct udp_peer *peer = udp_peer_of(x, status->source);

	peer->heard.serial = status->serial;
	peer->heard.hears_us |= status->echo_ns != 0;
	exchange_hear(&x->base, status->source, status->delay_ms, now_ns);
	handle_address(x, peer, status, from);
	hear_clock(&peer->clock, status, now_ns);
}

/* NULL, or what is wrong with it. */
static const char *handle_claims(struct udp *x,
				 const struct udp_wire_status *status,
				 uint64_t now_ns)
{
	struct udp_peer *peer = x->peers[status->source];
	const char *lie;

	handle_application(x, status);
	handle_totals(x, &peer->heard, status);
	if (status->flags & UDP_STATUS_FAILED)
		exchange_hear_failure(&x->base, status->source,
				      status->failure_node, status->text,
				      status->text_bytes);
	lie = find_lie(x, peer, status);
	if (lie)
		return lie;
	if (is_progress(x, &peer->heard, status))
		liveness_progress(&x->base.peers[status->source]->liveness,
				  now_ns);
	exchange_hear_phase(&x->base, status->source, status->phase);
	peer->heard.epoch = MAX(peer->heard.epoch, status->epoch);
	if (status->epoch > 0 && !(status->flags & UDP_STATUS_READY))
		peer->heard.first_grant_bytes = status->grant_bytes;
	if (x->base.peers[status->source]->meets &&
	    status->epoch == x->base.epoch && x->base.epoch > 0) {
		handle_message_state(&peer->heard, status);
		wake_movers(x, status->source);
	}
	return NULL;
}

/* from: NULL if it came by way of the status page. */
static void handle_status(struct udp *x, const struct udp_wire_status *status,
			  const struct address *from)
{
	const struct exchange_peer *peer = x->base.peers[status->source];
	const struct udp_heard *heard = &x->peers[status->source]->heard;
	uint64_t now_ns = clock_now_ns();
	bool answer = (status->flags & UDP_STATUS_QUERY) != 0;
	bool awaited_page = x->awaits_page;
	const char *lie;

	if (peer->is_here && (int32_t)(status->serial - heard->serial) <= 0)
		return;
	/* A peer that has not heard us yet waits for that; one that uses the
	 * status page has only to look. */
	answer |= from && !peer->is_here && status->echo_ns == 0;
	handle_presence(x, status, from, now_ns);
	lie = handle_claims(x, status, now_ns);
	if (lie) {
		exchange_note_failure(&x->base, status->source, EXIT_PEER, lie);
		return;
	}
	/* If this was rank 0's offer, take_offer() has sent to all ranks. */
	if (answer && awaited_page == x->awaits_page)
		send_status(x, status->source, 0, OCCASION_ANSWER);
}

static bool is_for_us(const struct udp *x, const struct udp_wire_status *status)
{
	return status->destination == udp_own(x) &&
	       status->source < udp_node_count(x) &&
	       status->source != udp_own(x) &&
	       status->epoch <= x->base.epoch + EXCHANGE_LEAD_MAX;
}

static bool take_datagram(struct udp_mover *mover, uint8_t *datagram,
			  struct datagram_head *head)
{
	bool any;

	udp_mover_lend_state(mover->x);
	any = datagram_receive(&mover->control, datagram,
			       UDP_STATUS_BYTES_MAX + 1, head) > 0;
	udp_mover_retake_state(mover->x);
	return any;
}

static bool receive_datagrams(struct udp_mover *mover)
{
	struct udp *x = mover->x;
	uint8_t datagram[UDP_STATUS_BYTES_MAX + 1];
	struct datagram_head head;
	unsigned count = 0, max = TAKEN_PER_RANK * udp_node_count(x);

	while (count < max && !x->awaits_lent &&
	       take_datagram(mover, datagram, &head)) {
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

	for (unsigned i = 0; i < TAKEN_PER_RANK * udp_node_count(x); i++) {
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
bool udp_status_receive(struct udp_mover *mover)
{
	bool any = receive_datagrams(mover);

	if (mover->x->page && mover == mover->x->movers)
		any |= receive_from_page(mover->x);
	return any;
}

unsigned udp_status_needed(const struct udp *x)
{
	unsigned unheard = 0, unannounced = 0, unacked = 0, behind = 0;

	for (unsigned i = 1; x->base.collective && i < x->base.ring_count;
	     i++) {
		const struct udp_peer *peer = x->peers[x->base.ring[i]];

		if (x->base.is_prepared &&
		    peer->out.sent_bytes < peer->out.byte_count)
			return 1;
		unannounced +=
			!exchange_has_announced(&x->base, x->base.ring[i]);
		unacked += !udp_is_acked(x, x->base.ring[i]);
	}
	if (x->base.collective)
		return MAX(1, x->base.is_prepared ? unacked : unannounced);
	for (unsigned node = 0; node < udp_node_count(x); node++) {
		const struct exchange_peer *peer = x->base.peers[node];

		if (node == udp_own(x))
			continue;
		unheard += !peer->is_here;
		behind += exchange_awaits_phase(&x->base, node);
	}
	if (unheard > 0)
		return unheard;
	return MAX(1, behind);
}

/* One that goes on has announced, and says it again when it is asked. */
bool udp_status_is_stuck(struct udp *x, unsigned node, uint64_t now_ns)
{
	struct udp_peer *peer = x->peers[node];
	bool owes = x->base.collective && x->base.peers[node]->meets &&
		    peer->heard.epoch > x->base.epoch &&
		    !exchange_has_announced(&x->base, node);

	return debt_is_overdue(&peer->debt, owes, x->base.epoch,
			       x->base.peers[node]->liveness.heard_ns,
			       x->base.deadline_ns, now_ns);
}
