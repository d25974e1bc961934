/*
 * exchange.c - joining, collectives, barriers, and the loop below them all
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/exchange_state.h"

#define MILLISECOND_NS ((uint64_t)1000000)
/* A question is repeated after so long, twice that, ... : if a CPU is ours, and
 * if ranks share them and a peer may just wait for its turn. */
#define ASK_NS MILLISECOND_NS
#define ASK_SHARED_NS (30 * MILLISECOND_NS)
#define ASK_NS_MAX (64 * MILLISECOND_NS)
/* Whether one of whom nothing is urgent is alive: so often within a deadline.
 */
#define ALIVE_PART 16
/* Looked again for so long before sleeping: two round trips between CPUs. */
#define SPIN_NS ((uint64_t)30000)
/* A call of exchange_serve() goes on for so many steps: for some lists of gaps,
 * but not for as long as strangers send. */
#define SERVE_STEPS_MAX (4 * EXCHANGE_GAPS_MAX)
/* Rank 0 stays so long for those who have not said that they go. */
#define LEAVE_NS (1000 * MILLISECOND_NS)
#define PHASE_GONE UINT32_MAX
/* A failure, and that we go, is told so many times, since nobody answers; the
 * latter more often if we know that much is lost: rank 0 would stay. */
#define LAST_TELLS 3
#define LAST_TELLS_LOSSY 10
/* Below the ports that the system gives out by itself. */
#define PORT_FIRST 10240
#define PORT_COUNT 20000
/* A few messages of the benchmark's size; the kernel may grant less. */
#define RECEIVE_ROOM_BYTES ((uint32_t)16 << 20)
/* What lies in the socket counts with its overhead: at most so many times. */
#define ROOM_PART 3
/* On loopback what was sent is ours until it was taken: room for a message, or
 * two processes would take turns. */
#define SEND_ROOM_LOOPBACK_BYTES ((uint32_t)4 << 20)
/* Elsewhere what a card sends in 0.2 ms at 10 Gbit/s, so that what is said of a
 * message goes right behind it. */
#define SEND_ROOM_BYTES ((uint32_t)256 << 10)

/* --- failing ---------------------------------------------------------------
 */

void exchange_note_failure(struct exchange *x, unsigned node,
			   enum exit_status status, const char *why)
{
	if (x->failed)
		return;
	x->failed = true;
	x->failed_node = node;
	snprintf(x->failed_what, sizeof(x->failed_what), "rank %u (%s)", node,
		 x->rank->names[node]);
	failure_set(&x->failure, status, x->failed_what, 0, "%s", why);
}

static int give_failure(const struct exchange *x, struct failure *failure)
{
	*failure = x->own_failure.status == EXIT_DONE ? x->failure
						      : x->own_failure;
	return -EPIPE;
}

int exchange_blame(struct exchange *x, unsigned node, struct failure *failure,
		   const char *format, ...)
{
	char why[FAILURE_WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	exchange_note_failure(x, node, EXIT_PEER, why);
	return give_failure(x, failure);
}

/* --- waiting ---------------------------------------------------------------
 */

/* Is there something that only this peer can give us? */
static bool is_wanted(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];

	if (node == exchange_own(x))
		return false;
	if (!peer->heard)
		return true;
	if (x->phase_wanted > 0 && peer->phase < x->phase_wanted &&
	    (exchange_own(x) == 0 || node == 0))
		return true;
	if (!x->collective)
		return false;
	return !exchange_has_announced(x, node) ||
	       (x->prepared && !arrivals_complete(&peer->in)) ||
	       !exchange_is_acked(x, node) ||
	       exchange_round_waits_for(x) == node;
}

/* What a STATUS that was lost may keep from us, and not just its turn. */
static bool is_urgent(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];

	return !peer->heard || !x->collective ||
	       !exchange_has_announced(x, node) ||
	       (!peer->ready && peer->exchange == x->exchange) ||
	       (peer->sent_bytes == peer->out_bytes &&
		!exchange_is_acked(x, node)) ||
	       exchange_round_waits_for(x) == node;
}

static void give_up(struct exchange *x, unsigned node)
{
	char why[FAILURE_WHY_BYTES];

	snprintf(why, sizeof(why),
		 x->peers[node].heard ? "has been silent for %.1f s"
				      : "has not come within %.1f s",
		 (double)x->options.deadline_ns / 1e9);
	exchange_note_failure(x, node, EXIT_PEER, why);
}

/* Where queues are long, what was said is on its way for as long. */
static uint64_t first_interval_ns(const struct exchange *x,
				  const struct exchange_peer *peer)
{
	return MAX(x->ask_ns, MIN(2 * peer->last_round_trip_ns, ASK_NS_MAX));
}

/* Ask, if it is time to; returns when it will be the next time. */
static uint64_t ask(struct exchange *x, unsigned node, uint64_t now_ns)
{
	struct exchange_peer *peer = &x->peers[node];
	uint64_t since_ns = MAX(peer->progress_ns, peer->wanted_ns);
	uint64_t quiet_ns;

	if (now_ns > MAX(peer->heard_ns, peer->wanted_ns) +
			     x->options.deadline_ns &&
	    now_ns > peer->patient_ns) {
		give_up(x, node);
		return now_ns;
	}
	/* An answer without news is none: patience grows. */
	if (!is_urgent(x, node))
		peer->ask_interval_ns = x->options.deadline_ns / ALIVE_PART;
	else if (since_ns > peer->asked_ns)
		peer->ask_interval_ns = first_interval_ns(x, peer);
	else
		peer->ask_interval_ns = MIN(peer->ask_interval_ns, ASK_NS_MAX);
	quiet_ns = MAX(since_ns, peer->asked_ns);
	if (now_ns < quiet_ns + peer->ask_interval_ns)
		return quiet_ns + peer->ask_interval_ns;
	exchange_tell(x, node, EXCHANGE_ASKS);
	peer->asked_ns = now_ns;
	peer->ask_interval_ns = MIN(2 * peer->ask_interval_ns, ASK_NS_MAX);
	return now_ns + peer->ask_interval_ns;
}

/* Ask all of whom something is wanted; returns when to look again. */
static uint64_t ask_all(struct exchange *x, uint64_t now_ns)
{
	uint64_t next_ns = now_ns + ASK_NS_MAX;

	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		struct exchange_peer *peer = &x->peers[node];

		if (!is_wanted(x, node)) {
			peer->wanted_ns = 0;
			continue;
		}
		if (peer->wanted_ns == 0)
			peer->wanted_ns = now_ns;
		next_ns = MIN(next_ns, ask(x, node, now_ns));
	}
	return next_ns;
}

/* If it was us who were away, others' silence says nothing. */
static void note_absence(struct exchange *x, uint64_t now_ns)
{
	if (now_ns > x->served_ns + x->options.deadline_ns / 4)
		for (unsigned i = 0; i < exchange_node_count(x); i++)
			x->peers[i].heard_ns = now_ns;
	x->served_ns = now_ns;
}

/* So many others at least have to tell us something before we can go on, not
 * counting what is urgent to them, or comes as DATA. */
static unsigned tells_wanted(const struct exchange *x)
{
	unsigned unheard = 0, unannounced = 0, unacked = 0, behind = 0;

	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		const struct exchange_peer *peer = &x->peers[node];

		if (node == exchange_own(x))
			continue;
		if (x->collective && x->prepared &&
		    peer->sent_bytes < peer->out_bytes)
			return 1;
		unheard += !peer->heard;
		unannounced += !exchange_has_announced(x, node);
		unacked += !exchange_is_acked(x, node);
		behind += peer->phase < x->phase_wanted;
	}
	if (unheard > 0)
		return unheard;
	if (x->collective)
		return MAX(1, x->prepared ? unacked : unannounced);
	return exchange_own(x) == 0 ? MAX(1, behind) : 1;
}

static void wait_until(struct exchange *x, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = x->control.fd, .events = POLLIN },
		{ .fd = x->data.fd,
		  .events = (short)(POLLIN | (x->blocked ? POLLOUT : 0)) },
	};
	uint64_t begin_ns = clock_now_ns(), now_ns = begin_ns;
	struct timespec none = { 0 }, timeout;
	int ready = 0;

	if (x->board && !exchange_board_doze(x->board, tells_wanted(x)))
		return;
	while (x->options.spins && ready == 0 && now_ns - begin_ns < SPIN_NS &&
	       now_ns < until_ns) {
		ready = ppoll(fds, ARRAY_LEN(fds), &none, NULL);
		now_ns = clock_now_ns();
		ready |= x->board && exchange_board_has_news(x->board);
	}
	if (ready == 0 && now_ns < until_ns) {
		timeout.tv_sec = (time_t)((until_ns - now_ns) / 1000000000);
		timeout.tv_nsec = (long)((until_ns - now_ns) % 1000000000);
		ppoll(fds, ARRAY_LEN(fds), &timeout, NULL);
		now_ns = clock_now_ns();
	}
	if (x->board)
		exchange_board_rise(x->board);
	/* Back later than meant is away: see note_absence(). */
	x->served_ns = MIN(now_ns, MAX(begin_ns, until_ns));
	x->counters.wait_ns += now_ns - begin_ns;
	if (x->options.lane)
		trace_end(x->options.lane, begin_ns, "wait");
}

static bool all_are_here(const struct exchange *x)
{
	for (unsigned node = 0; node < exchange_node_count(x); node++)
		if (node != exchange_own(x) && !x->peers[node].heard)
			return false;
	return true;
}

/* --- telling of a failure ---------------------------------------------------
 */

/* Who starts later than we fail would wait for us: it is told when it says
 * hello.  Others' failures they tell themselves. */
static void wait_for_late_ones(struct exchange *x)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t end_ns = x->opened_ns + x->options.deadline_ns;

	while (x->failed_node == exchange_own(x) && !all_are_here(x) &&
	       now_ns < end_ns) {
		if (!exchange_hear(x))
			wait_until(x, MIN(end_ns, now_ns + ASK_NS_MAX));
		now_ns = clock_now_ns();
	}
}

void exchange_fail(struct exchange *x, const struct failure *failure)
{
	struct timespec pause = { .tv_nsec = (long)MILLISECOND_NS };
	char why[2 * FAILURE_WHY_BYTES];

	if (!x->failed) {
		snprintf(why, sizeof(why), "%.160s%s%s",
			 failure->what ? failure->what : "",
			 failure->what ? ": " : "", failure->why);
		exchange_note_failure(x, exchange_own(x), failure->status, why);
	}
	wait_for_late_ones(x);
	for (unsigned i = 0; i < LAST_TELLS; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		exchange_tell_all(x, 0);
	}
}

/* --- the loop --------------------------------------------------------------
 */

/* No memory has been allocated after the announced lengths yet. */
static int check_length(struct exchange *x, unsigned source,
			unsigned destination, struct failure *failure)
{
	uint64_t bytes = exchange_bytes(x, source, destination);
	const struct exchange_length length = x->collective->length(
		x->collective->context, source, destination);
	uint64_t behind = bytes - length.head_bytes;

	if (bytes >= length.head_bytes && behind % length.unit_bytes == 0 &&
	    behind / length.unit_bytes <= length.unit_count_max)
		return 0;
	if (length.unit_count_max == 0)
		return exchange_blame(x, source, failure,
				      "announces %" PRIu64
				      " bytes to rank %u, not %" PRIu64,
				      bytes, destination, length.head_bytes);
	return exchange_blame(
		x, source, failure,
		"announces %" PRIu64 " bytes to rank %u, not %" PRIu64
		" to %" PRIu64 " in steps of %" PRIu64,
		bytes, destination, length.head_bytes,
		length.head_bytes + length.unit_bytes * length.unit_count_max,
		length.unit_bytes);
}

/* What a source announces to the others, too: all refuse it. */
static int check_announcement(struct exchange *x, unsigned source,
			      struct failure *failure)
{
	int error = 0;

	for (unsigned to = 0; to < exchange_node_count(x) && !error; to++)
		if (to != source)
			error = check_length(x, source, to, failure);
	return error;
}

static int check_announcements(struct exchange *x, struct failure *failure)
{
	uint64_t sum = 0;
	int error = 0;

	for (unsigned node = 0; node < exchange_node_count(x) && !error;
	     node++) {
		if (node == exchange_own(x))
			continue;
		error = check_announcement(x, node, failure);
		if (!error &&
		    __builtin_add_overflow(
			    sum, exchange_bytes(x, node, exchange_own(x)),
			    &sum))
			error = exchange_blame(x, node, failure,
					       "announces too much");
	}
	return error;
}

static int prepare(struct exchange *x, struct failure *failure)
{
	uint64_t bytes[EXCHANGE_NODES_MAX];
	int error = check_announcements(x, failure);

	if (error)
		return error;
	for (unsigned node = 0; node < exchange_node_count(x); node++)
		bytes[node] =
			node == exchange_own(x)
				? 0
				: exchange_bytes(x, node, exchange_own(x));
	x->in_left = 0;
	for (unsigned node = 0; node < exchange_node_count(x) && !error;
	     node++) {
		struct exchange_peer *peer = &x->peers[node];

		error = arrivals_init(
			&peer->in, bytes[node],
			MAX(1, peer->announced_segment_bytes[x->exchange % 2]));
		peer->in_open = error == 0;
		x->in_left += bytes[node] > 0;
	}
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	return x->collective->prepare(x->collective->context, bytes, failure);
}

static void prepare_when_announced(struct exchange *x)
{
	struct failure failure;

	for (unsigned node = 0; node < exchange_node_count(x); node++)
		if (node != exchange_own(x) && !exchange_has_announced(x, node))
			return;
	if (prepare(x, &failure) < 0) {
		x->own_failure = failure;
		exchange_fail(x, &failure);
		return;
	}
	/* The first grants go with the news that we are ready. */
	exchange_grant(x);
	x->prepared = true;
	exchange_tell_all(x, 0);
	for (unsigned node = 0; node < exchange_node_count(x); node++)
		if (node != exchange_own(x) &&
		    x->peers[node].in.byte_count == 0)
			x->collective->arrived(x->collective->context, node, 0,
					       true);
}

/* Hear, take, send, ask.  False: there is nothing to do before *until_ns. */
static bool advance(struct exchange *x, uint64_t *until_ns)
{
	uint64_t now_ns = clock_now_ns();
	bool any;

	*until_ns = UINT64_MAX;
	note_absence(x, now_ns);
	any = exchange_hear(x);
	if (x->collective && !x->prepared && !x->failed)
		prepare_when_announced(x);
	if (x->prepared) {
		bool received = exchange_receive_some(x, now_ns);

		if (!received)
			*until_ns = exchange_tell_gaps(x, now_ns);
		any |= received;
		any |= exchange_send_some(x, now_ns);
	}
	*until_ns = MIN(*until_ns, ask_all(x, now_ns));
	return any;
}

/* If there is nothing to do, compute or wait. */
static int step(struct exchange *x, struct failure *failure)
{
	uint64_t until_ns;
	bool any = advance(x, &until_ns);

	if (x->failed)
		return give_failure(x, failure);
	if (any || (x->collective && x->collective->idle &&
		    x->collective->idle(x->collective->context)))
		return 0;
	wait_until(x, until_ns);
	return 0;
}

/* All that others wait for: each segment of a list of gaps may be a batch of
 * its own. */
int exchange_serve(struct exchange *x, struct failure *failure)
{
	uint64_t until_ns;
	unsigned i = 0;

	while (i < SERVE_STEPS_MAX && advance(x, &until_ns) && !x->failed)
		i++;
	return x->failed ? give_failure(x, failure) : 0;
}

/* In place of a digest that nobody looks at. */
static uint32_t digest_nothing(uint32_t crc, const void *bytes,
			       size_t byte_count)
{
	(void)bytes, (void)byte_count;
	return crc;
}

/* --- joining ---------------------------------------------------------------
 */

/* Where we are bound: our address; or any, if it is one that only we ourselves
 * can reach, as names resolve to on some machines. */
static struct address bound_address(const struct exchange *x)
{
	struct address address = x->rank->addresses[exchange_own(x)];
	bool all = true;

	for (unsigned node = 0; node < exchange_node_count(x); node++)
		all &= address_is_loopback(&x->rank->addresses[node]);
	if (all || !address_is_loopback(&address))
		return address;
	if (address.socket.ss_family == AF_INET)
		((struct sockaddr_in *)&address.socket)->sin_addr.s_addr =
			htonl(INADDR_ANY);
	else
		((struct sockaddr_in6 *)&address.socket)->sin6_addr =
			in6addr_any;
	return address;
}

/* The port of rank 0, and of all others that share their address with none. */
static uint16_t first_port(const struct exchange *x)
{
	if (x->options.port)
		return x->options.port;
	return (uint16_t)(PORT_FIRST + x->keys.token % PORT_COUNT);
}

static void guess_ports(struct exchange *x)
{
	const struct address *addresses = x->rank->addresses;

	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		struct exchange_peer *peer = &x->peers[node];
		uint16_t port = first_port(x);

		for (unsigned lower = 0; lower < node; lower++)
			port += address_is_same_host(&addresses[lower],
						     &addresses[node]);
		peer->control = addresses[node];
		address_set_port(&peer->control, port);
	}
}

static int open_sockets(struct exchange *x, struct failure *failure)
{
	struct datagram_options options = { .plain = true };
	struct address local = bound_address(x);
	uint16_t port = address_port(&x->peers[exchange_own(x)].control);
	int error = -EADDRINUSE;
	struct failure tried; /* nobody's business if the next one will do */

	for (unsigned i = 0; i < EXCHANGE_PORT_TRIES && error == -EADDRINUSE;
	     i++) {
		address_set_port(&local,
				 (uint16_t)(port + i * EXCHANGE_PORT_STEP));
		error = datagram_open(&x->control, &local, &options, &tried);
	}
	if (error) {
		*failure = tried;
		return error;
	}
	address_set_port(&local, 0);
	options.plain = x->options.plain;
	options.receive_room_bytes = RECEIVE_ROOM_BYTES;
	options.send_room_bytes = address_is_loopback(&local)
					  ? SEND_ROOM_LOOPBACK_BYTES
					  : SEND_ROOM_BYTES;
	return datagram_open(&x->data, &local, &options, failure);
}

/* Of a datagram to it.  Asking the kernel takes four calls: ways that must be
 * alike are asked for once. */
static size_t payload_bytes_to(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];

	for (unsigned lower = 0; lower < node; lower++) {
		const struct exchange_peer *known = &x->peers[lower];
		bool alike =
			address_is_same_host(&known->control, &peer->control) ||
			(address_is_loopback(&known->control) &&
			 address_is_loopback(&peer->control));

		if (lower != exchange_own(x) && alike)
			return known->segment_bytes +
			       EXCHANGE_DATA_HEADER_BYTES;
	}
	return datagram_payload_bytes(&x->data.local, &peer->control);
}

static int find_payloads(struct exchange *x, struct failure *failure)
{
	size_t largest = 0;

	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		struct exchange_peer *peer = &x->peers[node];
		size_t bytes;

		if (node == exchange_own(x))
			continue;
		errno = 0;
		bytes = payload_bytes_to(x, node);
		if (bytes == 0) {
			exchange_note_failure(x, node,
					      failure_status(errno, EXIT_PEER),
					      errno ? strerror(errno)
						    : "there is no way to it");
			return give_failure(x, failure);
		}
		if (bytes < EXCHANGE_PAYLOAD_BYTES_MIN)
			return exchange_blame(
				x, node, failure,
				"a datagram to it may have %zu bytes, and %d "
				"are needed",
				bytes, EXCHANGE_PAYLOAD_BYTES_MIN);
		if (x->options.payload_bytes)
			bytes = MIN(bytes, x->options.payload_bytes);
		peer->segment_bytes =
			(uint32_t)(bytes - EXCHANGE_DATA_HEADER_BYTES);
		largest = MAX(largest, bytes);
	}
	x->window_bytes = x->options.window_bytes
				  ? x->options.window_bytes
				  : x->data.receive_room_bytes / ROOM_PART;
	x->window_bytes = MAX(x->window_bytes, 2 * largest);
	return 0;
}

static int init_peers(struct exchange *x)
{
	unsigned count = exchange_node_count(x);
	uint64_t now_ns = clock_now_ns();

	x->peers = calloc(count, sizeof(*x->peers));
	x->totals = calloc(count, sizeof(*x->totals));
	if (!x->peers || !x->totals)
		return -ENOMEM;
	for (unsigned node = 0; node < count; node++) {
		struct exchange_peer *peer = &x->peers[node];

		peer->heard_ns = now_ns;
		peer->round_trip_ns = UINT64_MAX;
		for (unsigned i = 0; i < 2; i++) {
			peer->totals[i] = calloc(count, sizeof(uint64_t));
			if (!peer->totals[i])
				return -ENOMEM;
		}
	}
	x->served_ns = now_ns;
	x->opened_ns = now_ns;
	return 0;
}

static int open_all(struct exchange *x, struct failure *failure)
{
	int error = exchange_keys_derive(x->rank->secret, &x->keys);

	if (error == 0)
		error = init_peers(x);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	guess_ports(x);
	error = open_sockets(x, failure);
	return error ? error : find_payloads(x, failure);
}

/* Rank 0 tells all where the board is.  The others tell rank 0 that they are
 * there, and the rest by the board; without one, all tell all. */
static void say_hello(struct exchange *x)
{
	unsigned count = exchange_node_count(x);

	if (x->options.board && count > 1 && exchange_own(x) != 0) {
		x->waits_for_board = true;
		exchange_tell(x, 0, 0);
		return;
	}
	if (x->options.board && count > 1)
		x->board = exchange_board_make(count, x->hello);
	if (x->board)
		exchange_board_attach(x->board,
				      address_port(&x->control.local));
	exchange_tell_all(x, 0);
}

struct exchange *exchange_open(const struct exchange_options *options,
			       struct failure *failure)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x) {
		failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM, "memory");
		return NULL;
	}
	assert(options->hello_bytes <= EXCHANGE_HELLO_BYTES_MAX);
	x->options = *options;
	x->rank = options->rank;
	x->control.fd = -1;
	x->data.fd = -1;
	x->digest = options->digests ? digest_kernel(options->kernel)
				     : digest_nothing;
	x->ask_ns = options->spins ? ASK_NS : ASK_SHARED_NS;
	memcpy(x->hello + EXCHANGE_BOARD_OFFER_BYTES, options->hello,
	       options->hello_bytes);
	if (open_all(x, failure) < 0) {
		/* What it points to ends with the exchange. */
		failure->what = NULL;
		exchange_close(x);
		return NULL;
	}
	say_hello(x);
	return x;
}

int exchange_join(struct exchange *x, struct failure *failure)
{
	int error = 0;

	while (error == 0 && !all_are_here(x))
		error = step(x, failure);
	return error;
}

const void *exchange_hello(const struct exchange *x, unsigned node,
			   size_t *byte_count)
{
	if (node == exchange_own(x)) {
		*byte_count = x->options.hello_bytes;
		return x->hello + EXCHANGE_BOARD_OFFER_BYTES;
	}
	*byte_count = x->peers[node].hello_bytes;
	return x->peers[node].hello;
}

/* --- collectives -----------------------------------------------------------
 */

int exchange_begin(struct exchange *x,
		   const struct exchange_collective *collective,
		   struct failure *failure)
{
	assert(!x->collective && x->exchange < EXCHANGE_COLLECTIVES_MAX);
	assert(collective->length);
	x->collective = collective;
	x->exchange++;
	x->prepared = false;
	exchange_send_begin(x);
	for (unsigned node = 0; node < exchange_node_count(x); node++) {
		struct exchange_peer *peer = &x->peers[node];

		arrivals_fini(&peer->in);
		peer->in_open = false;
		peer->in_sent_bytes = 0;
		peer->granted_bytes = 0;
		store_le64(&x->totals[node], peer->out_bytes);
	}
	exchange_tell_all(x, 0);
	return exchange_serve(x, failure);
}

uint64_t exchange_bytes(const struct exchange *x, unsigned source,
			unsigned destination)
{
	if (source == exchange_own(x))
		return x->peers[destination].out_bytes;
	return x->peers[source].totals[x->exchange % 2][destination];
}

int exchange_receive(struct exchange *x, struct failure *failure)
{
	int error = 0;

	while (error == 0 && (!x->prepared || x->in_left > 0))
		error = step(x, failure);
	return error;
}

int exchange_finish(struct exchange *x, struct failure *failure)
{
	int error = exchange_receive(x, failure);

	while (error == 0 && !exchange_is_all_acked(x))
		error = step(x, failure);
	x->collective = NULL;
	return error;
}

/* --- barriers --------------------------------------------------------------
 */

static bool phase_is_reached(const struct exchange *x)
{
	if (exchange_own(x) != 0)
		return x->peers[0].phase >= x->phase_wanted;
	for (unsigned node = 1; node < exchange_node_count(x); node++)
		if (x->peers[node].phase < x->phase_wanted)
			return false;
	return true;
}

int exchange_barrier(struct exchange *x, uint32_t phase, const void *blob,
		     size_t blob_bytes, struct failure *failure)
{
	int error = 0;

	assert(blob_bytes <= sizeof(x->blob));
	if (blob_bytes > 0)
		memcpy(x->blob, blob, blob_bytes);
	x->blob_bytes = blob_bytes;
	x->phase_wanted = phase;
	x->busy_ms = 0;
	if (exchange_own(x) != 0) {
		x->phase = phase;
		exchange_tell(x, 0, 0);
	}
	while (error == 0 && !phase_is_reached(x))
		error = step(x, failure);
	x->phase_wanted = 0;
	if (error == 0 && exchange_own(x) == 0) {
		x->phase = phase;
		exchange_tell_all(x, 0);
	}
	return error;
}

const void *exchange_blob(const struct exchange *x, unsigned node,
			  size_t *byte_count)
{
	if (node == exchange_own(x)) {
		*byte_count = x->blob_bytes;
		return x->blob;
	}
	*byte_count = x->peers[node].blob_bytes;
	return x->peers[node].blob;
}

void exchange_leave(struct exchange *x)
{
	uint64_t end_ns = clock_now_ns() + LEAVE_NS;
	unsigned tells =
		x->counters.resent_datagrams ? LAST_TELLS_LOSSY : LAST_TELLS;
	struct failure failure;

	if (exchange_own(x) != 0) {
		x->phase = PHASE_GONE;
		if (x->board)
			tells = 1;
		for (unsigned i = 0; i < tells; i++)
			exchange_tell(x, 0, 0);
		return;
	}
	x->phase_wanted = PHASE_GONE;
	while (!phase_is_reached(x) && clock_now_ns() < end_ns)
		if (step(x, &failure) < 0)
			return;
}

void exchange_say_busy(struct exchange *x, uint32_t busy_ms)
{
	x->busy_ms = MIN(busy_ms, EXCHANGE_BUSY_MS_MAX);
	exchange_tell_all(x, 0);
}

/* --- reporting -------------------------------------------------------------
 */

int64_t exchange_clock_offset_ns(const struct exchange *x, unsigned node,
				 uint64_t *bound_ns)
{
	const struct exchange_peer *peer = &x->peers[node];

	*bound_ns = 0;
	if (exchange_own(x) == node)
		return 0;
	*bound_ns = peer->round_trip_ns == UINT64_MAX ? UINT64_MAX
						      : peer->round_trip_ns / 2;
	return peer->offset_ns;
}

const struct exchange_counters *exchange_counters(const struct exchange *x)
{
	return &x->counters;
}

uint32_t exchange_payload_bytes(const struct exchange *x)
{
	unsigned next = (exchange_own(x) + 1) % exchange_node_count(x);

	return x->peers[next].segment_bytes;
}

const char *exchange_schedule_name(enum exchange_schedule schedule)
{
	static const char *const names[] = { "rounds", "all-at-once" };

	return names[schedule];
}

void exchange_close(struct exchange *x)
{
	if (!x)
		return;
	datagram_close(&x->control);
	datagram_close(&x->data);
	exchange_board_close(x->board);
	for (unsigned node = 0; x->peers && node < exchange_node_count(x);
	     node++) {
		arrivals_fini(&x->peers[node].in);
		free(x->peers[node].totals[0]);
		free(x->peers[node].totals[1]);
	}
	free(x->peers);
	free(x->totals);
	free(x);
}
