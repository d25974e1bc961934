/*
 * memory_exchange.h - an exchange in memory: ranks are threads of one process
 *
 * A second implementation of exchange/exchange.h, without sockets and without
 * datagrams.  All ranks share a hub.  A sender copies its messages into the hub
 * piece by piece, of odd sizes, and a receiver copies them out; each in its own
 * thread, when it calls the exchange.  One lock guards the hub; a rank that has
 * nothing to do sleeps until another has changed something, for the deadline at
 * most.
 *
 * Included by one file of a program.
 */
#ifndef MEMORY_EXCHANGE_H
#define MEMORY_EXCHANGE_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "exchange/exchange.h"

#define MEMORY_NAP_NS 10000000
#define MEMORY_NODES_MAX 8
/* Odd, so that records and counts lie across the borders of pieces. */
#define MEMORY_PIECE_BYTES 4093

/* One message of the epoch at hand. */
struct memory_message {
	uint8_t *bytes; /* owned; allocated and freed by the sender */
	uint64_t byte_count;
	uint64_t sent_bytes;  /* by the sender */
	uint64_t taken_bytes; /* by the receiver */
};

/* What a rank lets the others know.  It alone writes it, but for taken_bytes.
 */
struct memory_node {
	bool here;
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	size_t hello_bytes;
	uint32_t epoch, phase;
	uint64_t announced[2][MEMORY_NODES_MAX]; /* [epoch % 2][destination] */
	struct memory_message messages[MEMORY_NODES_MAX]; /* [destination] */
	uint8_t application[EXCHANGE_APPLICATION_BYTES_MAX];
	size_t application_bytes;
};

struct memory_hub {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t changes;
	struct memory_node nodes[MEMORY_NODES_MAX];
	/* The run's first failure, as other ranks are told. */
	bool failed;
	unsigned failed_node;
	char why[FAILURE_WHY_BYTES];
};

struct memory_exchange {
	struct exchange base; /* first: see memory_of() */
	struct memory_hub *hub;
	unsigned own, node_count;
	uint64_t deadline_ns;
	uint64_t idle_ns; /* since something changed */
	const struct exchange_collective *collective; /* NULL: between them */
	uint64_t send_bytes[MEMORY_NODES_MAX];
	bool prepared;
	uint32_t epoch;
};

static struct memory_exchange *memory_of(struct exchange *exchange)
{
	return (struct memory_exchange *)exchange;
}

static const struct memory_exchange *
memory_of_const(const struct exchange *exchange)
{
	return (const struct memory_exchange *)exchange;
}

/* --- the hub ----------------------------------------------------------------
 */

static void memory_hub_init(struct memory_hub *hub)
{
	memset(hub, 0, sizeof(*hub));
	pthread_mutex_init(&hub->lock, NULL);
	pthread_cond_init(&hub->changed, NULL);
}

/* When no rank uses it any more. */
static void memory_hub_fini(struct memory_hub *hub)
{
	for (unsigned from = 0; from < MEMORY_NODES_MAX; from++)
		for (unsigned to = 0; to < MEMORY_NODES_MAX; to++)
			free(hub->nodes[from].messages[to].bytes);
	pthread_cond_destroy(&hub->changed);
	pthread_mutex_destroy(&hub->lock);
}

static void memory_lock(const struct memory_exchange *x)
{
	pthread_mutex_lock(&x->hub->lock);
}

static void memory_unlock(const struct memory_exchange *x)
{
	pthread_mutex_unlock(&x->hub->lock);
}

static void memory_unlock_changed(const struct memory_exchange *x)
{
	x->hub->changes++;
	pthread_cond_broadcast(&x->hub->changed);
	memory_unlock(x);
}

/* Sleep until the hub is another than after `changes`, but not for long: a
 * change between the caller's look at the hub and its count of changes would be
 * missed. False: nothing has changed for the deadline. */
static bool memory_wait(struct memory_exchange *x, uint64_t changes)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += MEMORY_NAP_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	memory_lock(x);
	while (x->hub->changes == changes && error == 0)
		error = pthread_cond_timedwait(&x->hub->changed, &x->hub->lock,
					       &until);
	memory_unlock(x);
	x->idle_ns = error == 0 ? 0 : x->idle_ns + MEMORY_NAP_NS;
	return x->idle_ns < x->deadline_ns;
}

/* --- one step ---------------------------------------------------------------
 */

/* Take what another rank has told of a failure. */
static void memory_hear_failure(struct memory_exchange *x)
{
	struct memory_hub *hub = x->hub;

	memory_lock(x);
	if (hub->failed)
		exchange_note_failure(&x->base, hub->failed_node, EXIT_PEER,
				      hub->why);
	memory_unlock(x);
}

static bool memory_all_have(struct memory_exchange *x, uint32_t epoch)
{
	bool all = true;

	memory_lock(x);
	for (unsigned node = 0; node < x->node_count; node++)
		all &= x->hub->nodes[node].epoch >= epoch;
	memory_unlock(x);
	return all;
}

static bool memory_prepare(struct memory_exchange *x)
{
	const struct exchange_collective *collective = x->collective;
	uint64_t bytes[MEMORY_NODES_MAX];
	struct failure failure;
	int error;

	if (!collective || x->prepared || !memory_all_have(x, x->epoch))
		return false;
	error = exchange_check_lengths(&x->base, collective, bytes, &failure);
	if (error == 0)
		error = collective->prepare(collective->context, bytes,
					    &failure);
	if (error) {
		exchange_fail(&x->base, &failure);
		return true;
	}
	x->prepared = true;
	for (unsigned node = 0; node < x->node_count; node++)
		if (node != x->own && bytes[node] == 0)
			collective->arrived(collective->context, node, 0, true);
	return true;
}

/* The sender alone moves sent_bytes, so it may read it without the lock. */
static bool memory_send_piece(struct memory_exchange *x, unsigned to)
{
	struct memory_message *message = &x->hub->nodes[x->own].messages[to];
	uint64_t at = message->sent_bytes;
	uint64_t bytes = MIN(MEMORY_PIECE_BYTES, message->byte_count - at);

	if (bytes == 0)
		return false;
	x->collective->read(x->collective->context, to, at, message->bytes + at,
			    bytes);
	x->base.counters.sent_bytes += bytes;
	memory_lock(x);
	message->sent_bytes += bytes;
	memory_unlock_changed(x);
	return true;
}

/* Copies [at, end) of the message to where the collective wants it. */
static void memory_copy_out(struct memory_exchange *x, unsigned from,
			    const struct memory_message *message, uint64_t at,
			    uint64_t end)
{
	while (at < end) {
		size_t room;
		uint8_t *target = x->collective->place(x->collective->context,
						       from, at, &room);
		size_t bytes = MIN(room, end - at);

		memcpy(target, message->bytes + at, bytes);
		at += bytes;
	}
}

static bool memory_take(struct memory_exchange *x, unsigned from)
{
	struct memory_message *message = &x->hub->nodes[from].messages[x->own];
	uint64_t at, end, byte_count;

	memory_lock(x);
	at = message->taken_bytes;
	end = message->sent_bytes;
	byte_count = message->byte_count;
	if (x->hub->nodes[from].epoch != x->epoch || at == end) {
		memory_unlock(x);
		return false;
	}
	memory_copy_out(x, from, message, at, end);
	message->taken_bytes = end;
	memory_unlock_changed(x);
	x->base.counters.received_bytes += end - at;
	x->collective->arrived(x->collective->context, from, end,
			       end == byte_count);
	return true;
}

/* Does all that can be done without waiting.  True if there was anything. */
static bool memory_advance(struct memory_exchange *x)
{
	bool any = memory_prepare(x);

	if (!x->prepared || x->base.failed.any)
		return any;
	for (unsigned node = 0; node < x->node_count; node++) {
		if (node == x->own)
			continue;
		any |= memory_send_piece(x, node);
		any |= memory_take(x, node);
	}
	return any;
}

static int memory_step(struct memory_exchange *x, const char *waits_for,
		       struct failure *failure)
{
	uint64_t changes;

	memory_lock(x);
	changes = x->hub->changes;
	memory_unlock(x);
	memory_hear_failure(x);
	if (!x->base.failed.any && memory_advance(x))
		changes = UINT64_MAX;
	if (x->base.failed.any)
		return exchange_give_failure(&x->base, failure);
	if (changes == UINT64_MAX ||
	    (x->collective && x->collective->idle &&
	     x->collective->idle(x->collective->context)))
		return 0;
	if (memory_wait(x, changes))
		return 0;
	return failure_set(failure, EXIT_PEER, NULL, ETIMEDOUT,
			   "waiting for %s", waits_for);
}

/* --- the table --------------------------------------------------------------
 */

static int memory_join(struct exchange *exchange, struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);

	for (;;) {
		bool all = true;
		int error;

		memory_lock(x);
		for (unsigned node = 0; node < x->node_count; node++)
			all &= x->hub->nodes[node].here;
		memory_unlock(x);
		if (all)
			return 0;
		error = memory_step(x, "a rank to come", failure);
		if (error)
			return error;
	}
}

static const void *memory_hello(const struct exchange *exchange, unsigned node,
				size_t *byte_count)
{
	const struct memory_node *told =
		&memory_of_const(exchange)->hub->nodes[node];

	*byte_count = told->hello_bytes;
	return told->hello;
}

static int memory_serve(struct exchange *exchange, struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);

	memory_hear_failure(x);
	if (!exchange->failed.any)
		memory_advance(x);
	return exchange->failed.any ? exchange_give_failure(exchange, failure)
				    : 0;
}

static bool memory_has_told_all(const struct exchange *exchange, unsigned node)
{
	(void)exchange, (void)node;
	return true;
}

static int memory_begin(struct exchange *exchange,
			const struct exchange_collective *collective,
			struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);
	struct memory_node *own = &x->hub->nodes[x->own];

	x->collective = collective;
	x->prepared = false;
	x->epoch++;
	memory_lock(x);
	for (unsigned to = 0; to < x->node_count; to++) {
		uint64_t bytes = to == x->own ? 0 : collective->send_bytes[to];

		x->send_bytes[to] = bytes;
		own->announced[x->epoch % 2][to] = bytes;
		free(own->messages[to].bytes);
		own->messages[to] = (struct memory_message){
			.bytes = malloc(bytes + 1),
			.byte_count = bytes,
		};
	}
	own->epoch = x->epoch;
	memory_unlock_changed(x);
	return memory_serve(exchange, failure);
}

static uint64_t memory_bytes(const struct exchange *exchange, unsigned source,
			     unsigned destination)
{
	const struct memory_exchange *x = memory_of_const(exchange);
	uint64_t bytes;

	if (source == x->own)
		return x->send_bytes[destination];
	memory_lock(x);
	bytes = x->hub->nodes[source].announced[x->epoch % 2][destination];
	memory_unlock(x);
	return bytes;
}

static bool memory_is_whole(const struct memory_message *message)
{
	return message->taken_bytes == message->byte_count;
}

/* Is there a message to us, or from us, that its receiver has not all of? */
static bool memory_is_done(struct memory_exchange *x, bool ours)
{
	bool done = x->prepared;

	memory_lock(x);
	for (unsigned node = 0; node < x->node_count && done; node++) {
		if (node == x->own)
			continue;
		/* A rank that is in a later epoch has all of this one's. */
		if (x->hub->nodes[node].epoch == x->epoch)
			done &= memory_is_whole(
				&x->hub->nodes[node].messages[x->own]);
		if (ours)
			done &= memory_is_whole(
				&x->hub->nodes[x->own].messages[node]);
	}
	memory_unlock(x);
	return done;
}

static int memory_receive(struct exchange *exchange, struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);
	int error = 0;

	while (error == 0 && !memory_is_done(x, false))
		error = memory_step(x, "messages", failure);
	return error;
}

static int memory_finish(struct exchange *exchange, struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);
	int error = 0;

	while (error == 0 && !memory_is_done(x, true))
		error = memory_step(x, "receivers", failure);
	x->collective = NULL;
	x->prepared = false;
	return error;
}

static int memory_barrier(struct exchange *exchange, uint32_t phase,
			  const void *payload, size_t payload_bytes,
			  struct failure *failure)
{
	struct memory_exchange *x = memory_of(exchange);
	struct memory_node *own = &x->hub->nodes[x->own];
	int error = 0;

	memory_lock(x);
	if (payload_bytes > 0)
		memcpy(own->application, payload, payload_bytes);
	own->application_bytes = payload_bytes;
	own->phase = phase;
	memory_unlock_changed(x);
	while (error == 0) {
		bool all = true;

		memory_lock(x);
		for (unsigned node = 0; node < x->node_count; node++)
			all &= x->hub->nodes[node].phase >= phase;
		memory_unlock(x);
		if (all)
			return 0;
		error = memory_step(x, "a barrier", failure);
	}
	return error;
}

static void memory_tell(struct exchange *exchange, const void *payload,
			size_t payload_bytes)
{
	struct memory_exchange *x = memory_of(exchange);
	struct memory_node *own = &x->hub->nodes[x->own];

	memory_lock(x);
	memcpy(own->application, payload, payload_bytes);
	own->application_bytes = payload_bytes;
	memory_unlock(x);
}

static const void *memory_application_payload(const struct exchange *exchange,
					      unsigned node, size_t *byte_count)
{
	const struct memory_node *told =
		&memory_of_const(exchange)->hub->nodes[node];

	*byte_count = told->application_bytes;
	return told->application;
}

static void memory_announce_delay(struct exchange *exchange, uint32_t delay_ms)
{
	(void)exchange, (void)delay_ms;
}

static void memory_tell_failure(struct exchange *exchange)
{
	const struct memory_exchange *x = memory_of(exchange);
	struct memory_hub *hub = x->hub;

	memory_lock(x);
	if (!hub->failed) {
		hub->failed = true;
		hub->failed_node = exchange->failed.node;
		memcpy(hub->why, exchange->failed.failure.why,
		       sizeof(hub->why));
	}
	memory_unlock_changed(x);
}

static void memory_leave(struct exchange *exchange)
{
	(void)exchange;
}

static int64_t memory_clock_offset_ns(const struct exchange *exchange,
				      unsigned node, uint64_t *bound_ns)
{
	(void)exchange, (void)node;
	*bound_ns = 0;
	return 0;
}

static uint32_t memory_payload_bytes(const struct exchange *exchange)
{
	(void)exchange;
	return 0;
}

static void memory_close(struct exchange *exchange)
{
	free(memory_of(exchange));
}

/* The function of a cluster_config; the context is the hub of all ranks. */
static struct exchange *memory_open(void *context,
				    const struct exchange_options *options,
				    struct failure *failure)
{
	static const struct exchange_ops ops = {
		.transport = "memory",
		.join = memory_join,
		.hello = memory_hello,
		.begin = memory_begin,
		.bytes = memory_bytes,
		.has_told_all = memory_has_told_all,
		.receive = memory_receive,
		.serve = memory_serve,
		.finish = memory_finish,
		.barrier = memory_barrier,
		.tell = memory_tell,
		.application_payload = memory_application_payload,
		.announce_delay = memory_announce_delay,
		.tell_failure = memory_tell_failure,
		.leave = memory_leave,
		.clock_offset_ns = memory_clock_offset_ns,
		.payload_bytes = memory_payload_bytes,
		.close = memory_close,
	};
	struct memory_exchange *x = calloc(1, sizeof(*x));
	struct memory_node *own;

	if (!x) {
		failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM, "memory");
		return NULL;
	}
	*x = (struct memory_exchange){
		.base = { .ops = &ops,
			  .transport = &ops,
			  .rank = options->rank },
		.hub = context,
		.own = options->rank->rank,
		.node_count = options->rank->node_count,
		.deadline_ns = options->deadline_ns,
	};
	own = &x->hub->nodes[x->own];
	memory_lock(x);
	if (options->hello_bytes > 0)
		memcpy(own->hello, options->hello, options->hello_bytes);
	own->hello_bytes = options->hello_bytes;
	own->here = true;
	memory_unlock_changed(x);
	return &x->base;
}

#endif /* MEMORY_EXCHANGE_H */
