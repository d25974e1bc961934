/* cluster_alltoall.c - from each rank to each other one a message of its own */
#include "cluster/collective/cluster_alltoall.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"

static void read_own(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count)
{
	const struct cluster_alltoall *messages = context;

	memcpy(target, messages->own[node] + offset, byte_count);
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct cluster_alltoall *messages = context;

	return messages->length(messages->context, source, destination);
}

/* The sum of the lengths does not wrap: exchange.h. */
static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct cluster_alltoall *messages = context;
	unsigned count = messages->rank->node_count;
	char size[FORMAT_SIZE_BYTES];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		messages->offset[i] = bytes;
		if (i != messages->rank->rank)
			bytes += receive_bytes[i];
	}
	messages->offset[count] = bytes;
	format_size(size, bytes);
	if (bytes > messages->bytes_max)
		return failure_set(failure, EXIT_RESOURCES, NULL, 0,
				   "what the other ranks tell of their runs "
				   "takes %s",
				   size);
	messages->all = malloc(bytes + 1);
	return messages->all ? 0 : failure_no_memory(failure);
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct cluster_alltoall *messages = context;

	*room = messages->offset[node + 1] - messages->offset[node] - offset;
	return messages->all + messages->offset[node] + offset;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	(void)context, (void)node, (void)prefix_bytes, (void)whole;
}

int cluster_alltoall(struct cluster_alltoall *messages,
		     struct exchange *exchange, struct failure *failure)
{
	const struct exchange_collective collective = {
		.context = messages,
		.send_bytes = messages->own_bytes,
		.read = read_own,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
	};
	int error = exchange_begin(exchange, &collective, failure);

	return error ? error : exchange_finish(exchange, failure);
}
