/*
 * cluster_allgather.c - one message from each rank to all ranks, or to rank
 * 0
 */
#include "cluster/collective/cluster_allgather.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "exchange/exchange_buffers.h"
#include "exchange/model/exchange_model.h"

/* Words that a rank may tell at once. */
#define WORDS_MAX 32

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
		.all = gather->all,
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

int cluster_allgather_words(const struct rank *rank, struct exchange *exchange,
			    const uint64_t *own, unsigned count, uint64_t *all,
			    struct failure *failure)
{
	uint8_t bytes[8 * WORDS_MAX];
	struct cluster_allgather gather = {
		.rank = rank,
		.own = bytes,
		.own_bytes = 8 * (uint64_t)count,
		.all = (uint8_t *)all,
	};
	int error;

	assert(count <= WORDS_MAX);
	for (unsigned w = 0; w < count; w++)
		store_le64(bytes + 8 * (size_t)w, own[w]);
	for (unsigned i = 0; i < rank->node_count; i++)
		gather.bytes[i] = gather.own_bytes;
	error = cluster_allgather(&gather, exchange, failure);
	for (size_t w = 0; w < (size_t)rank->node_count * count && !error; w++)
		all[w] = load_le64(gather.all + 8 * w);
	return error;
}
