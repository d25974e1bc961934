/*
 * mpi.c - the exchange over MPI: the calls of the interface, and the loop below
 * them all
 */
#include "exchange/mpi/mpi.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "exchange/mpi/mpi_state.h"

/* A full chunk, and the chunks under way from us and to us.  Those from us stay
 * in a cache together, while a chunk's own cost of some microseconds is a
 * twentieth of the time to copy it.  With one to us, MPI would have nothing to
 * do until the next is begun. */
#define CHUNK_BYTES (512 * KIB)
#define WINDOW 4
#define IN_WINDOW 2
/* Tests set other numbers.  Chunks must be the same on all ranks, which compare
 * them. */
#define CHUNK_VARIABLE "BLINK_MPI_CHUNK_BYTES"
#define WINDOW_VARIABLE "BLINK_MPI_WINDOW"
#define CHUNK_BYTES_MAX MIB

/* Poll for this long, and then sleep between polls.  A thread that has its CPU
 * for itself does not yield it while it polls: another process would then have
 * it for some milliseconds. */
#define POLL_NS ((uint64_t)1000000)
#define NAP_NS 50000
/* A shorter wait is no event of a trace. */
#define TRACED_NS ((uint64_t)50000)
/* Notes that a rank sends within a deadline, to tell others that it is alive.
 */
#define ALIVE_PER_DEADLINE 8
/* How long a rank that fails stays for its notes to leave, and rank 0 after the
 * last barrier. */
#define FAILED_NS ((uint64_t)200000000)
#define LEAVE_NS ((uint64_t)1000000000)

/* --- waiting ----------------------------------------------------------------
 */

/* True if only this peer can give us something that we need. */
static bool is_waited_for(const struct mpi *x, unsigned node)
{
	const struct mpi_peer *peer = &x->peers[node];

	if (node == mpi_own(x))
		return false;
	if (!peer->is_here)
		return true;
	if (x->phase_wanted > 0 && peer->phase < x->phase_wanted &&
	    (mpi_own(x) == 0 || node == 0))
		return true;
	if (!x->collective || !peer->meets)
		return false;
	return !mpi_has_announced(x, node) ||
	       (x->is_prepared && (peer->in_prefix < peer->in_bytes ||
				   peer->out_done_bytes < peer->out_bytes));
}

static void give_up(struct mpi *x, unsigned node)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why),
		 x->peers[node].is_here ? "has been silent for %.1f s"
					: "has not come within %.1f s",
		 (double)x->deadline_ns / 1e9);
	exchange_note_failure(&x->base, node, EXIT_PEER, why);
}

static void look_for_silent_ones(struct mpi *x, uint64_t now_ns)
{
	for (unsigned node = 0; node < mpi_node_count(x); node++) {
		struct mpi_peer *peer = &x->peers[node];

		if (!is_waited_for(x, node)) {
			peer->waiting_since_ns = 0;
			continue;
		}
		if (peer->waiting_since_ns == 0)
			peer->waiting_since_ns = now_ns;
		if (now_ns > MAX(peer->heard_ns, peer->waiting_since_ns) +
				     x->deadline_ns &&
		    now_ns > peer->quiet_until_ns)
			give_up(x, node);
	}
}

/* If this rank was away itself, the silence of others says nothing. */
static void note_absence(struct mpi *x, uint64_t now_ns)
{
	if (now_ns > x->served_ns + x->deadline_ns / 4)
		for (unsigned i = 0; i < mpi_node_count(x); i++)
			x->peers[i].heard_ns = now_ns;
	x->served_ns = now_ns;
}

static void tell_alive(struct mpi *x, uint64_t now_ns)
{
	if (now_ns < x->alive_ns)
		return;
	x->alive_ns = now_ns + x->deadline_ns / ALIVE_PER_DEADLINE;
	/* A note that does not leave need not be followed by another. */
	if (mpi_notes_are_sent(x))
		mpi_notes_send_all(x, MPI_NOTE_ALIVE, 0, NULL, 0);
}

static void wait_a_moment(struct mpi *x)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t now_ns = clock_now_ns();

	if (x->wait_ns == 0)
		x->wait_ns = now_ns;
	if (now_ns - x->wait_ns > POLL_NS)
		nanosleep(&nap, NULL);
	else if (!x->base.spins)
		sched_yield();
}

static void end_wait(struct mpi *x)
{
	uint64_t wait_ns;

	if (x->wait_ns == 0)
		return;
	wait_ns = clock_now_ns() - x->wait_ns;
	x->base.counters.poll_wait_ns += wait_ns;
	if (x->lane && wait_ns > TRACED_NS)
		trace_end(x->lane, x->wait_ns, "wait");
	x->wait_ns = 0;
}

/* --- the loop ---------------------------------------------------------------
 */

static int prepare(struct mpi *x, struct failure *failure)
{
	uint64_t bytes[RANK_NODES_MAX];
	int error =
		exchange_check_lengths(&x->base, x->collective, bytes, failure);

	return error ? error
		     : x->collective->prepare(x->collective->context, bytes,
					      failure);
}

static void prepare_when_announced(struct mpi *x)
{
	struct failure failure;

	for (unsigned i = 1; i < x->ring_count; i++)
		if (!mpi_has_announced(x, x->ring[i]))
			return;
	if (prepare(x, &failure) < 0) {
		exchange_fail(&x->base, &failure);
		return;
	}
	mpi_chunks_begin(x);
	x->is_prepared = true;
	for (unsigned i = 1; i < x->ring_count; i++)
		if (x->peers[x->ring[i]].in_bytes == 0)
			x->collective->arrived(x->collective->context,
					       x->ring[i], 0, true);
}

/* Do all that can be done without waiting.  True if there was anything. */
static bool advance(struct mpi *x)
{
	uint64_t now_ns = clock_now_ns();
	bool any;

	note_absence(x, now_ns);
	any = mpi_notes_receive(x);
	if (x->collective && !x->is_prepared && !x->base.failed.any)
		prepare_when_announced(x);
	if (x->is_prepared && !x->base.failed.any)
		any |= mpi_chunks_advance(x, now_ns);
	tell_alive(x, now_ns);
	if (!any)
		look_for_silent_ones(x, now_ns);
	return any;
}

/* If there is nothing to do, compute or wait. */
static int step(struct mpi *x, struct failure *failure)
{
	bool any = advance(x);

	if (x->base.failed.any)
		return exchange_give_failure(&x->base, failure);
	if (any || (x->collective && x->collective->idle &&
		    x->collective->idle(x->collective->context)))
		end_wait(x);
	else
		wait_a_moment(x);
	return 0;
}

static int go_on_until(struct mpi *x, bool (*is_done)(const struct mpi *x),
		       struct failure *failure)
{
	int error = 0;

	while (error == 0 && !is_done(x))
		error = step(x, failure);
	end_wait(x);
	return error;
}

static int serve(struct exchange *exchange, struct failure *failure)
{
	struct mpi *x = mpi_of(exchange);
	/* Each chunk of the window may be taken, and another begun. */
	unsigned steps = 4 * x->window + mpi_node_count(x);

	while (steps-- > 0 && advance(x) && !exchange->failed.any)
		;
	return exchange->failed.any ? exchange_give_failure(exchange, failure)
				    : 0;
}

/* --- telling of a failure ---------------------------------------------------
 */

/* For a while, also of a rank that does not hear us. */
static void send_rest(struct mpi *x, uint64_t for_ns)
{
	uint64_t end_ns = clock_now_ns() + for_ns;

	while (!mpi_notes_are_sent(x) && clock_now_ns() < end_ns)
		wait_a_moment(x);
	end_wait(x);
}

static void tell_failure(struct exchange *exchange)
{
	const struct exchange_failed *failed = &exchange->failed;
	struct mpi *x = mpi_of(exchange);

	if (x->has_told_failure)
		return;
	x->has_told_failure = true;
	mpi_notes_send_all(x, MPI_NOTE_FAILED,
			   (uint64_t)failed->node << 32 |
				   (uint32_t)failed->failure.status,
			   failed->failure.why, strlen(failed->failure.why));
	send_rest(x, FAILED_NS);
}

/* --- joining ----------------------------------------------------------------
 */

static bool all_are_here(const struct mpi *x)
{
	for (unsigned node = 0; node < mpi_node_count(x); node++)
		if (node != mpi_own(x) && !x->peers[node].is_here)
			return false;
	return true;
}

static int join(struct exchange *exchange, struct failure *failure)
{
	return go_on_until(mpi_of(exchange), all_are_here, failure);
}

static const void *hello(const struct exchange *exchange, unsigned node,
			 size_t *byte_count)
{
	const struct mpi *x = mpi_of_const(exchange);
	const struct mpi_peer *peer = &x->peers[node];

	if (node == mpi_own(x)) {
		*byte_count = x->hello_bytes;
		return x->hello;
	}
	*byte_count = peer->hello_bytes;
	return peer->hello;
}

/* --- collectives ------------------------------------------------------------
 */

/* The ranks that meet in the collective, in the order of our rounds. */
static void form_ring(struct mpi *x)
{
	for (unsigned node = 0; node < mpi_node_count(x); node++)
		x->peers[node].meets = false;
	x->ring_count = exchange_form_ring(&x->base, x->collective, x->ring);
	for (unsigned i = 0; i < x->ring_count; i++)
		x->peers[x->ring[i]].meets = true;
}

static void announce(struct mpi *x)
{
	if (exchange_tells_all(&x->base, x->collective)) {
		mpi_notes_send_all(x, MPI_NOTE_LENGTHS, 0, x->send_bytes,
				   mpi_node_count(x) * sizeof(*x->send_bytes));
		return;
	}
	for (unsigned i = 1; i < x->ring_count; i++)
		mpi_notes_send(x, x->ring[i], MPI_NOTE_LENGTHS,
			       x->send_bytes[x->ring[i]], NULL, 0);
}

static int begin(struct exchange *exchange,
		 const struct exchange_collective *collective,
		 struct failure *failure)
{
	struct mpi *x = mpi_of(exchange);
	unsigned count = mpi_node_count(x);

	assert(!x->collective && x->epoch < EXCHANGE_COLLECTIVES_MAX);
	x->collective = collective;
	x->epoch++;
	x->is_prepared = false;
	memcpy(x->send_bytes, collective->send_bytes,
	       count * sizeof(*x->send_bytes));
	x->send_bytes[mpi_own(x)] = 0;
	form_ring(x);
	announce(x);
	return serve(exchange, failure);
}

static uint64_t message_bytes(const struct exchange *exchange, unsigned source,
			      unsigned destination)
{
	const struct mpi *x = mpi_of_const(exchange);

	if (source == mpi_own(x))
		return x->send_bytes[destination];
	if (destination == mpi_own(x))
		return mpi_announced(x, source)->byte_count;
	return mpi_announced(x, source)->bytes[destination];
}

static bool has_told_all(const struct exchange *exchange, unsigned node)
{
	return mpi_announced(mpi_of_const(exchange), node)->has_all;
}

static bool all_have_come(const struct mpi *x)
{
	return x->is_prepared && x->in_left == 0;
}

static bool all_are_through(const struct mpi *x)
{
	return all_have_come(x) && mpi_all_sent(x);
}

static int receive(struct exchange *exchange, struct failure *failure)
{
	return go_on_until(mpi_of(exchange), all_have_come, failure);
}

/* What has left is MPI's, which brings it there. */
static int finish(struct exchange *exchange, struct failure *failure)
{
	struct mpi *x = mpi_of(exchange);
	int error = go_on_until(x, all_are_through, failure);

	x->collective = NULL;
	x->is_prepared = false;
	return error;
}

/* --- barriers ---------------------------------------------------------------
 */

static bool phase_is_reached(const struct mpi *x)
{
	if (mpi_own(x) != 0)
		return x->peers[0].phase >= x->phase_wanted;
	for (unsigned node = 1; node < mpi_node_count(x); node++)
		if (x->peers[node].phase < x->phase_wanted)
			return false;
	return true;
}

/* All ranks tell rank 0, and then rank 0 tells all. */
static int barrier(struct exchange *exchange, uint32_t phase,
		   const void *payload, size_t payload_bytes,
		   struct failure *failure)
{
	struct mpi *x = mpi_of(exchange);
	int error;

	if (payload_bytes > 0)
		memcpy(x->application, payload, payload_bytes);
	x->application_bytes = payload_bytes;
	x->phase_wanted = phase;
	x->delay_ms = 0;
	if (mpi_own(x) != 0)
		mpi_notes_send(x, 0, MPI_NOTE_PHASE, 0, payload, payload_bytes);
	error = go_on_until(x, phase_is_reached, failure);
	if (error == 0 && mpi_own(x) == 0)
		mpi_notes_send_all(x, MPI_NOTE_PHASE, 0, NULL, 0);
	x->phase_wanted = 0;
	return error;
}

static void tell(struct exchange *exchange, const void *payload,
		 size_t payload_bytes)
{
	struct mpi *x = mpi_of(exchange);

	memcpy(x->application, payload, payload_bytes);
	x->application_bytes = payload_bytes;
	if (mpi_own(x) != 0)
		mpi_notes_send(x, 0, MPI_NOTE_TOLD, 0, payload, payload_bytes);
}

static const void *application_payload(const struct exchange *exchange,
				       unsigned node, size_t *byte_count)
{
	const struct mpi *x = mpi_of_const(exchange);
	const struct mpi_peer *peer = &x->peers[node];

	if (node == mpi_own(x)) {
		*byte_count = x->application_bytes;
		return x->application;
	}
	*byte_count = peer->application_bytes;
	return peer->application;
}

static void announce_delay(struct exchange *exchange, uint32_t delay_ms)
{
	struct mpi *x = mpi_of(exchange);

	x->delay_ms = MIN(delay_ms, EXCHANGE_DELAY_MS_MAX);
	mpi_notes_send_all(x, MPI_NOTE_ALIVE, 0, NULL, 0);
}

static void leave(struct exchange *exchange)
{
	send_rest(mpi_of(exchange), LEAVE_NS);
}

/* --- reporting --------------------------------------------------------------
 */

/* Ranks of one machine have one clock; others' clocks are not compared. */
static int64_t clock_offset_ns(const struct exchange *exchange, unsigned node,
			       uint64_t *bound_ns)
{
	const struct rank *rank = exchange->rank;

	*bound_ns =
		node == rank->rank || rank->machine_count == rank->node_count
			? 0
			: UINT64_MAX;
	return 0;
}

static uint32_t payload_bytes(const struct exchange *exchange)
{
	(void)exchange;
	return 0;
}

/* --- opening and closing ----------------------------------------------------
 */

static void free_all(struct mpi *x)
{
	for (unsigned node = 0; x->peers && node < mpi_node_count(x); node++)
		for (unsigned i = 0; i < MPI_ANNOUNCED; i++)
			free(x->peers[node].announced[i].bytes);
	free(x->peers);
	free(x->ring);
	free(x->send_bytes);
	free(x);
}

/* What MPI may still read or write must stay. */
static void close_mpi(struct exchange *exchange)
{
	struct mpi *x = mpi_of(exchange);
	bool ended = mpi_chunks_close(x);

	ended &= mpi_notes_close(x);
	if (ended)
		free_all(x);
	else
		x->world->has_pending = true;
}

static const struct exchange_ops ops = {
	.transport = "mpi",
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
	.payload_bytes = payload_bytes,
	.close = close_mpi,
};

/* The value of a variable, or what holds without it. */
static int read_number(const char *name, uint64_t max, uint64_t otherwise,
		       uint64_t *number, struct failure *failure)
{
	const char *text = getenv(name);

	*number = otherwise;
	if (!text || parse_u64(text, 1, max, number) == 0)
		return 0;
	return failure_set(failure, EXIT_USAGE, name, 0,
			   "'%.40s': want a number from 1 to %llu", text,
			   (unsigned long long)max);
}

static int init(struct mpi *x, struct failure *failure)
{
	unsigned count = mpi_node_count(x);
	uint64_t now_ns = clock_now_ns(), chunk_bytes, window;
	int error = read_number(CHUNK_VARIABLE, CHUNK_BYTES_MAX, CHUNK_BYTES,
				&chunk_bytes, failure);

	if (error == 0)
		error = read_number(WINDOW_VARIABLE, MPI_WINDOW_MAX, WINDOW,
				    &window, failure);
	if (error)
		return error;
	x->chunk_bytes = chunk_bytes;
	x->window = (unsigned)window;
	x->in_window = MIN(x->window, IN_WINDOW);
	x->peers = calloc(count, sizeof(*x->peers));
	x->send_bytes = calloc(count, sizeof(*x->send_bytes));
	x->ring = calloc(count, sizeof(*x->ring));
	if (!x->peers || !x->send_bytes || !x->ring)
		return failure_no_memory(failure);
	for (unsigned node = 0; node < count; node++) {
		struct mpi_peer *peer = &x->peers[node];

		peer->heard_ns = now_ns;
		for (unsigned i = 0;
		     i < MPI_ANNOUNCED && count <= EXCHANGE_KNOWN_MAX; i++) {
			peer->announced[i].bytes =
				calloc(count, sizeof(uint64_t));
			if (!peer->announced[i].bytes)
				return failure_no_memory(failure);
		}
	}
	x->served_ns = now_ns;
	x->alive_ns = now_ns + x->deadline_ns / ALIVE_PER_DEADLINE;
	return 0;
}

struct exchange *mpi_open(struct mpi_world *world,
			  const struct exchange_options *options,
			  struct failure *failure)
{
	struct mpi *x = calloc(1, sizeof(*x));

	if (!x) {
		failure_no_memory(failure);
		return NULL;
	}
	x->base.ops = x->base.transport = &ops;
	x->base.rank = options->rank;
	x->base.spins = options->spins;
	x->base.schedule = options->schedule;
	x->world = world;
	x->deadline_ns = options->deadline_ns;
	x->lane = options->lane;
	x->hello_bytes = options->hello_bytes;
	memcpy(x->hello, options->hello, options->hello_bytes);
	x->hearing = MPI_REQUEST_NULL;
	for (unsigned slot = 0; slot < ARRAY_LEN(x->requests); slot++)
		x->requests[slot] = MPI_REQUEST_NULL;
	if (init(x, failure) < 0) {
		free_all(x);
		return NULL;
	}
	mpi_notes_send_all(x, MPI_NOTE_HELLO, x->chunk_bytes, x->hello,
			   x->hello_bytes);
	return &x->base;
}
