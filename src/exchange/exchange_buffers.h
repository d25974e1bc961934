/*
 * exchange_buffers.h - a collective whose messages all lie in memory
 */
#ifndef EXCHANGE_BUFFERS_H
#define EXCHANGE_BUFFERS_H

#include "exchange/exchange.h"

struct exchange_buffers {
	/* The caller fills in these. */
	/* [rank]: our messages.  One to ourselves is copied. */
	const uint8_t *own[RANK_NODES_MAX];
	uint64_t own_bytes[RANK_NODES_MAX];
	/* The length() of struct exchange_collective, with this context. */
	struct exchange_length (*length)(const void *context, unsigned source,
					 unsigned destination);
	void *context;
	bool has_long_messages;
	/* Or NULL.  All ranks have announced: may so many bytes come?  Returns
	 * 0, or -errno with *failure filled, which ends the run. */
	int (*accept)(void *context, const uint64_t *receive_bytes,
		      struct failure *failure);
	/* Where the messages are to lie.  NULL: they are allocated, and the
	 * caller frees them, also after a failure. */
	uint8_t *all;

	/* What has come lies there in rank order: message i is all[offset[i]]
	 * up to all[offset[i + 1]]. */
	uint64_t offset[RANK_NODES_MAX + 1];
	const struct rank *rank;
	struct exchange_collective collective;
};

/* Begin the collective; exchange_receive() and exchange_finish() follow.  The
 * buffers must stay until then. */
int exchange_begin_buffers(struct exchange *exchange,
			   struct exchange_buffers *buffers,
			   struct failure *failure);
/* All of the collective. */
int exchange_send_buffers(struct exchange *exchange,
			  struct exchange_buffers *buffers,
			  struct failure *failure);

#endif /* EXCHANGE_BUFFERS_H */
