/*
 * udp_liveness.h - is a peer that we wait for alive, and when to query it
 *
 * A query is a STATUS that asks for one in return.  The first goes out when a
 * peer that we wait for has been silent for a while; the time to the next one
 * doubles.  A peer that has been silent for the deadline is lost, unless it has
 * announced a delay.
 *
 * A peer that answers may still not get on: what it says that it has sent never
 * comes, or it takes nothing of what was sent to it, as behind a link that
 * drops long datagrams.  That is a debt, and is overdue after the deadline.  A
 * peer that computes, reads, or waits for a third one owes nothing.
 *
 * One struct for each peer, all times by clock_now_ns().  Pure: the caller
 * reads the clock, sends the query, and gives up the peer.
 */
#ifndef UDP_LIVENESS_H
#define UDP_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/* The longest time between two queries that are urgent. */
#define UDP_QUERY_NS_MAX ((uint64_t)64000000)

struct udp_liveness {
	/* The last STATUS or DATA came then.  Written by udp_status.c and
	 * udp_receive.c; by udp.c when the own rank was away. */
	uint64_t heard_ns;
	/* The peer has announced that it may be silent until then: written by
	 * udp_status.c with each STATUS. */
	uint64_t quiet_until_ns;
	/* The peer last came further, or DATA came from it: written by
	 * udp_status.c and udp_receive.c. */
	uint64_t progress_ns;
	/* The rest is udp_liveness.c's. */
	uint64_t waiting_since_ns; /* 0: we do not wait for this peer */
	uint64_t last_query_ns, query_interval_ns;
};

struct udp_debt {
	uint64_t since_ns;  /* it is owed, and no part was paid */
	uint64_t looked_ns; /* the last call */
	uint64_t paid;	    /* in all, at that time */
};

enum udp_liveness_step {
	UDP_LIVENESS_WAIT,  /* nothing to do before *until_ns */
	UDP_LIVENESS_QUERY, /* send a query now */
	UDP_LIVENESS_LOST,  /* silent for too long */
};

/* We do not wait for this peer now. */
void udp_liveness_rest(struct udp_liveness *peer);

/* We wait for this peer: what is to be done?  urgent: a lost STATUS may keep
 * something from us; else it is just not the peer's turn.  first_ns: when to
 * send the first urgent query.  *until_ns: when to look again. */
enum udp_liveness_step udp_liveness_wait(struct udp_liveness *peer, bool urgent,
					 uint64_t first_ns,
					 uint64_t deadline_ns, uint64_t now_ns,
					 uint64_t *until_ns);

/*
 * True if the peer has owed us something for the deadline, has answered all the
 * while, and has paid nothing of it.  paid grows with each part.  If the peer
 * was away for a quarter of the deadline, as it may be, or we have not looked
 * for as long, the time begins anew.
 */
bool udp_debt_is_overdue(struct udp_debt *debt, bool owes, uint64_t paid,
			 uint64_t heard_ns, uint64_t deadline_ns,
			 uint64_t now_ns);

#endif /* UDP_LIVENESS_H */
