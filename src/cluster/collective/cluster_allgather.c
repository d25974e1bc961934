/*
 * cluster_allgather.c - one message from each rank to all ranks, or to rank
 * 0
 */
#include "cluster/collective/cluster_allgather.h"

#include <string.h>

#include "base/base.h"
#include "exchange/exchange_buffers.h"
#include "exchange/model/exchange_model.h"

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
	struct exchange_buffers messages = {
		.length = length_of,
		.context = gather,
		.has_long_messages = has_long_messages(gather),
	};
	unsigned own = gather->rank->rank;
	int error;

	for (unsigned i = 0; i < gather->rank->node_count; i++) {
		messages.own[i] = gather->own;
		if (i == 0 || i == own || !gather->to_first_only)
			messages.own_bytes[i] = gather->own_bytes;
	}
	error = exchange_send_buffers(exchange, &messages, failure);
	gather->all = messages.all;
	memcpy(gather->offset, messages.offset, sizeof(gather->offset));
	return error;
}
