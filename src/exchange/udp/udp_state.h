/*
 * udp_state.h - what the parts of the exchange over UDP share; private to it
 *
 * Calls go from the left to the right only:
 *
 *      udp.c  ->  udp_join.c      addresses, sockets, hellos
 *                 udp_receive.c   DATA in: every byte to its place
 *                 udp_send.c      DATA out: schedules, batches, sending again
 *                             ->  udp_status.c    STATUS in and out
 *                                             ->  udp_page.c, udp_wire.c, ...
 *                                                 udp_mover.c
 *
 * One thread at a time has the state that is described here: the rank's own,
 * from udp_mover_start() on whenever it is not in one of the functions that
 * give the state away.  So what the exchange's caller does, and each function
 * of a collective but read() and idle(), has it for itself.
 *
 * A comment before fields names the file that writes them; the other files only
 * read them.
 */
#ifndef UDP_STATE_H
#define UDP_STATE_H

#include "base/base.h"
#include "exchange/udp/arrivals.h"
#include "exchange/exchange_state.h"
#include "exchange/udp/udp.h"
#include "exchange/udp/udp_page.h"
#include "exchange/udp/udp_threads.h"
#include "exchange/udp/udp_wire.h"
#include "net/datagram.h"

/* A rank that finds its port taken tries that many ports, one after the other,
 * that far apart, or further: so that none is the first one of another rank. */
#define UDP_PORT_TRIES 4
#define UDP_PORT_STEP_MIN 256

/* What the last STATUS of a peer said.
 * Written by udp_status.c. */
struct udp_heard {
	bool hears_us; /* the peer has got a STATUS of ours */
	uint32_t serial;
	uint32_t epoch;
	/* So many bytes of each message may be sent to the peer before it is
	 * ready. */
	uint64_t first_grant_bytes;
	/* The rest is of our epoch; 0 and false if it is not there yet. */
	uint32_t round;		/* rounds that the peer has handed over */
	bool ready;		/* it has all announcements, also ours */
	uint64_t prefix_bytes;	/* of our message, arrived there */
	uint64_t grant_bytes;	/* of our message, may be sent */
	uint64_t sent_bytes;	/* of its message, sent */
	uint32_t served_serial; /* our list of gaps that it has served */
	/* Segments of our message that the peer misses: its last list. */
	struct arrivals_gap *gaps; /* [UDP_GAPS_MAX], or NULL; owned */
	unsigned gap_count;
	uint32_t gap_serial;
	/* Announced with the lengths: [epoch % EXCHANGE_ANNOUNCED]. */
	uint32_t segment_bytes[EXCHANGE_ANNOUNCED];
};

/* Our message to a peer.
 * Written by udp_send.c. */
struct udp_out {
	uint64_t byte_count;
	uint64_t sent_bytes; /* from the beginning, once or more often */
	/* Which gap is sent next of the list of gaps with this serial, and how
	 * many segments of it were sent. */
	uint32_t resend_serial;
	unsigned resend_at;
	uint64_t resend_done;
	uint32_t served_serial; /* of the last list that was all sent */
	struct debt debt;	/* to take it */
};

/* A peer's message to us.
 * Written by udp_receive.c. */
struct udp_in {
	struct arrivals arrivals;
	bool open; /* arrivals is of this epoch */
	uint64_t granted_bytes;
	uint32_t gap_serial;	    /* of the last list of gaps */
	uint64_t gap_sent_ns;	    /* when that was sent */
	uint64_t gap_arrived_count; /* segments that had come by then */
	unsigned gap_repeats;
	unsigned fruitless_lists; /* since something came */
	struct debt debt;	  /* what it has sent */
};

/* How a peer's clock relates to ours.  Each STATUS has its sender's clock, the
 * last clock of ours that the sender has seen (the echo), and for how long it
 * has held that.  The shortest round trip tells the clocks' difference best: it
 * is wrong by half of that trip at most.  Written by udp_status.c. */
struct udp_clock {
	uint64_t theirs_ns; /* its clock in its last STATUS; 0: there is none */
	uint64_t heard_ns;  /* our clock when that came */
	uint64_t round_trip_ns; /* the shortest; UINT64_MAX: not known */
	uint64_t last_round_trip_ns;
	int64_t offset_ns; /* its clock less ours */
};

struct udp_peer {
	/* Written by udp_status.c. */
	uint32_t segment_bytes; /* payload of what is sent to it */
	uint16_t data_port;	/* as the last STATUS tells */
	uint32_t status_serial; /* of our last STATUS to it */
	struct udp_heard heard;
	struct udp_clock clock;
	struct debt debt; /* to announce what it has gone on from */

	/* Written by udp_send.c. */
	struct udp_out out;

	/* Written by udp_receive.c. */
	struct udp_in in;
};

/* Segments on their way into the socket.
 * Written by udp_send.c. */
struct udp_batch {
	bool active;
	bool is_made;	 /* headers and payload are filled */
	bool is_leaving; /* a mover sends it right now */
	bool again;	 /* sent before */
	uint16_t flags;	 /* of enum udp_wire_data_flag */
	unsigned node;
	uint64_t offset; /* of the first segment */
	unsigned segment_count, segments_sent;
	size_t byte_count; /* payload of all segments */
	uint8_t headers[DATAGRAM_SEGMENTS_MAX][UDP_DATA_HEADER_BYTES];
	uint8_t payload[DATAGRAM_BATCH_BYTES_MAX];
};

/* Where one segment of a received batch was put.
 * Written by udp_receive.c. */
struct udp_segment_target {
	uint64_t segment; /* its number in the message */
	bool missing;	  /* it had not arrived: it has its final place */
	bool is_whole;	  /* what has come is what was sent */
	uint16_t flags;	  /* of enum udp_wire_data_flag, if it is */
	unsigned first_part, part_count; /* of the payload */
};

/* Parts of a segment: its header, and its payload, which may lie across two
 * places. */
#define UDP_SEGMENT_PARTS 4

/* A batch that is being received.
 * Written by udp_receive.c. */
struct udp_receive_batch {
	struct udp_peer *peer; /* the sender */
	struct udp_wire_data first;
	unsigned segment_count;
	unsigned part_count;
	struct iovec parts[DATAGRAM_SEGMENTS_MAX * UDP_SEGMENT_PARTS];
	struct udp_segment_target targets[DATAGRAM_SEGMENTS_MAX];
	uint8_t headers[DATAGRAM_SEGMENTS_MAX][UDP_DATA_HEADER_BYTES];
	uint8_t discarded[DATAGRAM_BATCH_BYTES_MAX];
};

/*
 * Sockets for STATUS and for DATA, and a thread that hears the one, and moves
 * bytes between the other and messages.  Mover 0 has the rank's own thread, the
 * others have threads that the rank starts.  Each peer has one of them: it is
 * told that one's port for DATA, and gets STATUS from that one's other port, to
 * which it then sends its own.
 */
struct udp_mover {
	/* Written by udp_mover.c. */
	struct udp *x;
	struct udp_thread thread;
	int waker; /* -1: there is just one mover */
	bool sleeps;
	bool is_woken; /* while it sleeps */
	/* There may be something to do, since the mover last began a step. */
	bool is_wanted;
	/* udp_join.c opens these. */
	struct datagram_socket control, data;

	/* Written by udp.c. */
	bool announces; /* the mover is to tell its peers of the collective */
	uint32_t announced_epoch; /* the last collective that it was to tell */

	/* Written by udp_receive.c. */
	struct udp_receive_batch receiving;

	/* Written by udp_send.c. */
	unsigned last_turn; /* the last batch went to that place of the ring */
	bool blocked;	    /* the socket was full */
	struct udp_batch sending;
};

struct udp {
	/* Written by exchange.c. */
	struct exchange base; /* first: see udp_of() */

	/* Written by udp.c, as it opens. */
	struct udp_options options;
	crc32c_fn *crc32c;

	/* Written by udp_join.c, before anything is sent. */
	struct udp_wire_keys keys;
	uint32_t *segment_bytes; /* [node]: to each; owned */
	uint64_t window_bytes;
	/* Others may send so much of each message before this rank is ready:
	 * the socket has room for it. */
	uint64_t first_window_bytes;
	uint64_t opened_ns;
	unsigned port_step; /* the same on all ranks */

	/* Written by udp_status.c. */
	/* [node]; owned, but for the stranger, to which all entries point until
	 * a STATUS comes from the node or goes to it: it has heard and said
	 * nothing, and stays so. */
	struct udp_peer **peers;
	struct udp_peer stranger;
	/* [node]: where the node's first socket is, as guessed, and then as
	 * each STATUS tells; owned. */
	uint16_t *control_ports;
	/* The offer of a status page, and behind it the hello. */
	uint8_t hello[EXCHANGE_APPLICATION_BYTES_MAX];
	size_t hello_bytes;    /* without the offer */
	struct udp_page *page; /* NULL: there is none, or not yet */
	bool awaits_page;      /* until rank 0's offer comes */

	/* Written by udp_mover.c. */
	struct udp_mover *movers; /* [mover_count]; owned */
	unsigned mover_count;
	/* Who holds it has the state, this struct; not used by one mover. */
	pthread_mutex_t lock;
	bool is_taken;	     /* the rank's own thread has taken it once */
	unsigned lent_count; /* movers that have lent the state */
	bool awaits_lent;    /* the rank's own thread waits for these */
	bool movers_end;
	/* Written by udp.c. */
	/* The rank's own thread does not lend the state even while it sends. */
	bool keeps_state;

	/* Written by udp_send.c. */
	uint32_t round;		     /* rounds sent */
	uint32_t rounds_handed_over; /* sent or nearly: as others are told */
	uint64_t round_ns; /* the next round waits since then; 0: it does not */
};

static inline struct udp *udp_of(struct exchange *exchange)
{
	return (struct udp *)exchange;
}

static inline const struct udp *udp_of_const(const struct exchange *exchange)
{
	return (const struct udp *)exchange;
}

/* --- udp_join.c -------------------------------------------------------------
 */

/* Addresses, sockets and peers.  0 or -errno with *failure filled. */
int udp_join_open(struct udp *x, struct failure *failure);
/* Safe before udp_join_open(), and after a part of it. */
void udp_join_close(struct udp *x);

/* --- udp_status.c -----------------------------------------------------------
 */

/* Know nobody yet.  Returns 0 or -ENOMEM. */
int udp_status_open(struct udp *x);
void udp_status_close(struct udp *x);
/* The node's first socket may have this port. */
void udp_status_guess(struct udp *x, unsigned node, uint16_t port);
/* The node's state, to be written.  Without memory for it this rank fails, and
 * what is written is forgotten. */
struct udp_peer *udp_peer_of(struct udp *x, unsigned node);
/* Send the first STATUS. */
void udp_status_say_hello(struct udp *x);
/* Forget what peers have said of the last epoch. */
void udp_status_begin(struct udp *x);
/* Send STATUS to one peer, or to EXCHANGE_ALL, with flags of enum
 * udp_wire_flag. */
void udp_status_send(struct udp *x, unsigned node, uint32_t flags);
/* The same twice: a list of gaps was served.  This rank says so once, and only
 * where datagrams are lost. */
void udp_status_send_twice(struct udp *x, unsigned node);
/* DATA of our collective has come from the node, with flags of enum
 * udp_wire_data_flag. */
void udp_status_hear_data(struct udp *x, unsigned node, uint16_t flags);
/* Send the list of segments that are missing, twice. */
void udp_status_send_gaps(struct udp *x, unsigned node);
/* Tell the mover's peers of the collective what we announce. */
void udp_status_announce(struct udp_mover *mover);
/* Take all STATUS that has come to the mover.  True if there was any. */
bool udp_status_receive(struct udp_mover *mover);
/* The fewest STATUS that must come before we can go on, apart from urgent ones
 * and from DATA, which wake us anyway. */
unsigned udp_status_needed(const struct udp *x);
/* The node answers from a later collective, but for the deadline it has not
 * told what it announced for ours. */
bool udp_status_is_stuck(struct udp *x, unsigned node, uint64_t now_ns);

/* --- udp_send.c -------------------------------------------------------------
 */

void udp_send_begin(struct udp *x);
/* Send some; true if something was sent. */
bool udp_send_some(struct udp_mover *mover, uint64_t now_ns);
/* The node whose turn must end before our next round begins; the own rank: we
 * wait for none. */
unsigned udp_send_waits_for(const struct udp *x);
/* There is more for the node, but it must first let us send it. */
bool udp_send_awaits_grant(const struct udp *x, unsigned node);
/* DATA is still to be made for the node, and will tell it whether we have all
 * of its message. */
bool udp_send_will_tell(const struct udp *x, unsigned node);
/* The node answers, but for the deadline it has not become ready, taken more of
 * our message, or let us send more of it. */
bool udp_send_is_stuck(struct udp *x, unsigned node, uint64_t now_ns);

/* --- udp_receive.c ----------------------------------------------------------
 */

void udp_receive_begin(struct udp *x);
/* All have announced: keep count of their messages.  0 or -errno. */
int udp_receive_prepare(struct exchange *exchange);
/* Then tell the ranks that wait for that, and that cannot know it by our DATA.
 */
void udp_receive_ready(struct exchange *exchange);
/* Take some of what has arrived; true if there was any. */
bool udp_receive_some(struct udp_mover *mover, uint64_t now_ns);
/* Ask the mover's peers for gaps that are not being filled already; returns
 * when to look again. */
uint64_t udp_receive_request_gaps(struct udp_mover *mover, uint64_t now_ns);
/* The node answers, but for the deadline nothing has come of what it says that
 * it has sent, and sent again. */
bool udp_receive_is_stuck(struct udp *x, unsigned node, uint64_t now_ns);

/* --- udp_mover.c ------------------------------------------------------------
 */

/* Make movers without sockets.  Returns 0, or -errno with *failure filled;
 * then, too, udp_mover_close() is to be called. */
int udp_mover_open(struct udp *x, struct failure *failure);
/* The other movers begin to work; the caller has the state from now on.
 * Returns 0, or -errno with *failure filled. */
int udp_mover_start(struct udp *x, void (*work)(void *mover),
		    struct failure *failure);
/* Wait until the other movers have ended. */
void udp_mover_stop(struct exchange *exchange);
void udp_mover_close(struct udp *x);
/* The mover that has STATUS and DATA from the node, and the one that sends DATA
 * to it: in rounds, which go to one node after the other, mover 0. */
struct udp_mover *udp_mover_from(const struct udp *x, unsigned node);
struct udp_mover *udp_mover_to(const struct udp *x, unsigned node);
/* Bytes of our message to the node that it may have: also those that a mover
 * sends right now. */
uint64_t udp_mover_sent_bytes(const struct udp *x, unsigned node);
/* The caller, who has the state (struct udp), lends it to other threads while
 * it copies bytes, or sends or takes a datagram.  As it takes the state back,
 * the collective is the same, since that settles (udp_mover_settle()) before it
 * begins and ends; but there may be a failure. */
void udp_mover_lend_state(struct udp *x);
void udp_mover_retake_state(struct udp *x);
/* The mover begins to look for what there is to do. */
void udp_mover_begin_step(struct udp_mover *mover);
/* The mover gives the state away for a sleep, and takes it again.  False: the
 * mover is wanted and must not sleep, and has the state still. */
bool udp_mover_lie_down(struct udp_mover *mover);
void udp_mover_get_up(struct udp_mover *mover);
/* The mover sleeps no longer, or not before it has done another step. */
void udp_mover_wake(struct udp_mover *mover);
void udp_mover_wake_all(struct udp *x);
/* The rank's own thread waits until no mover copies bytes. */
void udp_mover_settle(struct exchange *exchange);
/* Let the collective compute, and the other movers move. */
bool udp_mover_compute(struct exchange *exchange);

/* --- small questions --------------------------------------------------------
 */

static inline unsigned udp_node_count(const struct udp *x)
{
	return exchange_count(&x->base);
}

static inline unsigned udp_own(const struct udp *x)
{
	return exchange_own(&x->base);
}

/* May DATA be received and sent?  After a failure the collective's functions
 * are not to be called any more. */
static inline bool udp_may_move(const struct udp *x)
{
	return x->base.is_prepared && !x->base.failed.any;
}

/* The node's socket of this port: on the host that the list of ranks has. */
static inline struct address udp_address(const struct udp *x, unsigned node,
					 uint16_t port)
{
	struct address address = x->base.rank->addresses[node];

	address_set_port(&address, port);
	return address;
}

/* The peer has all of our message.  An empty one needs no acknowledgement: if
 * the peer lacks the announcement, it asks for it.  But where only a group
 * meets, the peer must have said that it is ready. */
static inline bool udp_is_acked(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = x->peers[node];

	return node == udp_own(x) || peer->heard.epoch > x->base.epoch ||
	       (peer->out.byte_count == 0 && x->base.all_meet) ||
	       (peer->heard.ready &&
		peer->heard.prefix_bytes >= peer->out.byte_count);
}

#endif /* UDP_STATE_H */
