/*
 * cluster_allgather.c - one message from each rank to all ranks, or to rank
 * 0
 */
#include "cluster/collective/cluster_allgather.h"

#include <stdlib.h>

#include "base/base.h"
#include "exchange/model/exchange_model.h"

static void read_own(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count)
{
	const struct cluster_allgather *gather = context;

	(void)node;
	memcpy(target, gather->own + offset, byte_count);
}

static const uint8_t *find_own(void *context, unsigned node, uint64_t offset,
			       size_t *room)
{
	const struct cluster_allgather *gather = context;

	(void)node;
	*room = gather->own_bytes - offset;
	return gather->own + offset;
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct cluster_allgather *gather = context;

	if (gather->to_first_only && destination != 0)
		return (struct exchange_length){ 0, 1, 0 };
	if (gather->bytes_max > 0)
		return (struct exchange_length){ 0, 1, gather->bytes_max };
	return (struct exchange_length){ gather->bytes[source], 1, 0 };
}

/* The sum of the lengths does not wrap: exchange.h. */
static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct cluster_allgather *gather = context;
	unsigned own = gather->rank->rank;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < gather->rank->node_count; i++) {
		gather->offset[i] = bytes;
		bytes += i == own ? gather->own_bytes : receive_bytes[i];
	}
	gather->offset[gather->rank->node_count] = bytes;
	gather->all = malloc(bytes + 1);
	if (!gather->all)
		return failure_no_memory(failure);
	if (gather->own_bytes > 0)
		memcpy(gather->all + gather->offset[own], gather->own,
		       gather->own_bytes);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct cluster_allgather *gather = context;

	*room = gather->offset[node + 1] - gather->offset[node] - offset;
	return gather->all + gather->offset[node] + offset;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	(void)context, (void)node, (void)prefix_bytes, (void)whole;
}

/* A message that each rank gets from each is not worth two journeys. */
static bool has_long_messages(const struct cluster_allgather *gather)
{
	uint64_t most = gather->bytes_max;

	for (unsigned i = 0; i < gather->rank->node_count; i++)
		most = MAX(most, gather->bytes[i]);
	return most > EXCHANGE_MODEL_GRID_BYTES;
}

int cluster_allgather(struct cluster_allgather *gather,
		      struct exchange *exchange, struct failure *failure)
{
	uint64_t send_bytes[RANK_NODES_MAX] = { 0 };
	const struct exchange_collective collective = {
		.context = gather,
		.send_bytes = send_bytes,
		.read = read_own,
		.find = find_own,
		.length = length_of,
		.prepare = prepare,
		.place = place,
		.arrived = arrived,
		.has_long_messages = has_long_messages(gather),
	};
	int error;

	for (unsigned i = 0; i < gather->rank->node_count; i++)
		if (i == 0 || !gather->to_first_only)
			send_bytes[i] = gather->own_bytes;
	error = exchange_begin(exchange, &collective, failure);
	return error ? error : exchange_finish(exchange, failure);
}
