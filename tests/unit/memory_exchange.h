/*
 * memory_exchange.h - an exchange in memory: ranks are threads of one process
 *
 * A third transport of exchange/exchange.h, without sockets and without
 * datagrams.  All ranks share a hub.  A sender copies its messages into the hub
 * piece by piece, of odd sizes, and a receiver copies them out; each in its own
 * thread, when it calls the exchange.  One lock guards the hub; a rank that has
 * nothing to do sleeps until another has changed something, or for a moment.
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
#include "exchange/exchange_state.h"

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

/* The STATUS of a rank.  It alone writes it, but for taken_bytes. */
struct memory_node {
	uint64_t serial; /* 0: it is not here yet */
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	size_t hello_bytes;
	uint32_t epoch, phase;
	/* [epoch % EXCHANGE_ANNOUNCED][destination] */
	uint64_t lengths[EXCHANGE_ANNOUNCED][MEMORY_NODES_MAX];
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
	uint64_t changes; /* of the hub, when we last looked */
	uint64_t serials[MEMORY_NODES_MAX]; /* taken */
};

static struct memory_exchange *memory_of(const struct exchange *exchange)
{
	return (struct memory_exchange *)exchange;
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

/* Wait until the hub has changed since we last looked, but not for long. */
static void memory_wait(struct exchange *exchange, uint64_t until_ns)
{
	struct memory_exchange *x = memory_of(exchange);
	struct timespec until;
	int error = 0;

	(void)until_ns;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += MEMORY_NAP_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	memory_lock(x);
	while (x->hub->changes == x->changes && error == 0)
		error = pthread_cond_timedwait(&x->hub->changed, &x->hub->lock,
					       &until);
	memory_unlock(x);
}

/* --- STATUS -----------------------------------------------------------------
 */

static void memory_tell(struct exchange *exchange, unsigned node,
			enum exchange_news news)
{
	struct memory_exchange *x = memory_of(exchange);
	size_t hello_bytes, payload_bytes;
	const void *hello = exchange_hello(exchange, x->own, &hello_bytes);
	const void *payload =
		exchange_application_payload(exchange, x->own, &payload_bytes);
	struct memory_node *told = &x->hub->nodes[x->own];

	(void)node, (void)news;
	memory_lock(x);
	told->serial++;
	memcpy(told->hello, hello, hello_bytes);
	told->hello_bytes = hello_bytes;
	told->epoch = exchange->epoch;
	told->phase = exchange->phase;
	memcpy(told->lengths[exchange->epoch % EXCHANGE_ANNOUNCED],
	       exchange->lengths, x->node_count * sizeof(uint64_t));
	memcpy(told->application, payload, payload_bytes);
	told->application_bytes = payload_bytes;
	memory_unlock_changed(x);
}

/* The caller holds the lock. */
static void memory_hear_node(struct memory_exchange *x, unsigned node,
			     uint64_t now_ns)
{
	const struct memory_node *told = &x->hub->nodes[node];

	x->serials[node] = told->serial;
	exchange_hear(&x->base, node, 0, now_ns);
	exchange_hear_hello(&x->base, node, told->hello, told->hello_bytes);
	exchange_hear_phase(&x->base, node, told->phase);
	exchange_hear_payload(&x->base, node, told->application,
			      told->application_bytes);
	for (uint32_t e = MAX(1, x->base.epoch); e <= told->epoch; e++)
		exchange_hear_lengths(
			&x->base, node, e,
			(const uint8_t *)told->lengths[e % EXCHANGE_ANNOUNCED],
			x->node_count);
}

static bool memory_hear(struct exchange *exchange, uint64_t now_ns)
{
	struct memory_exchange *x = memory_of(exchange);
	const struct memory_hub *hub = x->hub;
	bool any = false;

	memory_lock(x);
	x->changes = hub->changes;
	for (unsigned node = 0; node < x->node_count; node++) {
		if (node == x->own ||
		    hub->nodes[node].serial == x->serials[node])
			continue;
		memory_hear_node(x, node, now_ns);
		any = true;
	}
	if (hub->failed)
		exchange_hear_failure(exchange, hub->failed_node,
				      hub->failed_node, hub->why,
				      strlen(hub->why));
	memory_unlock(x);
	return any;
}

static void memory_tell_failure(struct exchange *exchange)
{
	struct memory_exchange *x = memory_of(exchange);
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

/* --- DATA -------------------------------------------------------------------
 */

static void memory_begin(struct exchange *exchange)
{
	struct memory_exchange *x = memory_of(exchange);
	struct memory_node *own = &x->hub->nodes[x->own];

	memory_lock(x);
	for (unsigned to = 0; to < x->node_count; to++) {
		uint64_t bytes = exchange->lengths[to];

		free(own->messages[to].bytes);
		own->messages[to] = (struct memory_message){
			.bytes = malloc(bytes + 1),
			.byte_count = bytes,
		};
	}
	memory_unlock(x);
}

static int memory_prepare(struct exchange *exchange)
{
	(void)exchange;
	return 0;
}

/* The sender alone moves sent_bytes, so it may read it without the lock. */
static bool memory_send_piece(struct memory_exchange *x, unsigned to)
{
	const struct exchange_collective *collective = x->base.collective;
	struct memory_message *message = &x->hub->nodes[x->own].messages[to];
	uint64_t at = message->sent_bytes;
	uint64_t bytes = MIN(MEMORY_PIECE_BYTES, message->byte_count - at);

	if (bytes == 0)
		return false;
	collective->read(collective->context, to, at, message->bytes + at,
			 bytes);
	x->base.counters.sent_bytes += bytes;
	memory_lock(x);
	message->sent_bytes += bytes;
	memory_unlock_changed(x);
	return true;
}

/* Copies [at, end) of the message to where the collective wants it. */
static void memory_copy_out(const struct exchange_collective *collective,
			    unsigned from, const struct memory_message *message,
			    uint64_t at, uint64_t end)
{
	while (at < end) {
		size_t room;
		uint8_t *target =
			collective->place(collective->context, from, at, &room);
		size_t bytes = MIN(room, end - at);

		if (target)
			memcpy(target, message->bytes + at, bytes);
		at += bytes;
	}
}

static bool memory_take(struct memory_exchange *x, unsigned from,
			uint64_t now_ns)
{
	struct memory_message *message = &x->hub->nodes[from].messages[x->own];
	uint64_t at, end, byte_count;

	memory_lock(x);
	at = message->taken_bytes;
	end = message->sent_bytes;
	byte_count = message->byte_count;
	if (x->hub->nodes[from].epoch != x->base.epoch || at == end) {
		memory_unlock(x);
		return false;
	}
	memory_copy_out(x->base.collective, from, message, at, end);
	message->taken_bytes = end;
	memory_unlock_changed(x);
	liveness_hear(&x->base.peers[from]->liveness, now_ns);
	x->base.counters.received_bytes += end - at;
	exchange_pass_on(&x->base, from, end, end == byte_count);
	return true;
}

static bool memory_move(struct exchange *exchange, uint64_t now_ns,
			uint64_t *until_ns)
{
	struct memory_exchange *x = memory_of(exchange);
	bool any = false;

	(void)until_ns;
	for (unsigned node = 0; exchange->collective && node < x->node_count;
	     node++) {
		if (node == x->own)
			continue;
		any |= memory_send_piece(x, node);
		any |= memory_take(x, node, now_ns);
	}
	return any;
}

/* Is all of the message from one rank to another there?  A rank that is in a
 * later epoch has all of this one's. */
static bool memory_is_whole(const struct memory_exchange *x, unsigned from,
			    unsigned to)
{
	const struct memory_message *message =
		&x->hub->nodes[from].messages[to];
	bool whole;

	memory_lock(x);
	whole = x->hub->nodes[from].epoch != x->base.epoch ||
		message->taken_bytes == message->byte_count;
	memory_unlock(x);
	return whole;
}

static bool memory_waits_for(const struct exchange *exchange, unsigned node)
{
	const struct memory_exchange *x = memory_of(exchange);

	return exchange->is_prepared && (!memory_is_whole(x, node, x->own) ||
					 !memory_is_whole(x, x->own, node));
}

static bool memory_is_through(const struct exchange *exchange)
{
	const struct memory_exchange *x = memory_of(exchange);

	for (unsigned node = 0; node < x->node_count; node++)
		if (node != x->own && !memory_is_whole(x, x->own, node))
			return false;
	return true;
}

/* --- opening and closing ----------------------------------------------------
 */

static void memory_leave(struct exchange *exchange)
{
	(void)exchange;
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
	static const struct exchange_transport transport = {
		.name = "memory",
		.tell = memory_tell,
		.hear = memory_hear,
		.begin = memory_begin,
		.prepare = memory_prepare,
		.move = memory_move,
		.waits_for = memory_waits_for,
		.is_through = memory_is_through,
		.wait = memory_wait,
		.tell_failure = memory_tell_failure,
		.leave = memory_leave,
		.close = memory_close,
	};
	struct memory_exchange *x = calloc(1, sizeof(*x));

	if (!x) {
		failure_no_memory(failure);
		return NULL;
	}
	x->hub = context;
	x->own = options->rank->rank;
	x->node_count = options->rank->node_count;
	x->base.serve_steps_max = 1;
	if (exchange_init(&x->base, &transport, options, failure) < 0) {
		exchange_close(&x->base);
		return NULL;
	}
	memory_tell(&x->base, EXCHANGE_ALL, EXCHANGE_HELLO);
	return &x->base;
}

#endif /* MEMORY_EXCHANGE_H */
