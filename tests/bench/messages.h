/*
 * messages.h - a collective of equal messages, for what measures an exchange
 *
 * Messages to all ranks lie one behind the other, and so do those of all ranks.
 */
#ifndef BENCH_MESSAGES_H
#define BENCH_MESSAGES_H

#include <string.h>

#include "exchange/exchange.h"

static uint64_t message_bytes;
static uint8_t *out, *in;

static void read_message(void *context, unsigned to, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	(void)context;
	memcpy(target, out + to * message_bytes + offset, byte_count);
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	(void)context, (void)receive_bytes, (void)failure;
	return 0;
}

static uint8_t *place(void *context, unsigned from, uint64_t offset,
		      size_t *room)
{
	(void)context;
	*room = message_bytes - offset;
	return in + from * message_bytes + offset;
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	(void)context, (void)source, (void)destination;
	return (struct exchange_length){ message_bytes, 1, 0 };
}

static void arrived(void *context, unsigned from, uint64_t prefix, bool whole)
{
	(void)context, (void)from, (void)prefix, (void)whole;
}

/* send_bytes must stay, and is filled. */
static struct exchange_collective make_collective(uint64_t *send_bytes,
						  unsigned node_count)
{
	for (unsigned i = 0; i < node_count; i++)
		send_bytes[i] = message_bytes;
	return (struct exchange_collective){
		.send_bytes = send_bytes,
		.read = read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
	};
}

#endif /* BENCH_MESSAGES_H */
