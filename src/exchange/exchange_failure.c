/*
 * exchange_failure.c - keep the first failure of a run
 *
 * All parts of an exchange call this file; it calls none of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "exchange/exchange_state.h"

void exchange_note_failure(struct exchange *exchange, unsigned node,
			   enum exit_status status, const char *why)
{
	struct exchange_failed *failed = &exchange->failed;

	if (failed->any)
		return;
	failed->any = true;
	failed->node = node;
	snprintf(failed->what, sizeof(failed->what), "rank %u (%s)", node,
		 exchange->rank->names[node]);
	failure_set(&failed->failure, status, failed->what, 0, "%s", why);
}

void exchange_hear_failure(struct exchange *exchange, unsigned node,
			   unsigned failed, const void *why, size_t byte_count)
{
	char text[FAILURE_WHY_BYTES];

	snprintf(text, sizeof(text), "%.*s", (int)byte_count,
		 (const char *)why);
	exchange->failed.is_told |= !exchange->failed.any;
	exchange_note_failure(exchange,
			      failed < exchange_count(exchange) ? failed : node,
			      EXIT_PEER, text);
}

void exchange_note_own_failure(struct exchange *exchange,
			       const struct failure *failure)
{
	char why[2 * FAILURE_WHY_BYTES];

	if (exchange->failed.any)
		return;
	exchange->failed.own = *failure;
	snprintf(why, sizeof(why), "%.160s%s%s",
		 failure->what ? failure->what : "", failure->what ? ": " : "",
		 failure->why);
	exchange_note_failure(exchange, exchange->rank->rank, failure->status,
			      why);
}

int exchange_give_failure(const struct exchange *exchange,
			  struct failure *failure)
{
	const struct exchange_failed *failed = &exchange->failed;

	*failure =
		failed->own.status == EXIT_DONE ? failed->failure : failed->own;
	return -EPIPE;
}

int exchange_blame(struct exchange *exchange, unsigned node,
		   struct failure *failure, const char *format, ...)
{
	char why[FAILURE_WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	exchange_note_failure(exchange, node, EXIT_PEER, why);
	return exchange_give_failure(exchange, failure);
}
