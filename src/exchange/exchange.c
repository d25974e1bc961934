/*
 * exchange.c - the interface: calls by way of the table, and checks that every
 * implementation must make
 */
#include "exchange/exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "system/numa.h"

int exchange_join(struct exchange *exchange, struct failure *failure)
{
	return exchange->ops->join(exchange, failure);
}

const void *exchange_hello(const struct exchange *exchange, unsigned node,
			   size_t *byte_count)
{
	return exchange->ops->hello(exchange, node, byte_count);
}

int exchange_begin(struct exchange *exchange,
		   const struct exchange_collective *collective,
		   struct failure *failure)
{
	assert(collective->length);
	return exchange->ops->begin(exchange, collective, failure);
}

uint64_t exchange_bytes(const struct exchange *exchange, unsigned source,
			unsigned destination)
{
	return exchange->ops->bytes(exchange, source, destination);
}

bool exchange_knows_all(const struct exchange *exchange)
{
	return exchange->schedule != EXCHANGE_GRID &&
	       exchange->rank->node_count <= EXCHANGE_KNOWN_MAX;
}

int exchange_receive(struct exchange *exchange, struct failure *failure)
{
	return exchange->ops->receive(exchange, failure);
}

int exchange_serve(struct exchange *exchange, struct failure *failure)
{
	return exchange->ops->serve(exchange, failure);
}

int exchange_finish(struct exchange *exchange, struct failure *failure)
{
	return exchange->ops->finish(exchange, failure);
}

int exchange_barrier(struct exchange *exchange, uint32_t phase,
		     const void *payload, size_t payload_bytes,
		     struct failure *failure)
{
	assert(payload_bytes <= EXCHANGE_APPLICATION_BYTES_MAX);
	return exchange->ops->barrier(exchange, phase, payload, payload_bytes,
				      failure);
}

void exchange_tell(struct exchange *exchange, const void *payload,
		   size_t payload_bytes)
{
	assert(payload_bytes <= EXCHANGE_APPLICATION_BYTES_MAX);
	exchange->ops->tell(exchange, payload, payload_bytes);
}

const void *exchange_application_payload(const struct exchange *exchange,
					 unsigned node, size_t *byte_count)
{
	return exchange->ops->application_payload(exchange, node, byte_count);
}

void exchange_set_schedule(struct exchange *exchange,
			   enum exchange_schedule schedule)
{
	assert(schedule == EXCHANGE_ROUNDS || schedule == EXCHANGE_ALL_AT_ONCE);
	exchange->schedule = schedule;
}

void exchange_place(const struct exchange *exchange, void *memory, size_t bytes)
{
	if (exchange->has_node)
		numa_prefer(memory, bytes, exchange->node);
}

void exchange_share_cpu(struct exchange *exchange)
{
	exchange->spins = false;
}

void exchange_announce_delay(struct exchange *exchange, uint32_t delay_ms)
{
	exchange->ops->announce_delay(exchange, delay_ms);
}

void exchange_fail(struct exchange *exchange, const struct failure *failure)
{
	exchange_note_own_failure(exchange, failure);
	exchange->ops->tell_failure(exchange);
}

void exchange_leave(struct exchange *exchange)
{
	exchange->ops->leave(exchange);
}

int64_t exchange_clock_offset_ns(const struct exchange *exchange, unsigned node,
				 uint64_t *bound_ns)
{
	return exchange->ops->clock_offset_ns(exchange, node, bound_ns);
}

const struct exchange_counters *
exchange_counters(const struct exchange *exchange)
{
	return &exchange->counters;
}

uint32_t exchange_payload_bytes(const struct exchange *exchange)
{
	return exchange->ops->payload_bytes(exchange);
}

const char *exchange_transport(const struct exchange *exchange)
{
	return exchange->ops->transport;
}

const char *exchange_schedule_name(enum exchange_schedule schedule)
{
	static const char *const names[] = { "rounds", "all-at-once", "auto",
					     "grid" };

	return names[schedule];
}

void exchange_close(struct exchange *exchange)
{
	if (exchange)
		exchange->ops->close(exchange);
}

/* --- ranks that meet in a collective ----------------------------------------
 */

static unsigned member(const struct exchange_collective *collective, unsigned i)
{
	return collective->group ? collective->group[i] : i;
}

static unsigned member_count(const struct exchange *exchange,
			     const struct exchange_collective *collective)
{
	return collective->group ? collective->group_count
				 : exchange->rank->node_count;
}

unsigned exchange_form_ring(const struct exchange *exchange,
			    const struct exchange_collective *collective,
			    unsigned *ring)
{
	unsigned count = member_count(exchange, collective), own = 0;

	while (member(collective, own) != exchange->rank->rank)
		own++;
	for (unsigned i = 0; i < count; i++)
		ring[i] = member(collective, (own + i) % count);
	return count;
}

/* --- what ranks may announce ------------------------------------------------
 */

static bool allows(const struct exchange_length *length, uint64_t bytes)
{
	uint64_t behind = bytes - length->head_bytes;

	return bytes >= length->head_bytes &&
	       behind % length->unit_bytes == 0 &&
	       behind / length->unit_bytes <= length->unit_count_max;
}

bool exchange_allows_length(const struct exchange_collective *collective,
			    unsigned source, unsigned destination,
			    uint64_t bytes)
{
	const struct exchange_length length =
		collective->length(collective->context, source, destination);

	return allows(&length, bytes);
}

int exchange_check_length(struct exchange *exchange,
			  const struct exchange_collective *collective,
			  unsigned source, unsigned destination, uint64_t bytes,
			  struct failure *failure)
{
	const struct exchange_length length =
		collective->length(collective->context, source, destination);

	if (allows(&length, bytes))
		return 0;
	if (length.unit_count_max == 0)
		return exchange_blame(exchange, source, failure,
				      "announces %" PRIu64
				      " bytes to rank %u, not %" PRIu64,
				      bytes, destination, length.head_bytes);
	return exchange_blame(
		exchange, source, failure,
		"announces %" PRIu64 " bytes to rank %u, not %" PRIu64
		" to %" PRIu64 " in steps of %" PRIu64,
		bytes, destination, length.head_bytes,
		length.head_bytes + length.unit_bytes * length.unit_count_max,
		length.unit_bytes);
}

static int check_length(struct exchange *exchange,
			const struct exchange_collective *collective,
			unsigned source, unsigned destination,
			struct failure *failure)
{
	return exchange_check_length(
		exchange, collective, source, destination,
		exchange->transport->bytes(exchange, source, destination),
		failure);
}

/* Also what a source announces to other ranks, if we know: all ranks refuse it.
 */
static int check_source(struct exchange *exchange,
			const struct exchange_collective *collective,
			unsigned source, struct failure *failure)
{
	int error = 0;

	if (!exchange_tells_all(exchange, collective))
		return check_length(exchange, collective, source,
				    exchange->rank->rank, failure);
	if (!exchange->transport->has_told_all(exchange, source))
		return exchange_blame(exchange, source, failure,
				      "does not tell all ranks how much it has "
				      "for them");
	for (unsigned to = 0; to < exchange->rank->node_count && !error; to++)
		if (to != source)
			error = check_length(exchange, collective, source, to,
					     failure);
	return error;
}

int exchange_check_lengths(struct exchange *exchange,
			   const struct exchange_collective *collective,
			   uint64_t *receive_bytes, struct failure *failure)
{
	unsigned own = exchange->rank->rank;
	uint64_t sum = 0;

	memset(receive_bytes, 0,
	       exchange->rank->node_count * sizeof(*receive_bytes));
	for (unsigned i = 0; i < member_count(exchange, collective); i++) {
		unsigned node = member(collective, i);
		int error;

		if (node == own)
			continue;
		error = check_source(exchange, collective, node, failure);
		if (error)
			return error;
		receive_bytes[node] =
			exchange->transport->bytes(exchange, node, own);
		if (__builtin_add_overflow(sum, receive_bytes[node], &sum))
			return exchange_blame(exchange, node, failure,
					      "announces too much");
	}
	return 0;
}
