/*
 * exchange_peers.c - keep what each rank has said of itself
 */
#include <stdlib.h>
#include <string.h>

#include "exchange/exchange_state.h"

/* --- peers -------------------------------------------------------------------
 */

int exchange_peers_init(struct exchange *exchange, uint64_t now_ns)
{
	unsigned count = exchange_count(exchange);
	size_t told = count <= EXCHANGE_KNOWN_MAX ? count : 0;

	liveness_hear(&exchange->nobody.liveness, now_ns);
	exchange->totals = calloc(EXCHANGE_ANNOUNCED * told * told + 1,
				  sizeof(*exchange->totals));
	exchange->peers = calloc(count, sizeof(void *));
	for (unsigned node = 0; exchange->peers && node < count; node++)
		exchange->peers[node] = &exchange->nobody;
	return exchange->peers && exchange->totals ? 0 : -ENOMEM;
}

void exchange_peers_fini(struct exchange *exchange)
{
	for (unsigned node = 0;
	     exchange->peers && node < exchange_count(exchange); node++) {
		free(exchange->peers[node]->said);
		exchange->peers[node]->said = NULL;
		if (exchange->peers[node] != &exchange->nobody)
			free(exchange->peers[node]);
	}
	free(exchange->peers);
	free(exchange->totals);
}

struct exchange_peer *exchange_peer_of(struct exchange *exchange, unsigned node)
{
	size_t count = exchange_count(exchange);
	struct exchange_peer *peer = exchange->peers[node];

	if (peer != &exchange->nobody)
		return peer;
	peer = malloc(sizeof(*peer));
	if (!peer) {
		exchange_note_failure(exchange, exchange_own(exchange),
				      EXIT_RESOURCES, "memory for a peer");
		return &exchange->nobody;
	}
	*peer = exchange->nobody;
	for (size_t i = 0;
	     i < EXCHANGE_ANNOUNCED && count <= EXCHANGE_KNOWN_MAX; i++)
		peer->announced[i].totals =
			&exchange->totals[(node * EXCHANGE_ANNOUNCED + i) *
					  count];
	exchange->peers[node] = peer;
	return peer;
}

/* Room for what the peer says; NULL: there is no memory. */
static struct exchange_said *said_by(struct exchange *exchange,
				     struct exchange_peer *peer)
{
	if (!peer->said)
		peer->said = malloc(sizeof(*peer->said));
	if (!peer->said)
		exchange_note_failure(exchange, exchange_own(exchange),
				      EXIT_RESOURCES, "memory for a peer");
	return peer->said;
}

/* --- what they say -----------------------------------------------------------
 */

void exchange_hear(struct exchange *exchange, unsigned node, uint32_t delay_ms,
		   uint64_t now_ns)
{
	struct exchange_peer *peer = exchange_peer_of(exchange, node);

	exchange->here_count += !peer->is_here;
	peer->is_here = true;
	liveness_hear_delay(&peer->liveness, delay_ms, now_ns);
}

void exchange_hear_hello(struct exchange *exchange, unsigned node,
			 const void *hello, size_t byte_count)
{
	struct exchange_peer *peer = exchange_peer_of(exchange, node);

	if (peer->hello_bytes > 0 || byte_count == 0 ||
	    !said_by(exchange, peer))
		return;
	peer->hello_bytes = byte_count;
	memcpy(peer->said->hello, hello, byte_count);
}

void exchange_hear_payload(struct exchange *exchange, unsigned node,
			   const void *payload, size_t byte_count)
{
	struct exchange_peer *peer = exchange_peer_of(exchange, node);

	peer->application_bytes = 0;
	if (byte_count == 0 || !said_by(exchange, peer))
		return;
	peer->application_bytes = byte_count;
	memcpy(peer->said->application, payload, byte_count);
}

void exchange_hear_phase(struct exchange *exchange, unsigned node,
			 uint32_t phase)
{
	struct exchange_peer *peer = exchange_peer_of(exchange, node);

	peer->phase = MAX(peer->phase, phase);
}

bool exchange_all_are_here(const struct exchange *exchange)
{
	return exchange->skips_hello ||
	       exchange->here_count + 1 == exchange_count(exchange);
}

const void *exchange_hello(const struct exchange *exchange, unsigned node,
			   size_t *byte_count)
{
	const struct exchange_peer *peer = exchange->peers[node];

	*byte_count = peer->hello_bytes;
	return peer->said ? (const void *)peer->said->hello : "";
}

const void *exchange_application_payload(const struct exchange *exchange,
					 unsigned node, size_t *byte_count)
{
	const struct exchange_peer *peer = exchange->peers[node];

	*byte_count = peer->application_bytes;
	return peer->said ? (const void *)peer->said->application : "";
}
