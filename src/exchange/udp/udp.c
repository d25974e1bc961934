/*
 * udp.c - the exchange over UDP: the calls of the interface, and the loop below
 * them all
 */
#include "exchange/udp/udp.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/udp/udp_state.h"

#define MILLISECOND_NS ((uint64_t)1000000)
/* When to send the first query; the interval then doubles up to
 * UDP_QUERY_NS_MAX.  It is longer when ranks share CPUs, since a silent peer
 * may only be descheduled, for the longer the more ranks there are: so long for
 * each SHARED_NODES of them. */
#define QUERY_NS MILLISECOND_NS
#define QUERY_SHARED_NS (30 * MILLISECOND_NS)
#define SHARED_NODES 16
/* Poll for this long before sleeping: two round trips between CPUs. */
#define SPIN_NS ((uint64_t)30000)
/* Steps of one exchange_serve() at most: enough for some lists of gaps, but not
 * endless if strangers keep sending. */
#define SERVE_STEPS_MAX (4 * UDP_GAPS_MAX)
/* Rank 0 stays for this long for ranks that have not said that they leave. */
#define LEAVE_NS (1000 * MILLISECOND_NS)
#define PHASE_GONE UINT32_MAX
/* A STATUS that tells of a failure, or that this rank leaves, is sent this many
 * times, since no rank answers it.  The latter is sent more often if datagrams
 * were lost: rank 0 would stay. */
#define LAST_STATUSES 3
#define LAST_STATUSES_LOSSY 10

/* --- waiting -------------------------------------------------------------- */

/* True if only this peer can give us something that we need. */
static bool is_waited_for(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = &x->peers[node];

	if (node == udp_own(x))
		return false;
	if (!peer->heard.any)
		return true;
	if (x->phase_wanted > 0 && peer->heard.phase < x->phase_wanted &&
	    (udp_own(x) == 0 || node == 0))
		return true;
	if (!x->collective || !peer->meets)
		return false;
	return !udp_has_announced(x, node) ||
	       (x->prepared && !arrivals_complete(&peer->in.arrivals)) ||
	       !udp_is_acked(x, node) || udp_send_waits_for(x) == node;
}

/* True if a lost STATUS may keep it from us; false: it may just not be the
 * peer's turn. */
static bool is_urgent(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = &x->peers[node];

	return !peer->heard.any || !x->collective ||
	       !udp_has_announced(x, node) ||
	       (!peer->heard.ready && peer->heard.epoch == x->epoch) ||
	       (peer->out.sent_bytes == peer->out.byte_count &&
		!udp_is_acked(x, node)) ||
	       udp_send_waits_for(x) == node;
}

static void give_up(struct udp *x, unsigned node, const char *what,
		    const char *advice)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why), "%s %.1f s%s", what,
		 (double)x->options.deadline_ns / 1e9, advice);
	exchange_note_failure(&x->base, node, EXIT_PEER, why);
}

static void give_up_stuck(struct udp *x, unsigned node, uint64_t now_ns)
{
	static const char advice[] =
		", though it answers: are long datagrams lost (--payload)?";

	if (udp_receive_is_stuck(x, node, now_ns))
		give_up(x, node, "what it has sent has not come for", advice);
	if (udp_send_is_stuck(x, node, now_ns))
		give_up(x, node, "has taken nothing from this rank for",
			advice);
}

/* Where queues are long, an answer is under way for as long. */
static uint64_t first_query_ns(const struct udp *x, const struct udp_peer *peer)
{
	uint64_t crowds = DIV_ROUND_UP(udp_node_count(x), SHARED_NODES);
	uint64_t first_ns = x->base.spins ? QUERY_NS : QUERY_SHARED_NS * crowds;

	return MAX(first_ns,
		   MIN(2 * peer->clock.last_round_trip_ns, UDP_QUERY_NS_MAX));
}

/* Query all peers that we wait for, where it is time to; returns when to look
 * again. */
static uint64_t query_all(struct udp *x, uint64_t now_ns)
{
	uint64_t next_ns = now_ns + UDP_QUERY_NS_MAX;

	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_peer *peer = &x->peers[node];
		enum udp_liveness_step step;
		uint64_t until_ns;

		if (!is_waited_for(x, node)) {
			udp_liveness_rest(&peer->liveness);
			continue;
		}
		step = udp_liveness_wait(&peer->liveness, is_urgent(x, node),
					 first_query_ns(x, peer),
					 x->options.deadline_ns, now_ns,
					 &until_ns);
		if (step == UDP_LIVENESS_LOST)
			give_up(x, node,
				peer->heard.any ? "has been silent for"
						: "has not come within",
				"");
		else if (step == UDP_LIVENESS_QUERY)
			udp_status_send(x, node, UDP_STATUS_QUERY);
		give_up_stuck(x, node, now_ns);
		next_ns = MIN(next_ns, until_ns);
	}
	return next_ns;
}

/* If this rank was away itself, the silence of others says nothing. */
static void note_absence(struct udp *x, uint64_t now_ns)
{
	if (now_ns > x->served_ns + x->options.deadline_ns / 4)
		for (unsigned i = 0; i < udp_node_count(x); i++)
			x->peers[i].liveness.heard_ns = now_ns;
	x->served_ns = now_ns;
}

/* Returns the time when something came, or until_ns has passed. */
static uint64_t poll_until(struct udp *x, uint64_t begin_ns, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = x->control.fd, .events = POLLIN },
		{ .fd = x->data.fd,
		  .events = (short)(POLLIN | (x->blocked ? POLLOUT : 0)) },
	};
	struct timespec none = { 0 }, timeout;
	uint64_t now_ns = begin_ns;
	int ready = 0;

	while (x->base.spins && ready == 0 && now_ns - begin_ns < SPIN_NS &&
	       now_ns < until_ns) {
		ready = ppoll(fds, ARRAY_LEN(fds), &none, NULL);
		now_ns = clock_now_ns();
		ready |= x->page && udp_page_is_dirty(x->page);
	}
	if (ready == 0 && now_ns < until_ns) {
		timeout.tv_sec = (time_t)((until_ns - now_ns) / 1000000000);
		timeout.tv_nsec = (long)((until_ns - now_ns) % 1000000000);
		ppoll(fds, ARRAY_LEN(fds), &timeout, NULL);
		now_ns = clock_now_ns();
	}
	return now_ns;
}

static void wait_until(struct udp *x, uint64_t until_ns)
{
	uint64_t begin_ns = clock_now_ns(), now_ns;

	if (x->page && !udp_page_sleep(x->page, udp_status_needed(x)))
		return;
	now_ns = poll_until(x, begin_ns, until_ns);
	if (x->page)
		udp_page_wake(x->page);
	/* A rank that sleeps for longer than it meant to was away: see
	 * note_absence(). */
	x->served_ns = MIN(now_ns, MAX(begin_ns, until_ns));
	x->base.counters.poll_wait_ns += now_ns - begin_ns;
	if (x->options.lane)
		trace_end(x->options.lane, begin_ns, "wait");
}

static bool all_are_here(const struct udp *x)
{
	for (unsigned node = 0; node < udp_node_count(x); node++)
		if (node != udp_own(x) && !x->peers[node].heard.any)
			return false;
	return true;
}

/* --- telling of a failure ------------------------------------------------- */

/* A rank that starts after our failure would wait for us: it is told when it
 * says hello.  Of another rank's failure that rank tells. */
static void wait_for_late_ones(struct udp *x)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t end_ns = x->opened_ns + x->options.deadline_ns;

	while (x->base.failed.node == udp_own(x) && !all_are_here(x) &&
	       now_ns < end_ns) {
		if (!udp_status_receive(x))
			wait_until(x, MIN(end_ns, now_ns + UDP_QUERY_NS_MAX));
		now_ns = clock_now_ns();
	}
}

static void tell_failure(struct exchange *exchange)
{
	struct timespec pause = { .tv_nsec = (long)MILLISECOND_NS };
	struct udp *x = udp_of(exchange);

	wait_for_late_ones(x);
	for (unsigned i = 0; i < LAST_STATUSES; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		udp_status_send_all(x, 0);
	}
}

/* --- the loop ------------------------------------------------------------- */

static int prepare(struct udp *x, struct failure *failure)
{
	uint64_t bytes[UDP_NODES_MAX];
	int error =
		exchange_check_lengths(&x->base, x->collective, bytes, failure);

	if (error)
		return error;
	error = udp_receive_prepare(x, bytes);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	return x->collective->prepare(x->collective->context, bytes, failure);
}

static void prepare_when_announced(struct udp *x)
{
	struct failure failure;

	for (unsigned i = 1; i < x->ring_count; i++)
		if (!udp_has_announced(x, x->ring[i]))
			return;
	if (prepare(x, &failure) < 0) {
		exchange_fail(&x->base, &failure);
		return;
	}
	/* The first grants go out with the STATUS that says we are ready. */
	udp_receive_grant(x);
	x->prepared = true;
	udp_status_send_ring(x);
	for (unsigned i = 1; i < x->ring_count; i++)
		if (x->peers[x->ring[i]].in.arrivals.byte_count == 0)
			x->collective->arrived(x->collective->context,
					       x->ring[i], 0, true);
}

/* Take STATUS and DATA, send, query.  False: there is nothing to do before
 * *until_ns. */
static bool advance(struct udp *x, uint64_t *until_ns)
{
	uint64_t now_ns = clock_now_ns();
	bool any;

	*until_ns = UINT64_MAX;
	note_absence(x, now_ns);
	any = udp_status_receive(x);
	if (x->collective && !x->prepared && !x->base.failed.any)
		prepare_when_announced(x);
	if (x->prepared) {
		bool received = udp_receive_some(x, now_ns);

		if (!received)
			*until_ns = udp_receive_request_gaps(x, now_ns);
		any |= received;
		any |= udp_send_some(x, now_ns);
	}
	*until_ns = MIN(*until_ns, query_all(x, now_ns));
	return any;
}

/* If there is nothing to do, compute or wait. */
static int step(struct udp *x, struct failure *failure)
{
	uint64_t until_ns;
	bool any = advance(x, &until_ns);

	if (x->base.failed.any)
		return exchange_give_failure(&x->base, failure);
	if (any || (x->collective && x->collective->idle &&
		    x->collective->idle(x->collective->context)))
		return 0;
	wait_until(x, until_ns);
	return 0;
}

/* A step is not enough: each segment of a list of gaps may be a batch of its
 * own. */
static int serve(struct exchange *exchange, struct failure *failure)
{
	struct udp *x = udp_of(exchange);
	uint64_t until_ns;
	unsigned i = 0;

	while (i < SERVE_STEPS_MAX && advance(x, &until_ns) &&
	       !exchange->failed.any)
		i++;
	return exchange->failed.any ? exchange_give_failure(exchange, failure)
				    : 0;
}

/* --- joining -------------------------------------------------------------- */

static int join(struct exchange *exchange, struct failure *failure)
{
	struct udp *x = udp_of(exchange);
	int error = 0;

	while (error == 0 && !all_are_here(x))
		error = step(x, failure);
	return error;
}

static const void *hello(const struct exchange *exchange, unsigned node,
			 size_t *byte_count)
{
	const struct udp *x = udp_of_const(exchange);
	const struct udp_heard *heard = &x->peers[node].heard;

	if (node == udp_own(x)) {
		*byte_count = x->options.hello_bytes;
		return x->hello + UDP_PAGE_OFFER_BYTES;
	}
	*byte_count = heard->hello_bytes;
	return heard->hello;
}

/* --- collectives ---------------------------------------------------------- */

static int begin(struct exchange *exchange,
		 const struct exchange_collective *collective,
		 struct failure *failure)
{
	struct udp *x = udp_of(exchange);

	assert(!x->collective);
	if (x->epoch == EXCHANGE_COLLECTIVES_MAX)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "more than %d messages to all ranks",
				   EXCHANGE_COLLECTIVES_MAX);
	x->collective = collective;
	x->epoch++;
	x->prepared = false;
	udp_status_begin(x);
	udp_send_begin(x);
	udp_receive_begin(x);
	for (unsigned node = 0; node < udp_node_count(x); node++)
		store_le64(&x->totals[node], x->peers[node].out.byte_count);
	udp_status_send_ring(x);
	return serve(exchange, failure);
}

static uint64_t message_bytes(const struct exchange *exchange, unsigned source,
			      unsigned destination)
{
	return udp_message_bytes(udp_of_const(exchange), source, destination);
}

static bool has_told_all(const struct exchange *exchange, unsigned node)
{
	return udp_announced(udp_of_const(exchange), node)->has_totals;
}

static int receive(struct exchange *exchange, struct failure *failure)
{
	struct udp *x = udp_of(exchange);
	int error = 0;

	while (error == 0 && (!x->prepared || x->in_left > 0))
		error = step(x, failure);
	return error;
}

static int finish(struct exchange *exchange, struct failure *failure)
{
	struct udp *x = udp_of(exchange);
	int error = receive(exchange, failure);

	while (error == 0 && !udp_all_acked(x))
		error = step(x, failure);
	x->collective = NULL;
	return error;
}

/* --- barriers ------------------------------------------------------------- */

static bool phase_is_reached(const struct udp *x)
{
	if (udp_own(x) != 0)
		return x->peers[0].heard.phase >= x->phase_wanted;
	for (unsigned node = 1; node < udp_node_count(x); node++)
		if (x->peers[node].heard.phase < x->phase_wanted)
			return false;
	return true;
}

static int barrier(struct exchange *exchange, uint32_t phase,
		   const void *payload, size_t payload_bytes,
		   struct failure *failure)
{
	struct udp *x = udp_of(exchange);
	int error = 0;

	if (payload_bytes > 0)
		memcpy(x->application, payload, payload_bytes);
	x->application_bytes = payload_bytes;
	x->phase_wanted = phase;
	x->delay_ms = 0;
	if (udp_own(x) != 0) {
		x->phase = phase;
		udp_status_send(x, 0, 0);
	}
	while (error == 0 && !phase_is_reached(x))
		error = step(x, failure);
	x->phase_wanted = 0;
	if (error == 0 && udp_own(x) == 0) {
		x->phase = phase;
		udp_status_send_all(x, 0);
	}
	return error;
}

static void tell(struct exchange *exchange, const void *payload,
		 size_t payload_bytes)
{
	struct udp *x = udp_of(exchange);

	assert(x->phase == 0);
	memcpy(x->application, payload, payload_bytes);
	x->application_bytes = payload_bytes;
	if (udp_own(x) != 0)
		udp_status_send(x, 0, 0);
}

static const void *application_payload(const struct exchange *exchange,
				       unsigned node, size_t *byte_count)
{
	const struct udp *x = udp_of_const(exchange);
	const struct udp_heard *heard = &x->peers[node].heard;

	if (node == udp_own(x)) {
		*byte_count = x->application_bytes;
		return x->application;
	}
	*byte_count = heard->application_bytes;
	return heard->application;
}

static void leave(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);
	uint64_t end_ns = clock_now_ns() + LEAVE_NS;
	unsigned count = exchange->counters.resent_datagrams
				 ? LAST_STATUSES_LOSSY
				 : LAST_STATUSES;
	struct failure failure;

	if (udp_own(x) != 0) {
		x->phase = PHASE_GONE;
		if (x->page)
			count = 1;
		for (unsigned i = 0; i < count; i++)
			udp_status_send(x, 0, 0);
		return;
	}
	x->phase_wanted = PHASE_GONE;
	while (!phase_is_reached(x) && clock_now_ns() < end_ns)
		if (step(x, &failure) < 0)
			return;
}

static void announce_delay(struct exchange *exchange, uint32_t delay_ms)
{
	struct udp *x = udp_of(exchange);

	x->delay_ms = MIN(delay_ms, EXCHANGE_DELAY_MS_MAX);
	udp_status_send_all(x, 0);
}

/* --- reporting ------------------------------------------------------------ */

static int64_t clock_offset_ns(const struct exchange *exchange, unsigned node,
			       uint64_t *bound_ns)
{
	const struct udp *x = udp_of_const(exchange);
	const struct udp_clock *clock = &x->peers[node].clock;

	*bound_ns = 0;
	if (udp_own(x) == node)
		return 0;
	*bound_ns = clock->round_trip_ns == UINT64_MAX
			    ? UINT64_MAX
			    : clock->round_trip_ns / 2;
	return clock->offset_ns;
}

static uint32_t payload_bytes_to_next(const struct exchange *exchange)
{
	const struct udp *x = udp_of_const(exchange);

	return x->peers[(udp_own(x) + 1) % udp_node_count(x)].out.segment_bytes;
}

/* --- opening and closing -------------------------------------------------- */

static void close_udp(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	udp_join_close(x);
	free(x);
}

/* In place of a CRC-32C that no rank checks. */
static uint32_t no_crc32c(uint32_t crc, const void *bytes, size_t byte_count)
{
	(void)bytes, (void)byte_count;
	return crc;
}

static const struct exchange_ops ops = {
	.transport = "udp",
	.join = join,
	.hello = hello,
	.begin = begin,
	.bytes = message_bytes,
	.has_told_all = has_told_all,
	.receive = receive,
	.serve = serve,
	.finish = finish,
	.barrier = barrier,
	.tell = tell,
	.application_payload = application_payload,
	.announce_delay = announce_delay,
	.tell_failure = tell_failure,
	.leave = leave,
	.clock_offset_ns = clock_offset_ns,
	.payload_bytes = payload_bytes_to_next,
	.close = close_udp,
};

struct exchange *udp_open(const struct exchange_options *options,
			  const struct udp_options *udp_options,
			  struct failure *failure)
{
	struct udp *x = calloc(1, sizeof(*x));

	if (!x) {
		failure_no_memory(failure);
		return NULL;
	}
	assert(options->hello_bytes <= EXCHANGE_HELLO_BYTES_MAX);
	x->base.ops = x->base.transport = &ops;
	x->base.rank = options->rank;
	x->base.has_node = options->has_node;
	x->base.node = options->node;
	/* Most of it is buffers of datagrams; so large a block is fresh. */
	exchange_place(&x->base, x, sizeof(*x));
	x->base.spins = options->spins;
	x->base.schedule = options->schedule;
	x->options = *options;
	x->udp_options = *udp_options;
	x->control.fd = -1;
	x->data.fd = -1;
	x->crc32c = udp_options->crc32c ? crc32c_kernel(udp_options->kernel)
					: no_crc32c;
	if (udp_join_open(x, failure) < 0) {
		/* The text ends with the exchange. */
		failure->what = NULL;
		close_udp(&x->base);
		return NULL;
	}
	udp_join_say_hello(x);
	return &x->base;
}
