/*
 * exchange.h - messages from every rank to every other, over UDP
 *
 * All ranks run the same collectives in the same order.  In each, a rank has
 * one message for each other rank and gets one from each:
 *
 *      announce   tell all how long the messages to all are
 *      prepare    when all have announced: make room for every byte
 *      ready      tell all that their messages can come
 *      send       segments, in an order that the schedule decides
 *      repair     the receiver names the gaps, the sender sends them again
 *
 * Schedules:
 *      rounds       as published (Datamation 2011): in round i rank j sends to
 *                   j + i; shortly before it has, it tells j - 1, whose next
 *                   round has the destination that becomes free.  At any time
 *                   the pairs are disjoint, but for a round's last 32 KiB: no
 *                   two senders share a receiver's link for longer.
 *      all-at-once  a batch to each in turn: what the rounds are compared with
 *
 * Where a rank stands it tells in datagrams; or, if all are on one machine,
 * through memory that they share (exchange_board.h), and a datagram only wakes.
 *
 * The rank's one thread calls in; nothing happens behind its back.  A rank that
 * computes for long calls exchange_serve() now and then: others may wait for an
 * answer, and who says nothing for the deadline is given up: the run ends on
 * all ranks with a failure that names it.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/failure.h"
#include "net/rank.h"
#include "base/trace.h"

struct exchange;

#define EXCHANGE_COLLECTIVES_MAX 255
#define EXCHANGE_HELLO_BYTES_MAX 232

enum exchange_schedule {
	EXCHANGE_ROUNDS,
	EXCHANGE_ALL_AT_ONCE,
	EXCHANGE_AUTO, /* only as wanted: of who opens the exchange */
};

struct exchange_options {
	const struct rank *rank; /* must outlive the exchange */
	enum exchange_schedule schedule;
	enum cpu_level kernel;
	bool plain; /* no batches: sendto and recv */
	bool spins; /* a CPU is ours: look again before waiting */
	/* Check each payload's digest; all ranks alike.  On loopback bytes
	 * are only copied: the kernel, too, computes no checksum there. */
	bool digests;
	uint16_t port; /* of rank 0; 0: from the job's token */
	/* Of a datagram, EXCHANGE_PAYLOAD_BYTES_MIN (exchange_wire.h) or more;
	 * 0: as the path allows. */
	uint32_t payload_bytes;
	uint32_t window_bytes; /* under way to a receiver; 0: its socket's */
	uint64_t deadline_ns;
	/* All ranks are on one machine, and tell each other where they stand
	 * through shared memory; all ranks alike. */
	bool board;
	/* What all get to know of us; <= EXCHANGE_HELLO_BYTES_MAX. */
	const void *hello;
	size_t hello_bytes;
	struct trace_lane *lane; /* or NULL */
};

struct exchange_counters {
	uint64_t sent_datagrams, sent_bytes; /* of DATA, payload */
	uint64_t received_datagrams, received_bytes;
	uint64_t resent_datagrams;
	uint64_t duplicate_datagrams; /* received again */
	uint64_t damaged_datagrams;   /* the digest was wrong */
	uint64_t stray_datagrams;     /* of no rank of this job */
	uint64_t status_datagrams;    /* sent */
	uint64_t barrier_wait_ns;     /* between rounds */
	uint64_t barriers_skipped;    /* waited for too long, went on */
	uint64_t wait_ns;	      /* in poll(2), all in all */
};

/* What a message may be long: a head, and behind it up to unit_count_max units;
 * so UINT64_MAX at most. */
struct exchange_length {
	uint64_t head_bytes;
	uint64_t unit_bytes; /* >= 1 */
	uint64_t unit_count_max;
};

/* One collective.  The functions are called from within exchange_receive(),
 * exchange_finish() and exchange_serve(), with the context. */
struct exchange_collective {
	void *context;
	/* [node]: bytes of the message to it; own's is ignored. */
	const uint64_t *send_bytes;
	/* Copy bytes of the message to node; called again for what was lost. */
	void (*read)(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count);
	/* What source may announce to destination, by what all ranks know, so
	 * that all come to the same.  Called before prepare(), for all pairs:
	 * a rank that announces something else ends the run. */
	struct exchange_length (*length)(const void *context, unsigned source,
					 unsigned destination);
	/* All have announced: receive_bytes[node], each as length() allows, and
	 * a sum that does not wrap.  0 or -errno with *failure filled, which
	 * ends the run. */
	int (*prepare)(void *context, const uint64_t *receive_bytes,
		       struct failure *failure);
	/* Where the message's bytes from offset on go, *room of them (>= 1)
	 * before another call is needed. */
	uint8_t *(*place)(void *context, unsigned node, uint64_t offset,
			  size_t *room);
	/* The message has arrived up to prefix_bytes without a gap. */
	void (*arrived)(void *context, unsigned node, uint64_t prefix_bytes,
			bool whole);
	/* Or NULL: some work while there is nothing to send or receive; false:
	 * there was none. */
	bool (*idle)(void *context);
};

/* Sockets, and the first greetings.  NULL with *failure filled.  What later
 * failures name stays until exchange_close(). */
struct exchange *exchange_open(const struct exchange_options *options,
			       struct failure *failure);

/* Wait until all ranks have said hello; then exchange_hello() has what they
 * said.  0 or -errno with *failure filled, as all that follows. */
int exchange_join(struct exchange *exchange, struct failure *failure);
const void *exchange_hello(const struct exchange *exchange, unsigned node,
			   size_t *byte_count);

/* Announce; the collective must stay until exchange_finish() of it.  A run may
 * have EXCHANGE_COLLECTIVES_MAX of them. */
int exchange_begin(struct exchange *exchange,
		   const struct exchange_collective *collective,
		   struct failure *failure);

/* Bytes of the message from source to destination, once prepare() is called. */
uint64_t exchange_bytes(const struct exchange *exchange, unsigned source,
			unsigned destination);

/* Go on until all messages have arrived. */
int exchange_receive(struct exchange *exchange, struct failure *failure);

/* Answer others, and send what they have asked for, without waiting. */
int exchange_serve(struct exchange *exchange, struct failure *failure);

/* Go on until all others have all of ours, too. */
int exchange_finish(struct exchange *exchange, struct failure *failure);

/*
 * Wait until all ranks have come to phase (ascending numbers).  The blob, if
 * any, is what rank 0 gets to know of us: exchange_blob().
 */
int exchange_barrier(struct exchange *exchange, uint32_t phase,
		     const void *blob, size_t blob_bytes,
		     struct failure *failure);
const void *exchange_blob(const struct exchange *exchange, unsigned node,
			  size_t *byte_count);

/* Tell the others that this rank may be silent for busy_ms from now on: a sync,
 * a long read.  EXCHANGE_BUSY_MS_MAX (exchange_wire.h) is the most. */
void exchange_say_busy(struct exchange *exchange, uint32_t busy_ms);

/* Tell all others that the run has failed here (or keep to what another has
 * told). */
void exchange_fail(struct exchange *exchange, const struct failure *failure);

/* The node has said what cannot be.  *failure names it and says why
 * (EXIT_PEER); exchange_fail() then tells all others.  Returns -errno.  A
 * failure that is known already stays. */
__attribute__((format(printf, 4, 5))) int
exchange_blame(struct exchange *exchange, unsigned node,
	       struct failure *failure, const char *format, ...);

/* After the last barrier: rank 0 stays until all others know that it was. */
void exchange_leave(struct exchange *exchange);

/* The node's clock less ours, and how wrong that may be at most; UINT64_MAX:
 * not known.  From the shortest round trip that a STATUS made. */
int64_t exchange_clock_offset_ns(const struct exchange *exchange, unsigned node,
				 uint64_t *bound_ns);

const struct exchange_counters *
exchange_counters(const struct exchange *exchange);
/* Payload of a full segment to the first peer; 0 if there is none. */
uint32_t exchange_payload_bytes(const struct exchange *exchange);

/* "rounds", "all-at-once" */
const char *exchange_schedule_name(enum exchange_schedule schedule);

/* Safe on NULL. */
void exchange_close(struct exchange *exchange);

#endif /* EXCHANGE_H */
