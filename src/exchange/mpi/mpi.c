/*
 * mpi.c - the transport over MPI: when to poll, to wait, and to tell that this
 * rank is alive
 */
#include "exchange/mpi/mpi.h"

#include <sched.h>
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

/* --- STATUS -----------------------------------------------------------------
 */

static void tell(struct exchange *exchange, unsigned node,
		 enum exchange_news news)
{
	mpi_notes_tell(mpi_of(exchange), node, news);
}

/* A note that does not leave need not be followed by another. */
static void tell_alive(struct mpi *x, uint64_t now_ns)
{
	if (now_ns < x->alive_ns)
		return;
	x->alive_ns = now_ns + x->base.deadline_ns / ALIVE_PER_DEADLINE;
	if (mpi_notes_are_sent(x))
		mpi_notes_tell(x, EXCHANGE_ALL, EXCHANGE_ALIVE);
}

static bool hear(struct exchange *exchange, uint64_t now_ns)
{
	struct mpi *x = mpi_of(exchange);

	tell_alive(x, now_ns);
	return mpi_notes_receive(x);
}

/* --- DATA -------------------------------------------------------------------
 */

static int prepare(struct exchange *exchange)
{
	mpi_chunks_begin(mpi_of(exchange));
	return 0;
}

static bool move(struct exchange *exchange, uint64_t now_ns, uint64_t *until_ns)
{
	(void)until_ns;
	return mpi_chunks_advance(mpi_of(exchange), now_ns);
}

static bool waits_for(const struct exchange *exchange, unsigned node)
{
	const struct mpi_peer *peer = &mpi_of_const(exchange)->peers[node];

	return exchange->is_prepared &&
	       (peer->in_prefix < peer->in_bytes ||
		peer->out_done_bytes < peer->out_bytes);
}

/* What has left is MPI's, which brings it there. */
static bool is_through(const struct exchange *exchange)
{
	const struct mpi *x = mpi_of_const(exchange);

	return x->out_turn.round == exchange->ring_count && x->out_count == 0;
}

/* --- waiting ----------------------------------------------------------------
 */

/* MPI tells of nothing that comes: a wait is over after a moment. */
static void wait_a_moment(struct exchange *exchange, uint64_t until_ns)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct mpi *x = mpi_of(exchange);
	uint64_t now_ns = clock_now_ns();

	(void)until_ns;
	if (x->wait_ns == 0)
		x->wait_ns = now_ns;
	if (now_ns - x->wait_ns > POLL_NS)
		nanosleep(&nap, NULL);
	else if (!exchange->spins)
		sched_yield();
}

static void end_wait(struct exchange *exchange)
{
	struct mpi *x = mpi_of(exchange);
	uint64_t wait_ns;

	if (x->wait_ns == 0)
		return;
	wait_ns = clock_now_ns() - x->wait_ns;
	exchange->counters.poll_wait_ns += wait_ns;
	if (exchange->lane && wait_ns > TRACED_NS)
		trace_end(exchange->lane, x->wait_ns, "wait");
	x->wait_ns = 0;
}

/* --- the end ----------------------------------------------------------------
 */

/* Wait for notes to leave, but not for long: a rank may not hear us. */
static void send_rest(struct mpi *x, uint64_t for_ns)
{
	uint64_t end_ns = clock_now_ns() + for_ns;

	while (!mpi_notes_are_sent(x) && clock_now_ns() < end_ns)
		wait_a_moment(&x->base, end_ns);
	end_wait(&x->base);
}

static void tell_failure(struct exchange *exchange)
{
	struct mpi *x = mpi_of(exchange);

	if (x->has_told_failure)
		return;
	mpi_notes_tell(x, EXCHANGE_ALL, EXCHANGE_FAILED);
	send_rest(x, FAILED_NS);
}

static void leave(struct exchange *exchange)
{
	send_rest(mpi_of(exchange), LEAVE_NS);
}

/* --- opening and closing ----------------------------------------------------
 */

/* What MPI may still read or write must stay. */
static void close_mpi(struct exchange *exchange)
{
	struct mpi *x = mpi_of(exchange);
	bool ended = mpi_chunks_close(x);

	ended &= mpi_notes_close(x);
	if (!ended) {
		mpi_world_leave_pending(x->world);
		return;
	}
	free(x->peers);
	free(x);
}

static const struct exchange_transport transport = {
	.name = "mpi",
	.tell = tell,
	.hear = hear,
	.prepare = prepare,
	.move = move,
	.waits_for = waits_for,
	.is_through = is_through,
	.wait = wait_a_moment,
	.end_wait = end_wait,
	.tell_failure = tell_failure,
	.leave = leave,
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

static int read_numbers(struct mpi *x, struct failure *failure)
{
	uint64_t chunk_bytes, window;
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
	/* Each chunk of the window may be taken, and another begun. */
	x->base.serve_steps_max = 4 * x->window + mpi_node_count(x);
	return 0;
}

static int init(struct mpi *x, const struct exchange_options *options,
		struct failure *failure)
{
	int error = exchange_init(&x->base, &transport, options, failure);

	mpi_notes_init(x);
	mpi_chunks_init(x);
	x->alive_ns =
		clock_now_ns() + options->deadline_ns / ALIVE_PER_DEADLINE;
	if (error == 0)
		error = read_numbers(x, failure);
	if (error)
		return error;
	x->peers = calloc(mpi_node_count(x), sizeof(*x->peers));
	return x->peers ? 0 : failure_no_memory(failure);
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
	x->world = world;
	if (init(x, options, failure) < 0) {
		exchange_close(&x->base);
		return NULL;
	}
	mpi_notes_tell(x, EXCHANGE_ALL, EXCHANGE_HELLO);
	return &x->base;
}
