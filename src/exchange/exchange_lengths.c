/*
 * exchange_lengths.c - keep how long messages are announced to be, and check
 * that they may be so long
 */
#include <inttypes.h>
#include <string.h>

#include "exchange/exchange_state.h"

/* --- what is announced ------------------------------------------------------
 */

bool exchange_is_wrong_count(const struct exchange *exchange, unsigned count)
{
	return count > 1 && (count != exchange_count(exchange) ||
			     count > EXCHANGE_KNOWN_MAX);
}

bool exchange_hear_lengths(struct exchange *exchange, unsigned node,
			   uint32_t epoch, const uint8_t *lengths,
			   unsigned count)
{
	struct exchange_announced *announced =
		&exchange_peer_of(exchange, node)
			 ->announced[epoch % EXCHANGE_ANNOUNCED];
	bool all = count > 1;

	if (count == 0 || exchange_is_wrong_count(exchange, count) ||
	    epoch < MAX(exchange->epoch, 1) ||
	    epoch > exchange->epoch + EXCHANGE_LEAD_MAX ||
	    announced->epoch >= epoch)
		return false;
	announced->byte_count = load_le64(
		lengths + 8 * (size_t)(all ? exchange_own(exchange) : 0));
	announced->has_totals = all;
	for (unsigned i = 0; all && i < count; i++)
		announced->totals[i] = load_le64(lengths + 8 * (size_t)i);
	announced->epoch = epoch;
	return true;
}

uint64_t exchange_message_bytes(const struct exchange *exchange,
				unsigned source, unsigned destination)
{
	const struct exchange_announced *announced =
		exchange_announced(exchange, source);

	if (source == exchange_own(exchange))
		return load_le64(&exchange->lengths[destination]);
	return destination == exchange_own(exchange)
		       ? announced->byte_count
		       : announced->totals[destination];
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

static int check_announced(struct exchange *exchange, unsigned source,
			   unsigned destination, struct failure *failure)
{
	return exchange_check_length(
		exchange, exchange->collective, source, destination,
		exchange_message_bytes(exchange, source, destination), failure);
}

/* Also what a source announces to other ranks, if we know: all ranks refuse it.
 */
static int check_source(struct exchange *exchange, unsigned source,
			struct failure *failure)
{
	int error = 0;

	if (!exchange->tells_all)
		return check_announced(exchange, source, exchange_own(exchange),
				       failure);
	if (!exchange_announced(exchange, source)->has_totals)
		return exchange_blame(exchange, source, failure,
				      "did not announce its messages to all "
				      "ranks");
	for (unsigned to = 0; to < exchange_count(exchange) && !error; to++)
		if (to != source)
			error = check_announced(exchange, source, to, failure);
	return error;
}

int exchange_check_lengths(struct exchange *exchange, uint64_t *receive_bytes,
			   struct failure *failure)
{
	uint64_t sum = 0;

	for (unsigned node = 0; node < exchange_count(exchange); node++) {
		int error;

		receive_bytes[node] = 0;
		if (node == exchange_own(exchange) ||
		    !exchange->peers[node]->meets)
			continue;
		error = check_source(exchange, node, failure);
		if (error)
			return error;
		receive_bytes[node] =
			exchange_announced(exchange, node)->byte_count;
		if (__builtin_add_overflow(sum, receive_bytes[node], &sum))
			return exchange_blame(
				exchange, node, failure,
				"announced more bytes than 64 bits count");
	}
	return 0;
}
