/*
 * cluster_totals.c - how many records each rank gets in all, where ranks
 * know only what comes to themselves
 */
#include "cluster/collective/cluster_totals.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"
#include "exchange/exchange_buffers.h"

#define NUMBER_BYTES 8

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	(void)context, (void)source, (void)destination;
	return (struct exchange_length){ NUMBER_BYTES, 1, 0 };
}

/* No sum of good numbers is more than the whole: one that is ends the run. */
static int add_up(const struct cluster_totals *totals,
		  const struct exchange_buffers *messages, uint64_t *share,
		  struct exchange *exchange, struct failure *failure)
{
	unsigned own = messages->rank->rank;

	*share = totals->sent[own];
	for (unsigned i = 0; i < messages->rank->node_count; i++) {
		uint64_t records;

		if (i == own)
			continue;
		records = load_le64(messages->all + messages->offset[i]);
		if (records > totals->whole_count - *share)
			return exchange_blame(
				exchange, i, failure,
				"has %" PRIu64 " records for rank %u, of the "
				"%" PRIu64 " that there are",
				records, own, totals->whole_count);
		*share += records;
	}
	return 0;
}

/* Each rank tells each other what it has for it. */
static int learn_own(const struct cluster_totals *totals,
		     const struct rank *rank, struct exchange *exchange,
		     uint64_t *share, struct failure *failure)
{
	struct exchange_buffers *messages = calloc(1, sizeof(*messages));
	uint8_t *numbers = malloc(rank->node_count * (size_t)NUMBER_BYTES);
	int error = -ENOMEM;

	if (!messages || !numbers) {
		failure_no_memory(failure);
		goto end;
	}
	messages->length = length_of;
	for (unsigned i = 0; i < rank->node_count; i++) {
		messages->own[i] = numbers + i * (size_t)NUMBER_BYTES;
		messages->own_bytes[i] = NUMBER_BYTES;
		store_le64(numbers + i * (size_t)NUMBER_BYTES, totals->sent[i]);
	}
	error = exchange_send_buffers(exchange, messages, failure);
	if (error == 0)
		error = add_up(totals, messages, share, exchange, failure);
	free(messages->all);
end:
	free(messages);
	free(numbers);
	return error;
}

/* Each rank tells all others what it gets. */
static int tell_own(struct cluster_totals *totals, const struct rank *rank,
		    struct exchange *exchange, uint64_t share,
		    struct failure *failure)
{
	uint8_t own[NUMBER_BYTES];
	struct cluster_allgather gather = {
		.rank = rank,
		.own = own,
		.own_bytes = sizeof(own),
	};
	uint64_t left = totals->whole_count;
	int error;

	store_le64(own, share);
	for (unsigned i = 0; i < rank->node_count; i++)
		gather.bytes[i] = sizeof(own);
	error = cluster_allgather(&gather, exchange, failure);
	for (unsigned i = 0; i < rank->node_count && error == 0; i++) {
		totals->shares[i] = load_le64(gather.all + gather.offset[i]);
		if (totals->shares[i] > left)
			error = exchange_blame(exchange, i, failure,
					       "gets %" PRIu64
					       " records, and %" PRIu64
					       " are left",
					       totals->shares[i], left);
		else
			left -= totals->shares[i];
	}
	if (error == 0 && left > 0)
		error = failure_set(failure, EXIT_PEER, NULL, 0,
				    "no rank gets %" PRIu64 " of %" PRIu64
				    " records",
				    left, totals->whole_count);
	free(gather.all);
	return error;
}

int cluster_totals_learn(struct cluster_totals *totals, const struct rank *rank,
			 struct exchange *exchange, struct failure *failure)
{
	uint64_t share = 0;
	int error = learn_own(totals, rank, exchange, &share, failure);

	return error ? error : tell_own(totals, rank, exchange, share, failure);
}
