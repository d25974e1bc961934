/*
 * liveness.h - is a peer that we wait for alive, and when to query it
 *
 * A peer that has been silent for the deadline is lost, unless it has announced
 * a delay.
 *
 * A query is a STATUS that asks for one in return.  The first goes out when a
 * peer that we wait for has been silent for a while; the time to the next one
 * doubles.  Each time is drawn from an interval and a quarter more: if a rank
 * asked all others at the same moments, a socket with room for a few answers
 * would drop those of the same ranks each time.  Over a transport that loses
 * nothing, ranks tell from time to time that they are alive, and nothing is
 * queried.
 *
 * A peer that answers may still not get on: what it says that it has sent never
 * comes, or it takes nothing of what was sent to it, as behind a link that
 * drops long datagrams.  That is a debt, and is overdue after the deadline.  A
 * peer that computes, reads, or waits for a third one owes nothing.
 *
 * One struct for each peer, all times by clock_now_ns().  Pure: the caller
 * reads the clock, sends the query, and gives up the peer.
 */
#ifndef LIVENESS_H
#define LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

/* The longest interval between two queries that are urgent. */
#define LIVENESS_QUERY_NS_MAX ((uint64_t)64000000)

struct liveness {
	/* The last STATUS or DATA came then, or the own rank was away. */
	uint64_t heard_ns;
	/* The peer has announced that it may be silent until then. */
	uint64_t quiet_until_ns;
	/* The peer last came further, or DATA came from it. */
	uint64_t progress_ns;
	uint64_t waiting_since_ns; /* 0: we do not wait for this peer */
	uint64_t last_query_ns, query_interval_ns;
};

struct debt {
	uint64_t since_ns;  /* it is owed, and no part was paid */
	uint64_t looked_ns; /* the last call */
	uint64_t paid;	    /* in all, at that time */
};

/* Something has come from this peer.  A thread that was away may say so late.
 */
static inline void liveness_hear(struct liveness *peer, uint64_t now_ns)
{
	peer->heard_ns = MAX(peer->heard_ns, now_ns);
}

/* A STATUS has come, in which the peer announces this delay. */
static inline void liveness_hear_delay(struct liveness *peer, uint32_t delay_ms,
				       uint64_t now_ns)
{
	liveness_hear(peer, now_ns);
	peer->quiet_until_ns = now_ns + delay_ms * (uint64_t)1000000;
}

/* The peer has come further. */
static inline void liveness_progress(struct liveness *peer, uint64_t now_ns)
{
	peer->progress_ns = MAX(peer->progress_ns, now_ns);
}

/* We do not wait for this peer now. */
void liveness_rest(struct liveness *peer);

/* We wait for this peer: has it been silent for too long? */
bool liveness_is_lost(struct liveness *peer, uint64_t deadline_ns,
		      uint64_t now_ns);

/* The peer, which has that number, is waited for, and not lost: is a query to
 * be sent now?  urgent: a lost STATUS may keep something from us; else it is
 * just not the peer's turn.  first_ns: when to send the first urgent query.
 * *until_ns: when to look again. */
bool liveness_wants_query(struct liveness *peer, unsigned number, bool urgent,
			  uint64_t first_ns, uint64_t deadline_ns,
			  uint64_t now_ns, uint64_t *until_ns);

/*
 * True if the peer has owed us something for the deadline, has answered all the
 * while, and has paid nothing of it.  paid grows with each part.  If the peer
 * was away for a quarter of the deadline, as it may be, or we have not looked
 * for as long, the time begins anew.
 */
bool debt_is_overdue(struct debt *debt, bool owes, uint64_t paid,
		     uint64_t heard_ns, uint64_t deadline_ns, uint64_t now_ns);

#endif /* LIVENESS_H */
