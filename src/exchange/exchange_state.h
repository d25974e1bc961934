/*
 * exchange_state.h - what the parts of the exchange share; private to it
 *
 *      exchange.c            joining, collectives, barriers, the loop
 *      exchange_status.c     STATUS: saying where we stand, hearing of others
 *      exchange_board.c      STATUS within one machine: shared memory
 *      exchange_send.c       DATA out: schedules, batches, sending again
 *      exchange_receive.c    DATA in: every byte to its place
 */
#ifndef EXCHANGE_STATE_H
#define EXCHANGE_STATE_H

#include "exchange/arrivals.h"
#include "base/base.h"
#include "net/datagram.h"
#include "exchange/exchange.h"
#include "exchange/exchange_board.h"
#include "exchange/exchange_wire.h"

/* Ports tried, one after the other, by who finds his taken: so far apart. */
#define EXCHANGE_PORT_TRIES 4
#define EXCHANGE_PORT_STEP 256

struct exchange_peer {
	/* Where it is; its ports are known once it was heard. */
	struct address control, data;
	bool heard;
	bool hears; /* it has heard us */
	uint64_t heard_ns;
	uint64_t patient_ns; /* it said that it would be silent until then */
	uint32_t serial_out, serial_in;
	/* Where it stands. */
	uint32_t phase, exchange, round;
	bool ready;	      /* for our messages of our exchange */
	uint64_t progress_ns; /* it has come further, or its bytes have come */
	/* What is wanted of it is asked for again and again. */
	uint64_t asked_ns, ask_interval_ns;
	uint64_t wanted_ns;		   /* since when; 0: nothing is */
	uint64_t clock_ns, clock_heard_ns; /* its clock, and ours then */
	uint64_t round_trip_ns; /* the shortest: how well we know offset_ns */
	uint64_t last_round_trip_ns;
	int64_t offset_ns; /* its clock less ours */
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	size_t hello_bytes;
	uint8_t blob[EXCHANGE_BLOB_BYTES_MAX];
	size_t blob_bytes;
	/* Announced, of the exchanges with even and odd numbers; [node]. */
	uint32_t announced[2]; /* the exchange that it is of */
	uint32_t announced_segment_bytes[2];
	uint64_t *totals[2]; /* owned */

	/* Our message to it. */
	uint32_t segment_bytes; /* payload */
	uint64_t out_bytes;
	uint64_t sent_bytes;			       /* once */
	uint64_t acked_bytes;			       /* it has them */
	uint64_t grant_bytes;			       /* it takes them */
	struct arrivals_gap resend[EXCHANGE_GAPS_MAX]; /* segments */
	unsigned resend_count, resend_at;
	uint32_t resend_serial, served_serial;

	/* Its message to us. */
	struct arrivals in;
	bool in_open;		/* in is set up */
	uint64_t in_sent_bytes; /* it says that it has sent */
	uint64_t told_bytes;	/* prefix that we last told */
	uint64_t granted_bytes;
	uint32_t gap_serial, gap_served;
	uint64_t gap_told_ns;
	unsigned gap_repeats;
};

/* Segments on their way into the socket. */
struct exchange_batch {
	bool active;
	bool again; /* sent before */
	unsigned node;
	uint64_t offset; /* of the first segment that is not yet sent */
	unsigned segment_count, segments_sent;
	size_t byte_count; /* payload of all segments */
	uint8_t headers[DATAGRAM_SEGMENTS_MAX][EXCHANGE_DATA_HEADER_BYTES];
	uint8_t payload[DATAGRAM_BATCH_BYTES_MAX];
};

/* One segment of a batch that is taken, where it was put. */
struct exchange_landing {
	uint64_t segment; /* number in the message */
	bool wanted;	  /* it is missing: its place was given to it */
	unsigned first_part, part_count; /* of the payload */
};

/* Its header, and its payload, which may lie across two places. */
#define EXCHANGE_SEGMENT_PARTS 4

struct exchange_reception {
	struct exchange_peer *peer;
	struct exchange_data first;
	unsigned segment_count;
	unsigned part_count;
	struct iovec parts[DATAGRAM_SEGMENTS_MAX * EXCHANGE_SEGMENT_PARTS];
	struct exchange_landing landings[DATAGRAM_SEGMENTS_MAX];
	uint8_t headers[DATAGRAM_SEGMENTS_MAX][EXCHANGE_DATA_HEADER_BYTES];
};

struct exchange {
	struct exchange_options options;
	const struct rank *rank;
	struct exchange_keys keys;
	digest_fn *digest;
	struct datagram_socket control, data;
	struct exchange_peer *peers; /* [node] */
	struct exchange_counters counters;
	struct exchange_board *board;		/* NULL: none, or not yet */
	bool waits_for_board;			/* that rank 0 will offer */
	uint8_t hello[EXCHANGE_BLOB_BYTES_MAX]; /* behind the board's offer */
	uint8_t blob[EXCHANGE_BLOB_BYTES_MAX];
	size_t blob_bytes;
	uint32_t phase;	       /* as others see it */
	uint32_t phase_wanted; /* that all, or rank 0, must come to; 0: none */
	uint32_t busy_ms;      /* said until the next barrier */
	uint64_t window_bytes;
	uint64_t opened_ns;
	uint64_t served_ns; /* when we last looked */
	uint64_t ask_ns;    /* first repetition of a question */

	const struct exchange_collective *collective; /* NULL: between them */
	uint32_t exchange;
	uint64_t *totals; /* u64 in wire order, our messages to [node] */
	bool prepared;
	unsigned in_left;	 /* messages that are not whole yet */
	uint32_t round;		 /* rounds sent */
	uint32_t rounds_yielded; /* sent or nearly: as others are told */
	uint64_t round_ns; /* the next one waits since then; 0: it does not */
	struct exchange_batch batch;
	unsigned last_node; /* that a batch went to */
	bool blocked;	    /* the socket was full */
	struct exchange_reception reception;
	uint8_t trash[DATAGRAM_BATCH_BYTES_MAX];

	/* The run has ended early; node: at fault, own rank: we.  failure is
	 * what the others are told. */
	bool failed;
	unsigned failed_node;
	struct failure failure;
	char failed_what[320];
	/* Of a collective that could not be prepared: what our caller is told.
	 * EXIT_DONE: there was none. */
	struct failure own_failure;
};

/* --- exchange_status.c ------------------------------------------------------
 */

void exchange_tell(struct exchange *x, unsigned node, uint32_t flags);
void exchange_tell_all(struct exchange *x, uint32_t flags);
/* Take all STATUS there are.  True if there were any. */
bool exchange_hear(struct exchange *x);
/* What is said once, and only where something was lost. */
void exchange_tell_twice(struct exchange *x, unsigned node);
/* Ask for gaps that are not being filled already; returns when to look again.
 */
uint64_t exchange_tell_gaps(struct exchange *x, uint64_t now_ns);

/* --- exchange_send.c --------------------------------------------------------
 */

/* Send some; true if something was sent. */
bool exchange_send_some(struct exchange *x, uint64_t now_ns);
/* Whose turn must come before our round goes on; own rank: nobody's. */
unsigned exchange_round_waits_for(const struct exchange *x);
void exchange_send_begin(struct exchange *x);

/* --- exchange_receive.c -----------------------------------------------------
 */

/* Take some of what has arrived; true if there was any. */
bool exchange_receive_some(struct exchange *x, uint64_t now_ns);
/* What peers may send: after prefixes have moved. */
void exchange_grant(struct exchange *x);

/* --- exchange.c -------------------------------------------------------------
 */

/* The first failure is kept. */
void exchange_note_failure(struct exchange *x, unsigned node,
			   enum exit_status status, const char *why);

static inline unsigned exchange_node_count(const struct exchange *x)
{
	return x->rank->node_count;
}

static inline unsigned exchange_own(const struct exchange *x)
{
	return x->rank->rank;
}

static inline bool exchange_has_announced(const struct exchange *x,
					  unsigned node)
{
	return x->peers[node].announced[x->exchange % 2] == x->exchange;
}

/* It has all of our message, and what we have announced to it and others: that
 * is not said again in the next exchange. */
static inline bool exchange_is_acked(const struct exchange *x, unsigned node)
{
	const struct exchange_peer *peer = &x->peers[node];

	return node == exchange_own(x) || peer->exchange > x->exchange ||
	       (peer->ready && peer->acked_bytes >= peer->out_bytes);
}

static inline bool exchange_is_all_acked(const struct exchange *x)
{
	for (unsigned node = 0; node < exchange_node_count(x); node++)
		if (!exchange_is_acked(x, node))
			return false;
	return true;
}

#endif /* EXCHANGE_STATE_H */
