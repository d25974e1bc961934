/*
 * exchange_peers.c - keep what each rank has said of itself
 */
#include <stdio.h>
#include <string.h>

#include "exchange/exchange_state.h"

void exchange_hear(struct exchange *exchange, unsigned node, uint32_t delay_ms,
		   uint64_t now_ns)
{
	struct exchange_peer *peer = &exchange->peers[node];

	peer->is_here = true;
	liveness_hear_delay(&peer->liveness, delay_ms, now_ns);
}

void exchange_hear_hello(struct exchange *exchange, unsigned node,
			 const void *hello, size_t byte_count)
{
	struct exchange_peer *peer = &exchange->peers[node];

	if (peer->hello_bytes > 0 || byte_count == 0)
		return;
	peer->hello_bytes = byte_count;
	memcpy(peer->hello, hello, byte_count);
}

void exchange_hear_payload(struct exchange *exchange, unsigned node,
			   const void *payload, size_t byte_count)
{
	struct exchange_peer *peer = &exchange->peers[node];

	peer->application_bytes = byte_count;
	if (byte_count > 0)
		memcpy(peer->application, payload, byte_count);
}

void exchange_hear_phase(struct exchange *exchange, unsigned node,
			 uint32_t phase)
{
	struct exchange_peer *peer = &exchange->peers[node];

	peer->phase = MAX(peer->phase, phase);
}

void exchange_hear_failure(struct exchange *exchange, unsigned node,
			   unsigned failed, const void *why, size_t byte_count)
{
	char text[FAILURE_WHY_BYTES];

	snprintf(text, sizeof(text), "%.*s", (int)byte_count,
		 (const char *)why);
	exchange_note_failure(exchange,
			      failed < exchange_count(exchange) ? failed : node,
			      EXIT_PEER, text);
}

bool exchange_all_are_here(const struct exchange *exchange)
{
	for (unsigned node = 0; node < exchange_count(exchange); node++)
		if (node != exchange_own(exchange) &&
		    !exchange->peers[node].is_here)
			return false;
	return true;
}

const void *exchange_hello(const struct exchange *exchange, unsigned node,
			   size_t *byte_count)
{
	*byte_count = exchange->peers[node].hello_bytes;
	return exchange->peers[node].hello;
}

const void *exchange_application_payload(const struct exchange *exchange,
					 unsigned node, size_t *byte_count)
{
	*byte_count = exchange->peers[node].application_bytes;
	return exchange->peers[node].application;
}
