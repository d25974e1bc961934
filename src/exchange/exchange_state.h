/*
 * exchange_state.h - a session of ranks, and what a transport does for it;
 * private to the exchange
 *
 * Calls go from the left to the right only; "=>" are calls through a table:
 *
 *      exchange_grid.c  =>  exchange.c  =>  a transport: udp/, mpi/
 *
 *      exchange.c, a transport  ->  exchange_lengths.c   what is announced
 *                                   exchange_peers.c     what else is heard
 *                                   exchange_failure.c   the first failure
 *                                   liveness.c           silence
 *
 * A transport embeds a struct exchange, fills a struct exchange_transport, and
 * hands what it hears from other ranks to the functions below.
 */
#ifndef EXCHANGE_STATE_H
#define EXCHANGE_STATE_H

#include <limits.h>

#include "base/base.h"
#include "exchange/exchange.h"
#include "exchange/liveness.h"

/* More than EXCHANGE_LEAD_MAX, and a power of two. */
#define EXCHANGE_ANNOUNCED 4
/* This number in place of a node's means all other ranks. */
#define EXCHANGE_ALL UINT_MAX
/* A rank that leaves has come to this phase. */
#define EXCHANGE_PHASE_GONE UINT32_MAX

/* What has changed when a rank tells where it stands.  A transport whose STATUS
 * has all of the state need not look at it. */
enum exchange_news {
	EXCHANGE_HELLO = 1,
	EXCHANGE_LENGTHS, /* of the messages of the collective that begins */
	EXCHANGE_PHASE,	  /* with the application payload, to rank 0 */
	EXCHANGE_TOLD,	  /* the application payload */
	EXCHANGE_ALIVE,	  /* the delay */
	EXCHANGE_FAILED,
};

/* What moves STATUS and DATA between the ranks.  No function waits but wait(),
 * tell_failure() and leave(). */
struct exchange_transport {
	const char *name; /* exchange_transport() */

	/* --- STATUS --- */

	/* Tell node, or EXCHANGE_ALL. */
	void (*tell)(struct exchange *exchange, unsigned node,
		     enum exchange_news news);
	/* Take all STATUS that has come to the caller's thread.  True if there
	 * was any. */
	bool (*hear)(struct exchange *exchange, uint64_t now_ns);

	/* --- DATA --- */

	/* Or NULL.  A collective begins, for which .ring has been formed. */
	void (*begin)(struct exchange *exchange);
	/* All ranks of the ring have announced: prepare for what they have.
	 * Returns 0, or -errno. */
	int (*prepare)(struct exchange *exchange);
	/* Or NULL.  Messages can come: tell those of the ring that wait for it.
	 */
	void (*ready)(struct exchange *exchange);
	/* Move what this thread can move now.  True if anything was; else
	 * *until_ns may be lowered to when to come again. */
	bool (*move)(struct exchange *exchange, uint64_t now_ns,
		     uint64_t *until_ns);
	/* Is there something of the collective, beside the lengths, that only
	 * the node can give us or take from us? */
	bool (*waits_for)(const struct exchange *exchange, unsigned node);
	/* Have all others got all of our messages? */
	bool (*is_through)(const struct exchange *exchange);

	/* --- waiting --- */

	/* Or NULL.  We wait for the node: query it if it is time to, or give it
	 * up.  Returns when to come again. */
	uint64_t (*watch)(struct exchange *exchange, unsigned node,
			  uint64_t now_ns);
	/* Nothing can be done before until_ns unless something comes. */
	void (*wait)(struct exchange *exchange, uint64_t until_ns);
	/* Or NULL.  There is something to do after a wait. */
	void (*end_wait)(struct exchange *exchange);
	/* exchange_settle().  Or NULL: no thread but the caller's moves
	 * anything. */
	void (*settle)(struct exchange *exchange);
	/* Or NULL: just call it.  Let the collective's idle() compute. */
	bool (*compute)(struct exchange *exchange);

	/* --- the rest --- */

	/* Tell all other ranks what .failed has; a few, if it is told. */
	void (*tell_failure)(struct exchange *exchange);
	void (*leave)(struct exchange *exchange);
	/* Or NULL: ranks of one machine have one clock, and those of others are
	 * not compared. */
	int64_t (*clock_offset_ns)(const struct exchange *exchange,
				   unsigned node, uint64_t *bound_ns);
	/* Or NULL.  No other thread touches the exchange from now on. */
	void (*stop)(struct exchange *exchange);
	/* Free the struct that embeds the exchange. */
	void (*close)(struct exchange *exchange);
};

/* How collectives go: straight, or by a grid.  Each function does what the one
 * of exchange.h does that is named exchange_ and then so. */
struct exchange_ops {
	int (*begin)(struct exchange *exchange,
		     const struct exchange_collective *collective,
		     struct failure *failure);
	uint64_t (*bytes)(const struct exchange *exchange, unsigned source,
			  unsigned destination);
	int (*receive)(struct exchange *exchange, struct failure *failure);
	int (*finish)(struct exchange *exchange, struct failure *failure);
	void (*close)(struct exchange *exchange);
};

/* The first failure that this rank has noticed or has been told of.
 * Written by exchange_failure.c, once. */
struct exchange_failed {
	bool any;
	bool is_told;		/* by another rank, which tells others, too */
	unsigned node;		/* at fault; the own rank: this one */
	struct failure failure; /* as all other ranks are told */
	char what[320];		/* failure.what: "rank N (NAME)" */
	/* What the own caller is told instead, if the failure is this rank's
	 * own; else .status is EXIT_DONE. */
	struct failure own;
};

/* What a rank has announced for a collective. */
struct exchange_announced {
	/* Written by exchange_lengths.c. */
	uint32_t epoch;	     /* of the collective; 0: nothing was announced */
	uint64_t byte_count; /* of its message to us */
	bool has_totals;     /* of its messages to all ranks: */

	/* Written by exchange_peers.c: where exchange_lengths.c notes these. */
	uint64_t *totals; /* [node], in the exchange's totals */
};

/* What a rank has said of itself.
 * Written by exchange_peers.c. */
struct exchange_said {
	uint8_t hello[EXCHANGE_HELLO_BYTES_MAX];
	uint8_t application[EXCHANGE_APPLICATION_BYTES_MAX];
};

/* A rank, also the own one. */
struct exchange_peer {
	/* Written by exchange.c. */
	bool meets; /* it is of the ring */

	/* Written by exchange_peers.c. */
	bool is_here; /* it has been heard */
	uint32_t phase;
	struct exchange_said *said; /* NULL: nothing; owned */
	size_t hello_bytes;
	size_t application_bytes;

	/* Written by exchange_lengths.c. */
	/* [epoch % EXCHANGE_ANNOUNCED], since it may be ahead of us. */
	struct exchange_announced announced[EXCHANGE_ANNOUNCED];

	/* Written by liveness.c. */
	struct liveness liveness;
};

/* The first member of each transport's struct. */
struct exchange {
	/* Written by exchange.c. */
	/* These come from the options, as the exchange is opened. */
	const struct exchange_transport *transport;
	const struct rank *rank;
	uint64_t deadline_ns;
	struct trace_lane *lane; /* or NULL */
	bool skips_hello;
	bool has_node;
	unsigned node; /* if has_node */
	/* Calls between collectives may change these. */
	bool spins;
	enum exchange_schedule schedule;
	const struct exchange_ops *ops;
	struct exchange_grid
		*grid; /* whose ops they are; NULL: there is none */
	/* The collective at hand. */
	const struct exchange_collective *collective; /* NULL: between them */
	uint32_t epoch; /* its number, from 1; 0: none yet */
	/* The ranks that meet in it, in the order of rounds: the own one, the
	 * next one, ..., the one that precedes the own; owned. */
	unsigned *ring;
	unsigned ring_count;
	bool watches_ring;   /* no other ranks are waited for */
	uint64_t watched_ns; /* when peers were last looked at */
	/* [node]: bytes of our message to it, little endian; owned. */
	uint64_t *lengths;
	uint64_t *receive_bytes; /* [node]: for prepare(); owned */
	bool all_meet;		 /* and not a group */
	bool tells_all;		 /* each rank tells all what it has for all */
	/* The last collective in which all met, before the one at hand.  A rank
	 * for which we had no bytes there may still lack our announcement. */
	struct exchange_before {
		uint32_t epoch; /* 0: there is none */
		bool told_all;
		uint64_t *lengths; /* [node]; owned */
	} before;
	bool is_prepared; /* it can be received and sent, or it has been */
	unsigned in_left; /* messages to us that are not whole yet */
	/* Barriers. */
	uint32_t phase;	       /* as other ranks see it */
	uint32_t phase_wanted; /* see exchange_awaits_phase(); or 0 */
	uint32_t delay_ms;     /* announced until the next barrier */
	uint64_t served_ns;    /* when this rank was last here, and not away */

	/* Written by exchange_peers.c. */
	/* [node]; owned, but for nobody, to which all entries point at first:
	 * exchange_peer_of() puts a peer of its own there.  Of thousands of
	 * ranks a rank may speak with a few. */
	struct exchange_peer **peers;
	struct exchange_peer nobody;
	unsigned here_count; /* of other ranks that have been heard */
	uint64_t *totals;    /* of all announcements of all peers; owned */

	struct exchange_failed failed;

	/* Written by many: the transport, as it opens. */
	/* Steps of one exchange_serve() at most: enough for what a rank may ask
	 * for, but not endless if strangers keep sending. */
	unsigned serve_steps_max;
	uint32_t payload_bytes; /* exchange_payload_bytes() */

	/* Written by many: each file of the transport counts what it does. */
	struct exchange_counters counters;
};

static inline unsigned exchange_own(const struct exchange *exchange)
{
	return exchange->rank->rank;
}

static inline unsigned exchange_count(const struct exchange *exchange)
{
	return exchange->rank->node_count;
}

/* --- exchange.c -------------------------------------------------------------
 */

/* Fill what a transport's struct of zeros begins with.  Returns 0, or -errno
 * with *failure filled; then exchange_close() is to be called. */
int exchange_init(struct exchange *exchange,
		  const struct exchange_transport *transport,
		  const struct exchange_options *options,
		  struct failure *failure);
/* These bytes of fresh memory, which no thread has touched, are a buffer of the
 * network: on the node that the options name. */
void exchange_place(const struct exchange *exchange, void *memory,
		    size_t bytes);
/* All collectives that follow go so; the ops call those that were there. */
void exchange_go_by(struct exchange *exchange, const struct exchange_ops *ops,
		    struct exchange_grid *grid);
/* The message has arrived up to prefix_bytes. */
void exchange_pass_on(struct exchange *exchange, unsigned node,
		      uint64_t prefix_bytes, bool whole);
/* This rank has slept since begin_ns, and meant to until until_ns. */
void exchange_note_sleep(struct exchange *exchange, uint64_t begin_ns,
			 uint64_t until_ns);
/* Does this rank wait for the node to come to phase_wanted?  In barriers rank 0
 * waits for all, and all for rank 0; then ranks leave by a tree. */
bool exchange_awaits_phase(const struct exchange *exchange, unsigned node);
/* Stay, for_ns at most, until the ranks that leave before this one have told it
 * that they do: they may still need an answer.  Returns the rank that stays
 * until this one tells it the same; of rank 0 the result means nothing. */
unsigned exchange_stay(struct exchange *exchange, uint64_t for_ns);
/* Give the node up: "WHAT 5.0 sADVICE", where 5 s is the deadline. */
void exchange_give_up(struct exchange *exchange, unsigned node,
		      const char *what, const char *advice);

/* --- exchange_peers.c -------------------------------------------------------
 */

/* Returns 0 or -ENOMEM. */
int exchange_peers_init(struct exchange *exchange, uint64_t now_ns);
void exchange_peers_fini(struct exchange *exchange);
/* What is known of the node, to be written.  If there is no memory for it, that
 * is this rank's failure, and what is written is forgotten. */
struct exchange_peer *exchange_peer_of(struct exchange *exchange,
				       unsigned node);
/* A STATUS has come from the node, in which it announces this delay. */
void exchange_hear(struct exchange *exchange, unsigned node, uint32_t delay_ms,
		   uint64_t now_ns);
/* Only the first hello counts: what follows from it may be under way. */
void exchange_hear_hello(struct exchange *exchange, unsigned node,
			 const void *hello, size_t byte_count);
/* An application payload takes the place of an earlier one. */
void exchange_hear_payload(struct exchange *exchange, unsigned node,
			   const void *payload, size_t byte_count);
void exchange_hear_phase(struct exchange *exchange, unsigned node,
			 uint32_t phase);
bool exchange_all_are_here(const struct exchange *exchange);

/* --- exchange_lengths.c -----------------------------------------------------
 */

/* Are these neither the one length of the message to us, nor lengths of
 * messages to all ranks, which a rank tells only if they are not too many? */
bool exchange_is_wrong_count(const struct exchange *exchange, unsigned count);
/* The node announces lengths for an epoch, little endian.  False: they do not
 * count.  They count once for each epoch, and not for one that is over: what
 * was made after them must not change. */
bool exchange_hear_lengths(struct exchange *exchange, unsigned node,
			   uint32_t epoch, const uint8_t *lengths,
			   unsigned count);
/* Bytes of the message from source to destination: one is ours, or all ranks
 * have told all. */
uint64_t exchange_message_bytes(const struct exchange *exchange,
				unsigned source, unsigned destination);
/* Are so many bytes from source to destination as the collective allows? */
bool exchange_allows_length(const struct exchange_collective *collective,
			    unsigned source, unsigned destination,
			    uint64_t bytes);
/* The same; if they are not, source is blamed. */
int exchange_check_length(struct exchange *exchange,
			  const struct exchange_collective *collective,
			  unsigned source, unsigned destination, uint64_t bytes,
			  struct failure *failure);
/*
 * All ranks of the ring have announced: are their lengths as the collective
 * allows?  If so, fill receive_bytes[node] and return 0.  Nothing has been
 * allocated by these numbers yet.  If a rank tells all others, all refuse what
 * it announces to any of them.
 */
int exchange_check_lengths(struct exchange *exchange, uint64_t *receive_bytes,
			   struct failure *failure);

/* What the node has announced for our epoch, or for an earlier one. */
static inline const struct exchange_announced *
exchange_announced(const struct exchange *exchange, unsigned node)
{
	return &exchange->peers[node]
			->announced[exchange->epoch % EXCHANGE_ANNOUNCED];
}

static inline bool exchange_has_announced(const struct exchange *exchange,
					  unsigned node)
{
	return exchange_announced(exchange, node)->epoch == exchange->epoch;
}

/* --- exchange_failure.c -----------------------------------------------------
 */

/* Keep this failure, unless there is one already.  node is at fault. */
void exchange_note_failure(struct exchange *exchange, unsigned node,
			   enum exit_status status, const char *why);
/* The same for one that the node tells: the failed node is at fault; if it is
 * none of the job, the node itself. */
void exchange_hear_failure(struct exchange *exchange, unsigned node,
			   unsigned failed, const void *why, size_t byte_count);
/* The same for a failure of this rank: other ranks are told what it is about,
 * and the own caller is told the failure as it is. */
void exchange_note_own_failure(struct exchange *exchange,
			       const struct failure *failure);
/* Fill *failure with the one that is kept.  Returns -EPIPE. */
int exchange_give_failure(const struct exchange *exchange,
			  struct failure *failure);

#endif /* EXCHANGE_STATE_H */
