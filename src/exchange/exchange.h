/*
 * exchange.h - messages from every rank to every other: the interface
 *
 * All ranks run the same collectives in the same order.  In each collective a
 * rank has one message for each other rank and gets one from each:
 *
 *      announce   tell all ranks how long the messages to them are
 *      prepare    when all have announced: make room for every byte
 *      send       the messages, in an order that the schedule decides
 *      finish     wait until all others have all of this rank's messages
 *
 * exchange_begin() announces, exchange_receive() goes on until this rank has
 * all its messages, and exchange_finish() ends the collective.  A run begins
 * with exchange_join() and ends with barriers and exchange_leave().
 *
 * This is a session of ranks, written once (exchange.c).  Below it a transport
 * (udp.h, mpi.h) moves STATUS, which tells where a rank stands, and DATA, the
 * messages: exchange_state.h.
 *
 * One thread of a rank calls these functions, always the same one, and nothing
 * happens while none of them runs, but that a message may be on its way out.
 * Meanwhile other threads of a transport may move bytes, and call the functions
 * of the collective: one of these at a time, but for read() and idle().  A rank
 * that computes for long therefore calls exchange_serve() now and then: other
 * ranks may wait for an answer.  A rank that is silent for the deadline is
 * given up, and the run ends on all ranks with a failure that names it.  So is,
 * over UDP, one that answers but neither delivers what it has sent nor takes
 * what was sent to it.
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/trace.h"
#include "net/rank.h"

struct exchange;

/* Collectives in one run, at most: DATA has two bytes for the number. */
#define EXCHANGE_COLLECTIVES_MAX 65535
/* A rank can be so many collectives ahead of another: the other has not ended
 * the first, and the rank has begun the last.  Where all ranks meet it is one;
 * where groups meet that cover all ranks in two steps, two. */
#define EXCHANGE_LEAD_MAX 2
/* Up to so many ranks, each tells all others how long its messages to all are:
 * n * n numbers, which fit into what each rank tells the others anyway.  Of
 * more ranks, each learns only how long the messages to it are. */
#define EXCHANGE_KNOWN_MAX 128
#define EXCHANGE_HELLO_BYTES_MAX 232
#define EXCHANGE_APPLICATION_BYTES_MAX 256
/* The longest silence that a rank may announce: more than sorting a bucket of
 * the most records that a rank can have takes (cluster_receive.c). */
#define EXCHANGE_DELAY_MS_MAX 360000

/*
 * In which order a rank sends to the others.  Rounds are as published
 * (Datamation 2011): in round i rank j sends to j + i; shortly before the round
 * is over, rank j tells rank j - 1, whose next round has the destination that
 * becomes free.  At any time the pairs are disjoint except for the last 32 KiB
 * of a round: no two senders share a receiver's link for longer.  A message
 * that both ranks know to be no longer than that is not waited for.
 * All-at-once sends a batch to each rank in turn, and no rank waits for
 * another; short messages fit into a batch.  A grid sends shorter ones by way
 * of others: exchange_grid.h.
 */
enum exchange_schedule {
	EXCHANGE_ROUNDS,
	EXCHANGE_ALL_AT_ONCE,
	EXCHANGE_AUTO, /* a user's wish, which the caller decides */
	EXCHANGE_GRID, /* two exchanges, over rows and then over columns */
	EXCHANGE_SCHEDULES
};

/* [enum exchange_schedule]: "rounds", "all-at-once", "auto", "grid" */
extern const char *const exchange_schedule_names[EXCHANGE_SCHEDULES];

/* What every exchange needs to know, whatever its transport is. */
struct exchange_options {
	const struct rank *rank; /* must outlive the exchange */
	/* It holds until exchange_set_schedule(); not GRID, and not AUTO. */
	enum exchange_schedule schedule;
	/* True if the thread has a CPU of its own: it then polls for a moment
	 * before it sleeps. */
	bool spins;
	uint64_t deadline_ns; /* after this silence a rank is given up */
	/* All ranks are known to run: none says hello, exchange_join() waits
	 * for nobody, and a rank speaks only to those that a collective or a
	 * barrier has it speak to. */
	bool skips_hello;
	/* What all ranks learn of this one: up to EXCHANGE_HELLO_BYTES_MAX
	 * bytes, which are copied. */
	const void *hello;
	size_t hello_bytes;
	struct trace_lane *lane; /* or NULL */
	/* Buffers come from this NUMA node while it has memory. */
	bool has_node;
	unsigned node;
};

/* A rank tells them in this order (cluster_report.h). */
struct exchange_counters {
	uint64_t sent_bytes, sent_datagrams; /* of DATA, payload */
	uint64_t received_bytes, received_datagrams;
	uint64_t resent_datagrams;
	uint64_t duplicate_datagrams; /* received again */
	uint64_t damaged_datagrams;   /* with a wrong CRC-32C */
	uint64_t stray_datagrams;     /* from no rank of this job */
	uint64_t status_datagrams;    /* sent */
	uint64_t round_wait_ns;	      /* from a round to the next */
	uint64_t rounds_unwaited;     /* begun after waiting too long */
	uint64_t poll_wait_ns;	      /* asleep or polling, in all */
};

/* Lengths that a message may have: head_bytes, and behind them up to
 * unit_count_max units of unit_bytes; UINT64_MAX in all at most. */
struct exchange_length {
	uint64_t head_bytes;
	uint64_t unit_bytes; /* >= 1 */
	uint64_t unit_count_max;
};

/* One collective.  Its functions are called with the context, from within
 * exchange_begin(), exchange_receive(), exchange_finish() and
 * exchange_serve(). */
struct exchange_collective {
	void *context;
	/* The ranks that meet in this collective, ascending, with the own one;
	 * all others do the same in groups of their own.  NULL: all ranks. */
	const unsigned *group;
	unsigned group_count;
	/* All ranks know that messages are long: they do not go by a grid. */
	bool has_long_messages;
	/* [node]: bytes of the message to it; the own rank's is ignored, and so
	 * are those of ranks that are not of the group. */
	const uint64_t *send_bytes;
	/* Copy bytes of the message to node.  Bytes that were lost are asked
	 * for again.  Several threads may do so, each for other nodes. */
	void (*read)(void *context, unsigned node, uint64_t offset,
		     uint8_t *target, size_t byte_count);
	/* Or NULL.  The address of the message's bytes from offset on, where
	 * they stay until exchange_finish() returns; *room is how many of them
	 * (>= 1) lie there.  NULL: read() makes them.  A transport need
	 * not call it, nor copy what it finds. */
	const uint8_t *(*find)(void *context, unsigned node, uint64_t offset,
			       size_t *room);
	/* Lengths that source may announce to destination, by what all ranks
	 * know, so that all ranks decide alike.  Called before prepare(), for
	 * all pairs: a rank that announces another length ends the run. */
	struct exchange_length (*length)(const void *context, unsigned source,
					 unsigned destination);
	/* All ranks have announced: receive_bytes[node], each as length()
	 * allows, and with a sum that does not wrap; 0 of ranks that are not of
	 * the group.  Returns 0, or -errno with
	 * *failure filled, which ends the run. */
	int (*prepare)(void *context, const uint64_t *receive_bytes,
		       struct failure *failure);
	/* The address for the message's bytes from offset on; *room is how many
	 * of them (>= 1) fit there.  NULL: they are to be thrown away. */
	uint8_t *(*place)(void *context, unsigned node, uint64_t offset,
			  size_t *room);
	/* Or NULL.  The message has arrived up to prefix_bytes without a gap.
	 */
	void (*arrived)(void *context, unsigned node, uint64_t prefix_bytes,
			bool whole);
	/* Or NULL.  Does some work while there is nothing to send or receive;
	 * returns false if there was no work.  The calling thread does it, and
	 * others may call the other functions meanwhile. */
	bool (*idle)(void *context);
};

/* --- what callers use -------------------------------------------------------
 *
 * Functions that return int return 0, or -errno with *failure filled.  The text
 * that a failure's `what` points to is valid until exchange_close().
 */

/* Wait until all ranks have said hello; then exchange_hello() has what they
 * said. */
int exchange_join(struct exchange *exchange, struct failure *failure);
const void *exchange_hello(const struct exchange *exchange, unsigned node,
			   size_t *byte_count);

/* All collectives that follow go by this schedule, which is rounds or
 * all-at-once; exchange_grid_set() sets a grid.  After exchange_join(), between
 * collectives, once, and alike on all ranks. */
void exchange_set_schedule(struct exchange *exchange,
			   enum exchange_schedule schedule);

/* Announce this rank's messages.  The collective must stay until its
 * exchange_finish().  A run may have EXCHANGE_COLLECTIVES_MAX of them. */
int exchange_begin(struct exchange *exchange,
		   const struct exchange_collective *collective,
		   struct failure *failure);

/* Bytes of the message from source to destination, from prepare() on.  One of
 * the two is the own rank, unless exchange_knows_all(). */
uint64_t exchange_bytes(const struct exchange *exchange, unsigned source,
			unsigned destination);
/* Does each rank know the lengths of all ranks' messages to all?  The same on
 * all ranks: see EXCHANGE_KNOWN_MAX. */
bool exchange_knows_all(const struct exchange *exchange);

/* Go on until all messages to this rank have arrived. */
int exchange_receive(struct exchange *exchange, struct failure *failure);

/* Answer other ranks, and send what they have asked for, without waiting. */
int exchange_serve(struct exchange *exchange, struct failure *failure);

/* No other thread uses what the collective points to, until this one calls a
 * function of the exchange again: where the collective cannot go on to
 * exchange_finish(), before that memory ends.  A function that returns an error
 * has done so. */
void exchange_settle(struct exchange *exchange);

/* Go on until all other ranks have all of this rank's messages, too. */
int exchange_finish(struct exchange *exchange, struct failure *failure);

/*
 * Wait until all ranks have come to phase (ascending numbers, from 1).  The
 * application payload, if there is one (up to EXCHANGE_APPLICATION_BYTES_MAX
 * bytes), goes to rank 0, for which exchange_application_payload() then has
 * what each node sent.
 */
int exchange_barrier(struct exchange *exchange, uint32_t phase,
		     const void *payload, size_t payload_bytes,
		     struct failure *failure);
/* Tell rank 0 the payload, of at most EXCHANGE_APPLICATION_BYTES_MAX bytes,
 * before the first barrier only.  It is sent once and may be lost. */
void exchange_tell(struct exchange *exchange, const void *payload,
		   size_t payload_bytes);
const void *exchange_application_payload(const struct exchange *exchange,
					 unsigned node, size_t *byte_count);

/* Other threads of this rank need all CPUs from now on: this one sleeps at once
 * when it waits, and does not poll before. */
void exchange_share_cpu(struct exchange *exchange);

/* Tell the other ranks that this one may be silent for delay_ms from now on, up
 * to EXCHANGE_DELAY_MS_MAX: for a sync or a long read. */
void exchange_announce_delay(struct exchange *exchange, uint32_t delay_ms);

/* Tell all other ranks that the run has failed here; or, if a failure is known
 * already, that one.  If another rank has told it, a few are told: each passes
 * it on, and so all hear of it. */
void exchange_fail(struct exchange *exchange, const struct failure *failure);

/* The end of a reason to blame a rank whose numbers are impossible. */
#define EXCHANGE_FAULTY "it is faulty or of another version"

/* The node has said something impossible.  *failure names it and says why
 * (EXIT_PEER); exchange_fail() then tells all other ranks.  Returns -errno.  A
 * failure that is known already stays. */
__attribute__((format(printf, 4, 5))) int
exchange_blame(struct exchange *exchange, unsigned node,
	       struct failure *failure, const char *format, ...);

/* Call it after the last barrier: rank 0 stays until all other ranks know that
 * all have come to it.  Over UDP ranks leave by a tree: some others stay, too,
 * until those below them leave; none for longer than a second. */
void exchange_leave(struct exchange *exchange);

/* The node's clock less this rank's, and by how much that may be wrong at most;
 * UINT64_MAX: it is not known. */
int64_t exchange_clock_offset_ns(const struct exchange *exchange, unsigned node,
				 uint64_t *bound_ns);

const struct exchange_counters *
exchange_counters(const struct exchange *exchange);
/* Payload of a full segment to the next rank; 0 if there are no segments. */
uint32_t exchange_payload_bytes(const struct exchange *exchange);

/* How bytes travel: "udp", "mpi". */
const char *exchange_transport(const struct exchange *exchange);

/* Safe on NULL. */
void exchange_close(struct exchange *exchange);

#endif /* EXCHANGE_H */
