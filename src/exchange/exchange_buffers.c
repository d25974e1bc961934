/*
 * exchange_buffers.c - fill in a collective for messages that lie in memory
 */
#include "exchange/exchange_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "exchange/exchange_state.h"

static const uint8_t *find(void *context, unsigned node, uint64_t offset,
			   size_t *room)
{
	const struct exchange_buffers *buffers = context;

	*room = buffers->own_bytes[node] - offset;
	return buffers->own[node] + offset;
}

static void read_own(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count)
{
	const struct exchange_buffers *buffers = context;

	memcpy(target, buffers->own[node] + offset, byte_count);
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct exchange_buffers *buffers = context;

	return buffers->length(buffers->context, source, destination);
}

/* The sum of the lengths does not wrap: exchange.h. */
static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct exchange_buffers *buffers = context;
	unsigned own = buffers->rank->rank, count = buffers->rank->node_count;
	uint64_t bytes = 0;
	int error = 0;

	if (buffers->accept)
		error = buffers->accept(buffers->context, receive_bytes,
					failure);
	if (error)
		return error;
	for (unsigned i = 0; i < count; i++) {
		buffers->offset[i] = bytes;
		bytes += i == own ? buffers->own_bytes[i] : receive_bytes[i];
	}
	buffers->offset[count] = bytes;
	if (!buffers->all)
		buffers->all = malloc(bytes + 1);
	if (!buffers->all)
		return failure_no_memory(failure);
	if (buffers->own_bytes[own] > 0)
		memcpy(buffers->all + buffers->offset[own], buffers->own[own],
		       buffers->own_bytes[own]);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct exchange_buffers *buffers = context;

	*room = buffers->offset[node + 1] - buffers->offset[node] - offset;
	return buffers->all + buffers->offset[node] + offset;
}

int exchange_begin_buffers(struct exchange *exchange,
			   struct exchange_buffers *buffers,
			   struct failure *failure)
{
	buffers->rank = exchange->rank;
	buffers->collective = (struct exchange_collective){
		.context = buffers,
		.send_bytes = buffers->own_bytes,
		.read = read_own,
		.find = find,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.has_long_messages = buffers->has_long_messages,
	};
	return exchange_begin(exchange, &buffers->collective, failure);
}

int exchange_send_buffers(struct exchange *exchange,
			  struct exchange_buffers *buffers,
			  struct failure *failure)
{
	int error = exchange_begin_buffers(exchange, buffers, failure);

	return error ? error : exchange_finish(exchange, failure);
}
