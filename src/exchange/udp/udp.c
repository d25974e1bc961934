/*
 * udp.c - the transport over UDP: when to query, to wait, and to give up
 */
#include "exchange/udp/udp.h"

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "exchange/udp/udp_state.h"

/* When to send the first query; the interval then doubles up to
 * LIVENESS_QUERY_NS_MAX.  It is longer when ranks share CPUs, since a silent
 * peer may only be descheduled, for the longer the more ranks there are: so
 * long for each SHARED_NODES of them. */
#define QUERY_NS NS_PER_MS
#define QUERY_SHARED_NS (30 * NS_PER_MS)
#define SHARED_NODES 16
/* In a barrier all ranks wait for rank 0, which takes and answers a query in
 * about this time: the first one is sent after so long for each rank. */
#define BARRIER_QUERY_NS ((uint64_t)5000)
/* Poll for this long before sleeping: two round trips between CPUs. */
#define SPIN_NS ((uint64_t)30000)
/* Enough for some lists of gaps, of which each segment may be a batch of its
 * own. */
#define SERVE_STEPS_MAX (4 * UDP_GAPS_MAX)
/* A rank stays for this long for those that have not said that they leave. */
#define LEAVE_NS (1000 * NS_PER_MS)
/* A STATUS that tells of a failure, or that this rank leaves, is sent this many
 * times, since no rank answers it.  If datagrams were lost, the latter is sent
 * more often: without it another rank stays for LEAVE_NS. */
#define LAST_STATUSES 3
#define LAST_STATUSES_LOSSY 10

/* --- STATUS ----------------------------------------------------------------
 */

/* All ranks of the collective are to be told, one by one or together: each
 * mover tells all of its peers when it is asked for the first one. */
static void announce(struct udp *x, unsigned node)
{
	for (unsigned i = 1; i < x->mover_count; i++) {
		struct udp_mover *mover = &x->movers[i];

		if (mover->announced_epoch == x->base.epoch ||
		    (node != EXCHANGE_ALL && mover != udp_mover_from(x, node)))
			continue;
		mover->announced_epoch = x->base.epoch;
		mover->announces = true;
		udp_mover_wake(mover);
	}
	if (node == EXCHANGE_ALL)
		udp_status_announce(x->movers);
	else if (udp_mover_from(x, node) == x->movers)
		udp_status_send(x, node, 0);
}

/* A STATUS has all news. */
static void tell(struct exchange *exchange, unsigned node,
		 enum exchange_news news)
{
	struct udp *x = udp_of(exchange);

	if (news == EXCHANGE_LENGTHS && x->mover_count > 1) {
		announce(x, node);
		return;
	}
	/* What ranks have said at a barrier is the caller's until it goes on;
	 * as soon as it tells them, they may come to the next one. */
	x->keeps_state = news == EXCHANGE_PHASE;
	udp_status_send(x, node, 0);
	x->keeps_state = false;
}

static bool hear(struct exchange *exchange, uint64_t now_ns)
{
	struct udp *x = udp_of(exchange);

	(void)now_ns;
	udp_mover_begin_step(x->movers);
	return udp_status_receive(x->movers);
}

/* --- DATA ------------------------------------------------------------------
 */

static void begin(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	udp_status_begin(x);
	udp_send_begin(x);
	udp_receive_begin(x);
}

static bool move_by(struct udp_mover *mover, uint64_t now_ns,
		    uint64_t *until_ns)
{
	bool received = udp_receive_some(mover, now_ns);

	if (!received)
		*until_ns = udp_receive_request_gaps(mover, now_ns);
	return udp_send_some(mover, now_ns) || received;
}

static bool move(struct exchange *exchange, uint64_t now_ns, uint64_t *until_ns)
{
	return move_by(udp_of(exchange)->movers, now_ns, until_ns);
}

static void ready(struct exchange *exchange)
{
	udp_receive_ready(exchange);
	udp_mover_wake_all(udp_of(exchange));
}

static bool waits_for(const struct exchange *exchange, unsigned node)
{
	const struct udp *x = udp_of_const(exchange);

	return (exchange->is_prepared &&
		!arrivals_complete(&x->peers[node]->in.arrivals)) ||
	       !udp_is_acked(x, node) || udp_send_waits_for(x) == node;
}

static bool is_through(const struct exchange *exchange)
{
	const struct udp *x = udp_of_const(exchange);

	for (unsigned i = 1; i < exchange->ring_count; i++)
		if (!udp_is_acked(x, exchange->ring[i]))
			return false;
	return true;
}

/* --- waiting ---------------------------------------------------------------
 */

/* True if what we wait for may have been lost with a STATUS; false: it may just
 * not be the peer's turn. */
static bool is_urgent(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];

	return !x->base.peers[node]->is_here || !x->base.collective ||
	       !exchange_has_announced(&x->base, node) ||
	       udp_send_awaits_grant(x, node) ||
	       (peer->out.sent_bytes == peer->out.byte_count &&
		!udp_is_acked(x, node)) ||
	       udp_send_waits_for(x) == node;
}

static void give_up_stuck(struct udp *x, unsigned node, uint64_t now_ns)
{
	static const char advice[] =
		", though it answers: are long datagrams lost (--payload)?";

	if (udp_status_is_stuck(x, node, now_ns))
		exchange_give_up(&x->base, node,
				 "has gone on without announcing its messages "
				 "for",
				 "");
	if (udp_receive_is_stuck(x, node, now_ns))
		exchange_give_up(&x->base, node,
				 "nothing that it sent has arrived for",
				 advice);
	if (udp_send_is_stuck(x, node, now_ns))
		exchange_give_up(&x->base, node,
				 "has received nothing from this rank for",
				 advice);
}

/* Where queues are long, an answer is under way for as long. */
static uint64_t first_query_ns(const struct udp *x, unsigned node)
{
	uint64_t count = udp_node_count(x);
	uint64_t crowds = DIV_ROUND_UP(count, SHARED_NODES);
	uint64_t first_ns = x->base.spins ? QUERY_NS : QUERY_SHARED_NS * crowds;

	if (exchange_awaits_phase(&x->base, node))
		first_ns = MAX(first_ns, count * BARRIER_QUERY_NS);
	return MAX(first_ns, MIN(2 * x->peers[node]->clock.last_round_trip_ns,
				 LIVENESS_QUERY_NS_MAX));
}

static uint64_t watch(struct exchange *exchange, unsigned node, uint64_t now_ns)
{
	struct udp *x = udp_of(exchange);
	uint64_t until_ns;

	if (liveness_wants_query(&exchange->peers[node]->liveness, node,
				 is_urgent(x, node), first_query_ns(x, node),
				 exchange->deadline_ns, now_ns, &until_ns))
		udp_status_send(x, node, UDP_STATUS_QUERY);
	give_up_stuck(x, node, now_ns);
	return until_ns;
}

/* Returns the time when something came, or until_ns has passed. */
static uint64_t poll_until(struct udp_mover *mover, uint64_t begin_ns,
			   uint64_t until_ns)
{
	struct udp *x = mover->x;
	const struct udp_page *page = mover == x->movers ? x->page : NULL;
	/* The rank's own thread waits until nobody comes back for the state:
	 * until it wakes all, nothing that arrives wakes a mover. */
	bool rests = x->awaits_lent;
	struct pollfd fds[] = {
		{ .fd = rests ? -1 : mover->control.fd, .events = POLLIN },
		/* What comes before we are prepared stays in the socket. */
		{ .fd = udp_may_move(x) && !rests ? mover->data.fd : -1,
		  .events = (short)(POLLIN | (mover->blocked ? POLLOUT : 0)) },
		{ .fd = mover->waker, .events = POLLIN },
	};
	struct timespec none = { 0 }, timeout;
	bool spins = x->base.spins;
	uint64_t now_ns = begin_ns;
	int ready = 0;

	if (!udp_mover_lie_down(mover))
		return now_ns;
	while (spins && ready == 0 && now_ns - begin_ns < SPIN_NS &&
	       now_ns < until_ns) {
		ready = ppoll(fds, ARRAY_LEN(fds), &none, NULL);
		now_ns = clock_now_ns();
		ready |= page && udp_page_is_dirty(page);
	}
	if (ready == 0 && now_ns < until_ns) {
		timeout.tv_sec = (time_t)((until_ns - now_ns) / NS_PER_S);
		timeout.tv_nsec = (long)((until_ns - now_ns) % NS_PER_S);
		ppoll(fds, ARRAY_LEN(fds), &timeout, NULL);
		now_ns = clock_now_ns();
	}
	udp_mover_get_up(mover);
	return now_ns;
}

static void wait_until(struct exchange *exchange, uint64_t until_ns)
{
	struct udp *x = udp_of(exchange);
	uint64_t begin_ns = clock_now_ns(), now_ns;

	if (x->page && !udp_page_sleep(x->page, udp_status_needed(x)))
		return;
	now_ns = poll_until(x->movers, begin_ns, until_ns);
	if (x->page)
		udp_page_wake(x->page);
	exchange_note_sleep(exchange, begin_ns,
			    MIN(now_ns, MAX(begin_ns, until_ns)));
	exchange->counters.poll_wait_ns += now_ns - begin_ns;
	if (exchange->lane)
		trace_end(exchange->lane, begin_ns, "wait");
}

/* What another mover than the first one does, beside the rank's own thread. */
static void work(void *argument)
{
	struct udp_mover *mover = argument;
	struct udp *x = mover->x;

	udp_mover_get_up(mover);
	while (!x->movers_end) {
		uint64_t now_ns = clock_now_ns(), until_ns = UINT64_MAX;
		bool heard, moved;

		udp_mover_begin_step(mover);
		heard = udp_status_receive(mover);
		/* The rank's own thread deals with what others have told. */
		if (heard)
			udp_mover_wake(x->movers);
		if (mover->announces) {
			mover->announces = false;
			udp_status_announce(mover);
		}
		moved = udp_may_move(x) && move_by(mover, now_ns, &until_ns);
		if (x->base.failed.any)
			udp_mover_wake(x->movers);
		if (!heard && !moved)
			poll_until(mover, now_ns, until_ns);
	}
	/* The thread gives the state away for good. */
	udp_mover_begin_step(mover);
	udp_mover_lie_down(mover);
}

/* --- the end ---------------------------------------------------------------
 */

/* A rank that starts after our failure would wait for us: it is told when it
 * says hello.  Of another rank's failure that rank tells. */
static void wait_for_late_ones(struct udp *x)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t end_ns = x->opened_ns + x->base.deadline_ns;

	while (x->base.failed.node == udp_own(x) &&
	       !exchange_all_are_here(&x->base) && now_ns < end_ns) {
		if (!hear(&x->base, now_ns))
			wait_until(&x->base,
				   MIN(end_ns, now_ns + LIVENESS_QUERY_NS_MAX));
		now_ns = clock_now_ns();
	}
}

/* If each rank that is told tells these ranks, all are told after as many steps
 * as their number has bits, each by as many others: a few that are dead, and
 * STATUS that are lost, do not matter.  The rank that failed must hear all
 * others, too: wait_for_late_ones(). */
static void tell_at_powers_of_two(struct udp *x)
{
	unsigned count = udp_node_count(x);

	for (unsigned distance = 1; distance < count; distance *= 2)
		udp_status_send(x, (udp_own(x) + distance) % count, 0);
	if (x->base.failed.node != udp_own(x))
		udp_status_send(x, x->base.failed.node, 0);
}

/* A rank that is told of a failure passes it on to a few.  A rank that has
 * noticed it itself tells a few at first, and then all, since those that should
 * pass it on may compute for long.  The few come first so that other ranks,
 * which would notice the failure at the same time, are told before they do. */
static void tell_failure(struct exchange *exchange)
{
	struct timespec pause = { .tv_nsec = (long)NS_PER_MS };
	struct udp *x = udp_of(exchange);

	wait_for_late_ones(x);
	for (unsigned i = 0; i < LAST_STATUSES; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		if (i == 0 || x->base.failed.is_told)
			tell_at_powers_of_two(x);
		else
			udp_status_send(x, EXCHANGE_ALL, 0);
	}
}

static void say_farewell(struct udp *x, unsigned node)
{
	unsigned count = x->base.counters.resent_datagrams ? LAST_STATUSES_LOSSY
							   : LAST_STATUSES;

	if (x->page)
		count = 1;
	for (unsigned i = 0; i < count; i++)
		udp_status_send(x, node, 0);
}

static void leave(struct exchange *exchange)
{
	unsigned above = exchange_stay(exchange, LEAVE_NS);

	if (exchange_own(exchange) != 0)
		say_farewell(udp_of(exchange), above);
}

/* --- reporting -------------------------------------------------------------
 */

static int64_t clock_offset_ns(const struct exchange *exchange, unsigned node,
			       uint64_t *bound_ns)
{
	const struct udp_clock *clock =
		&udp_of_const(exchange)->peers[node]->clock;

	*bound_ns = clock->round_trip_ns == UINT64_MAX
			    ? UINT64_MAX
			    : clock->round_trip_ns / 2;
	return clock->offset_ns;
}

/* --- opening and closing ---------------------------------------------------
 */

static void close_udp(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	udp_join_close(x);
	free(x);
}

static const struct exchange_transport transport = {
	.name = "udp",
	.tell = tell,
	.hear = hear,
	.begin = begin,
	.prepare = udp_receive_prepare,
	.ready = ready,
	.move = move,
	.waits_for = waits_for,
	.is_through = is_through,
	.watch = watch,
	.wait = wait_until,
	.settle = udp_mover_settle,
	.compute = udp_mover_compute,
	.tell_failure = tell_failure,
	.leave = leave,
	.stop = udp_mover_stop,
	.clock_offset_ns = clock_offset_ns,
	.close = close_udp,
};

/* This takes the place of a CRC-32C that no rank checks. */
static uint32_t no_crc32c(uint32_t crc, const void *bytes, size_t byte_count)
{
	(void)bytes, (void)byte_count;
	return crc;
}

struct exchange *udp_open(const struct exchange_options *options,
			  const struct udp_options *udp_options,
			  struct failure *failure)
{
	struct udp *x = calloc(1, sizeof(*x));
	int error;

	if (!x) {
		failure_no_memory(failure);
		return NULL;
	}
	error = exchange_init(&x->base, &transport, options, failure);
	x->base.serve_steps_max = SERVE_STEPS_MAX;
	x->options = *udp_options;
	x->options.thread_count = MAX(1, udp_options->thread_count);
	x->crc32c = udp_options->crc32c ? crc32c_kernel(udp_options->kernel)
					: no_crc32c;
	if (error == 0)
		error = udp_join_open(x, failure);
	if (error == 0)
		error = udp_mover_start(x, work, failure);
	if (error) {
		/* The text ends with the exchange. */
		failure->what = NULL;
		exchange_close(&x->base);
		return NULL;
	}
	if (!options->skips_hello)
		udp_status_say_hello(x);
	return &x->base;
}
