/*
 * exchange.c - a session of ranks: collectives, barriers, and the loop below
 * them all, over any transport
 */
#include "exchange/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/exchange_state.h"
#include "system/numa.h"

/* A rank that was away for this part of the deadline cannot tell whether others
 * were silent. */
#define AWAY_PART 4
/* A busy rank that has n peers looks at them at most once in n times this; to
 * look at one takes a small part of it. */
#define WATCH_PEER_NS ((uint64_t)100)
/* Ranks leave by a tree: each waits for the ranks below it, of which it has up
 * to this many.  If thousands took leave of rank 0 at once, its socket would
 * drop some of their STATUS, and no rank would repeat them. */
#define LEAVE_FAN_IN 16

/* --- waiting for ranks ------------------------------------------------------
 */

/* The rank that stays until the node, which is not rank 0, leaves. */
static unsigned above(unsigned node)
{
	return (node - 1) / LEAVE_FAN_IN;
}

bool exchange_awaits_phase(const struct exchange *exchange, unsigned node)
{
	unsigned own = exchange_own(exchange);

	if (exchange->peers[node]->phase >= exchange->phase_wanted)
		return false;
	if (exchange->phase_wanted == EXCHANGE_PHASE_GONE)
		return node != 0 && above(node) == own;
	return node != own && (own == 0 || node == 0);
}

/* True if only this peer can give us something that we need. */
static bool is_waited_for(const struct exchange *exchange, unsigned node)
{
	const struct exchange_peer *peer = exchange->peers[node];
	unsigned own = exchange_own(exchange);

	if (node == own)
		return false;
	if (!peer->is_here && !exchange->skips_hello)
		return true;
	if (exchange_awaits_phase(exchange, node))
		return true;
	if (!exchange->collective || !peer->meets)
		return false;
	return !exchange_has_announced(exchange, node) ||
	       exchange->transport->waits_for(exchange, node);
}

void exchange_give_up(struct exchange *exchange, unsigned node,
		      const char *what, const char *advice)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why), "%s %.1f s%s", what,
		 (double)exchange->deadline_ns / 1e9, advice);
	exchange_note_failure(exchange, node, EXIT_PEER, why);
}

/* Look at a peer; returns when to look again. */
static uint64_t watch(struct exchange *exchange, unsigned node, uint64_t now_ns)
{
	const struct exchange_transport *transport = exchange->transport;
	struct exchange_peer *peer;

	if (!is_waited_for(exchange, node)) {
		liveness_rest(&exchange->peers[node]->liveness);
		return UINT64_MAX;
	}
	peer = exchange_peer_of(exchange, node);
	if (!liveness_is_lost(&peer->liveness, exchange->deadline_ns, now_ns))
		return transport->watch
			       ? transport->watch(exchange, node, now_ns)
			       : UINT64_MAX;
	exchange_give_up(exchange, node,
			 peer->is_here ? "has been silent for"
				       : "has not come within",
			 "");
	return UINT64_MAX;
}

/* Look at all peers that we wait for; returns when to look again.  Those that
 * are not of the ring are waited for until they are here, and in barriers;
 * then once more, to let them rest. */
static uint64_t watch_all(struct exchange *exchange, uint64_t now_ns)
{
	uint64_t next_ns = now_ns + LIVENESS_QUERY_NS_MAX;
	bool only_ring = exchange->collective && exchange->phase_wanted == 0 &&
			 exchange_all_are_here(exchange);
	unsigned count;

	exchange->watches_ring &= only_ring;
	count = exchange->watches_ring ? exchange->ring_count
				       : exchange_count(exchange);
	for (unsigned i = 0; i < count; i++) {
		unsigned node = exchange->watches_ring ? exchange->ring[i] : i;

		next_ns = MIN(next_ns, watch(exchange, node, now_ns));
	}
	exchange->watches_ring = only_ring;
	exchange->watched_ns = now_ns;
	return next_ns;
}

/* A rank that has much to do spends only a part of its time on looking at its
 * peers, however many they are. */
static bool is_time_to_watch(const struct exchange *exchange, uint64_t now_ns)
{
	return now_ns >=
	       exchange->watched_ns + exchange_count(exchange) * WATCH_PEER_NS;
}

/* If this rank was away itself, the silence of others says nothing. */
static void note_absence(struct exchange *exchange, uint64_t now_ns)
{
	if (now_ns > exchange->served_ns + exchange->deadline_ns / AWAY_PART)
		for (unsigned i = 0; i < exchange_count(exchange); i++)
			liveness_hear(&exchange->peers[i]->liveness, now_ns);
	exchange->served_ns = now_ns;
}

/* A rank that slept for longer than it meant to was away; so was one that was
 * stopped between its last step and the sleep. */
void exchange_note_sleep(struct exchange *exchange, uint64_t begin_ns,
			 uint64_t until_ns)
{
	note_absence(exchange, begin_ns);
	exchange->served_ns = until_ns;
}

/* --- the loop ---------------------------------------------------------------
 */

static int prepare(struct exchange *exchange, struct failure *failure)
{
	const struct exchange_collective *collective = exchange->collective;
	int error = exchange_check_lengths(exchange, exchange->receive_bytes,
					   failure);

	if (error)
		return error;
	exchange->in_left = exchange->ring_count - 1;
	error = exchange->transport->prepare(exchange);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	return collective->prepare(collective->context, exchange->receive_bytes,
				   failure);
}

void exchange_pass_on(struct exchange *exchange, unsigned node,
		      uint64_t prefix_bytes, bool whole)
{
	const struct exchange_collective *collective = exchange->collective;

	exchange->in_left -= whole;
	if (collective->arrived)
		collective->arrived(collective->context, node, prefix_bytes,
				    whole);
}

static void prepare_when_announced(struct exchange *exchange)
{
	struct failure failure;

	for (unsigned i = 1; i < exchange->ring_count; i++)
		if (!exchange_has_announced(exchange, exchange->ring[i]))
			return;
	if (prepare(exchange, &failure) < 0) {
		exchange_fail(exchange, &failure);
		return;
	}
	exchange->is_prepared = true;
	if (exchange->transport->ready)
		exchange->transport->ready(exchange);
	/* Another thread may have noted a failure meanwhile. */
	for (unsigned i = 1; i < exchange->ring_count && !exchange->failed.any;
	     i++)
		if (exchange_announced(exchange, exchange->ring[i])
			    ->byte_count == 0)
			exchange_pass_on(exchange, exchange->ring[i], 0, true);
}

/* Take STATUS, move DATA, look at peers.  False: there is nothing to do before
 * *until_ns. */
static bool advance(struct exchange *exchange, uint64_t *until_ns)
{
	const struct exchange_transport *transport = exchange->transport;
	uint64_t now_ns = clock_now_ns();
	bool any;

	*until_ns = UINT64_MAX;
	note_absence(exchange, now_ns);
	any = transport->hear(exchange, now_ns);
	if (exchange->collective && !exchange->is_prepared &&
	    !exchange->failed.any)
		prepare_when_announced(exchange);
	if (exchange->is_prepared && !exchange->failed.any)
		any |= transport->move(exchange, now_ns, until_ns);
	/* Queries go out in time also if much comes. */
	if (!any || (transport->watch && is_time_to_watch(exchange, now_ns)))
		*until_ns = MIN(*until_ns, watch_all(exchange, now_ns));
	return any;
}

static void end_wait(struct exchange *exchange)
{
	if (exchange->transport->end_wait)
		exchange->transport->end_wait(exchange);
}

void exchange_settle(struct exchange *exchange)
{
	if (exchange->transport->settle)
		exchange->transport->settle(exchange);
}

static int settle_after(struct exchange *exchange, int error)
{
	if (error)
		exchange_settle(exchange);
	return error;
}

static bool compute(struct exchange *exchange)
{
	const struct exchange_collective *collective = exchange->collective;

	if (!collective || !collective->idle)
		return false;
	return exchange->transport->compute
		       ? exchange->transport->compute(exchange)
		       : collective->idle(collective->context);
}

/* Do some of what is to be done; if there is nothing, compute or wait. */
static int step(struct exchange *exchange, struct failure *failure)
{
	uint64_t until_ns;
	bool any = advance(exchange, &until_ns);

	if (exchange->failed.any)
		return exchange_give_failure(exchange, failure);
	if (any || compute(exchange))
		end_wait(exchange);
	else
		exchange->transport->wait(exchange, until_ns);
	return 0;
}

static int go_on_until(struct exchange *exchange,
		       bool (*is_done)(const struct exchange *exchange),
		       struct failure *failure)
{
	int error = 0;

	while (error == 0 && !is_done(exchange))
		error = step(exchange, failure);
	end_wait(exchange);
	return error;
}

/* --- collectives that go straight -------------------------------------------
 */

/* One step is not enough: what a rank asks for may be many datagrams. */
int exchange_serve(struct exchange *exchange, struct failure *failure)
{
	unsigned steps = exchange->serve_steps_max;
	uint64_t until_ns;

	while (steps-- > 0 && advance(exchange, &until_ns) &&
	       !exchange->failed.any)
		;
	if (!exchange->failed.any)
		return 0;
	return settle_after(exchange, exchange_give_failure(exchange, failure));
}

static unsigned member(const struct exchange_collective *collective, unsigned i)
{
	return collective->group ? collective->group[i] : i;
}

/* Keep what was announced in a collective of all ranks: a rank that has not
 * heard it yet may ask when this one is in the next. */
static void keep_lengths(struct exchange *exchange)
{
	struct exchange_before *before = &exchange->before;
	uint64_t *lengths = before->lengths;

	if (!exchange->all_meet)
		return;
	before->epoch = exchange->epoch - 1;
	before->told_all = exchange->tells_all;
	before->lengths = exchange->lengths;
	exchange->lengths = lengths;
}

/* The ranks that meet, and our messages to them. */
static void form_ring(struct exchange *exchange)
{
	const struct exchange_collective *collective = exchange->collective;
	unsigned own = 0;

	keep_lengths(exchange);
	exchange->watches_ring = false;
	for (unsigned i = 0; i < exchange->ring_count; i++) {
		exchange->peers[exchange->ring[i]]->meets = false;
		exchange->lengths[exchange->ring[i]] = 0;
	}
	exchange->ring_count = collective->group ? collective->group_count
						 : exchange_count(exchange);
	exchange->all_meet = !collective->group;
	exchange->tells_all = exchange->all_meet &&
			      exchange_count(exchange) <= EXCHANGE_KNOWN_MAX;
	while (member(collective, own) != exchange_own(exchange))
		own++;
	for (unsigned i = 0; i < exchange->ring_count; i++) {
		unsigned node =
			member(collective, (own + i) % exchange->ring_count);

		exchange->ring[i] = node;
		exchange_peer_of(exchange, node)->meets = true;
		if (i > 0)
			store_le64(&exchange->lengths[node],
				   collective->send_bytes[node]);
	}
}

static void announce(struct exchange *exchange)
{
	const struct exchange_transport *transport = exchange->transport;

	if (exchange->tells_all)
		transport->tell(exchange, EXCHANGE_ALL, EXCHANGE_LENGTHS);
	for (unsigned i = 1; !exchange->tells_all && i < exchange->ring_count;
	     i++)
		transport->tell(exchange, exchange->ring[i], EXCHANGE_LENGTHS);
}

static int begin(struct exchange *exchange,
		 const struct exchange_collective *collective,
		 struct failure *failure)
{
	assert(!exchange->collective);
	if (exchange->epoch == EXCHANGE_COLLECTIVES_MAX)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "more than %d messages to all ranks",
				   EXCHANGE_COLLECTIVES_MAX);
	/* They may tell ranks that are behind where this one stands. */
	exchange_settle(exchange);
	exchange->collective = collective;
	exchange->epoch++;
	exchange->is_prepared = false;
	form_ring(exchange);
	if (exchange->transport->begin)
		exchange->transport->begin(exchange);
	announce(exchange);
	return exchange_serve(exchange, failure);
}

static bool all_have_come(const struct exchange *exchange)
{
	return exchange->is_prepared && exchange->in_left == 0;
}

static bool all_are_through(const struct exchange *exchange)
{
	return all_have_come(exchange) &&
	       exchange->transport->is_through(exchange);
}

static int receive(struct exchange *exchange, struct failure *failure)
{
	return go_on_until(exchange, all_have_come, failure);
}

static int finish(struct exchange *exchange, struct failure *failure)
{
	int error = go_on_until(exchange, all_are_through, failure);

	/* What is being sent again may be on its way out. */
	exchange_settle(exchange);
	exchange->collective = NULL;
	return error;
}

static void close_all(struct exchange *exchange)
{
	if (exchange->transport->stop)
		exchange->transport->stop(exchange);
	exchange_peers_fini(exchange);
	free(exchange->lengths);
	free(exchange->before.lengths);
	free(exchange->receive_bytes);
	free(exchange->ring);
	exchange->transport->close(exchange);
}

static const struct exchange_ops straight = {
	.begin = begin,
	.bytes = exchange_message_bytes,
	.receive = receive,
	.finish = finish,
	.close = close_all,
};

/* --- barriers ---------------------------------------------------------------
 */

static bool phase_is_reached(const struct exchange *exchange)
{
	for (unsigned node = 0; node < exchange_count(exchange); node++)
		if (exchange_awaits_phase(exchange, node))
			return false;
	return true;
}

static void come_to(struct exchange *exchange, uint32_t phase, unsigned node)
{
	exchange->phase = phase;
	exchange->transport->tell(exchange, node, EXCHANGE_PHASE);
}

/* All ranks tell rank 0, and then rank 0 tells all. */
int exchange_barrier(struct exchange *exchange, uint32_t phase,
		     const void *payload, size_t payload_bytes,
		     struct failure *failure)
{
	unsigned own = exchange_own(exchange);
	int error;

	assert(payload_bytes <= EXCHANGE_APPLICATION_BYTES_MAX);
	exchange_hear_payload(exchange, own, payload, payload_bytes);
	exchange->phase_wanted = phase;
	exchange->delay_ms = 0;
	if (own != 0)
		come_to(exchange, phase, 0);
	error = go_on_until(exchange, phase_is_reached, failure);
	exchange->phase_wanted = 0;
	if (error == 0 && own == 0)
		come_to(exchange, phase, EXCHANGE_ALL);
	return error;
}

void exchange_tell(struct exchange *exchange, const void *payload,
		   size_t payload_bytes)
{
	unsigned own = exchange_own(exchange);

	assert(payload_bytes <= EXCHANGE_APPLICATION_BYTES_MAX &&
	       exchange->phase == 0);
	exchange_hear_payload(exchange, own, payload, payload_bytes);
	if (own != 0)
		exchange->transport->tell(exchange, 0, EXCHANGE_TOLD);
}

void exchange_announce_delay(struct exchange *exchange, uint32_t delay_ms)
{
	exchange->delay_ms = MIN(delay_ms, EXCHANGE_DELAY_MS_MAX);
	exchange->transport->tell(exchange, EXCHANGE_ALL, EXCHANGE_ALIVE);
}

void exchange_fail(struct exchange *exchange, const struct failure *failure)
{
	exchange_note_own_failure(exchange, failure);
	exchange_settle(exchange);
	exchange->transport->tell_failure(exchange);
}

unsigned exchange_stay(struct exchange *exchange, uint64_t for_ns)
{
	uint64_t now_ns = clock_now_ns(), end_ns = now_ns + for_ns;
	struct failure failure;

	exchange->phase_wanted = EXCHANGE_PHASE_GONE;
	while (!phase_is_reached(exchange) && now_ns < end_ns &&
	       step(exchange, &failure) == 0) {
		uint64_t then_ns = now_ns;

		now_ns = clock_now_ns();
		/* The time that this rank was away does not count. */
		if (now_ns - then_ns > 2 * LIVENESS_QUERY_NS_MAX)
			end_ns += now_ns - then_ns;
	}
	exchange->phase_wanted = 0;
	exchange->phase = EXCHANGE_PHASE_GONE;
	return above(exchange_own(exchange));
}

void exchange_leave(struct exchange *exchange)
{
	exchange->transport->leave(exchange);
}

/* --- the other calls of the interface ---------------------------------------
 */

int exchange_join(struct exchange *exchange, struct failure *failure)
{
	return go_on_until(exchange, exchange_all_are_here, failure);
}

void exchange_set_schedule(struct exchange *exchange,
			   enum exchange_schedule schedule)
{
	assert(schedule == EXCHANGE_ROUNDS || schedule == EXCHANGE_ALL_AT_ONCE);
	exchange->schedule = schedule;
}

void exchange_go_by(struct exchange *exchange, const struct exchange_ops *ops,
		    struct exchange_grid *grid)
{
	exchange->ops = ops;
	exchange->grid = grid;
	exchange->schedule = EXCHANGE_GRID;
}

int exchange_begin(struct exchange *exchange,
		   const struct exchange_collective *collective,
		   struct failure *failure)
{
	assert(collective->length);
	return settle_after(
		exchange, exchange->ops->begin(exchange, collective, failure));
}

uint64_t exchange_bytes(const struct exchange *exchange, unsigned source,
			unsigned destination)
{
	return exchange->ops->bytes(exchange, source, destination);
}

bool exchange_knows_all(const struct exchange *exchange)
{
	return exchange->schedule != EXCHANGE_GRID &&
	       exchange_count(exchange) <= EXCHANGE_KNOWN_MAX;
}

int exchange_receive(struct exchange *exchange, struct failure *failure)
{
	return settle_after(exchange,
			    exchange->ops->receive(exchange, failure));
}

int exchange_finish(struct exchange *exchange, struct failure *failure)
{
	return settle_after(exchange, exchange->ops->finish(exchange, failure));
}

void exchange_share_cpu(struct exchange *exchange)
{
	exchange->spins = false;
}

int64_t exchange_clock_offset_ns(const struct exchange *exchange, unsigned node,
				 uint64_t *bound_ns)
{
	const struct rank *rank = exchange->rank;

	*bound_ns = 0;
	if (node == rank->rank)
		return 0;
	if (exchange->transport->clock_offset_ns)
		return exchange->transport->clock_offset_ns(exchange, node,
							    bound_ns);
	if (rank->machine_count != rank->node_count)
		*bound_ns = UINT64_MAX;
	return 0;
}

const struct exchange_counters *
exchange_counters(const struct exchange *exchange)
{
	return &exchange->counters;
}

uint32_t exchange_payload_bytes(const struct exchange *exchange)
{
	return exchange->payload_bytes;
}

const char *exchange_transport(const struct exchange *exchange)
{
	return exchange->transport->name;
}

const char *const exchange_schedule_names[EXCHANGE_SCHEDULES] = {
	[EXCHANGE_ROUNDS] = "rounds",
	[EXCHANGE_ALL_AT_ONCE] = "all-at-once",
	[EXCHANGE_AUTO] = "auto",
	[EXCHANGE_GRID] = "grid",
};

/* --- opening and closing ----------------------------------------------------
 */

int exchange_init(struct exchange *exchange,
		  const struct exchange_transport *transport,
		  const struct exchange_options *options,
		  struct failure *failure)
{
	assert(options->hello_bytes <= EXCHANGE_HELLO_BYTES_MAX);
	exchange->ops = &straight;
	exchange->transport = transport;
	exchange->rank = options->rank;
	exchange->deadline_ns = options->deadline_ns;
	exchange->lane = options->lane;
	exchange->skips_hello = options->skips_hello;
	exchange->has_node = options->has_node;
	exchange->node = options->node;
	exchange->spins = options->spins;
	exchange->schedule = options->schedule;
	exchange->served_ns = clock_now_ns();
	exchange->lengths =
		calloc(exchange_count(exchange), sizeof(*exchange->lengths));
	exchange->before.lengths =
		calloc(exchange_count(exchange), sizeof(*exchange->lengths));
	exchange->receive_bytes = calloc(exchange_count(exchange),
					 sizeof(*exchange->receive_bytes));
	exchange->ring =
		calloc(exchange_count(exchange), sizeof(*exchange->ring));
	if (!exchange->lengths || !exchange->before.lengths ||
	    !exchange->receive_bytes || !exchange->ring ||
	    exchange_peers_init(exchange, exchange->served_ns) < 0)
		return failure_no_memory(failure);
	exchange_hear_hello(exchange, exchange_own(exchange), options->hello,
			    options->hello_bytes);
	return 0;
}

void exchange_place(const struct exchange *exchange, void *memory, size_t bytes)
{
	if (exchange->has_node)
		numa_prefer(memory, bytes, exchange->node);
}

void exchange_close(struct exchange *exchange)
{
	if (exchange)
		exchange->ops->close(exchange);
}
