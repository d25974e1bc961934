/*
 * liveness.c - tell when a silent peer is queried, and when it is given up
 */
#include "exchange/liveness.h"

#include "base/base.h"

/* Keep-alive queries per deadline to a peer from which nothing is urgent. */
#define KEEP_ALIVE_QUERIES 16
/* A peer that is silent for that part of the deadline does not only answer
 * late: several answers in a row are missing. */
#define AWAY_PART 4
/* A query goes out after an interval and one of so many parts of a quarter of
 * it. */
#define SPREAD_PARTS 16
/* An odd number whose bits are as good as random: 2^64 by the golden ratio. */
#define MIXER ((uint64_t)0x9e3779b97f4a7c15)

void liveness_rest(struct liveness *peer)
{
	peer->waiting_since_ns = 0;
}

bool liveness_is_lost(struct liveness *peer, uint64_t deadline_ns,
		      uint64_t now_ns)
{
	if (peer->waiting_since_ns == 0)
		peer->waiting_since_ns = now_ns;
	return now_ns > MAX(peer->heard_ns, peer->waiting_since_ns) +
				deadline_ns &&
	       now_ns > peer->quiet_until_ns;
}

/* An answer that brings no progress counts as none: the interval grows. */
static void choose_interval(struct liveness *peer, bool urgent,
			    uint64_t first_ns, uint64_t deadline_ns,
			    uint64_t since_ns)
{
	if (!urgent)
		peer->query_interval_ns = deadline_ns / KEEP_ALIVE_QUERIES;
	else if (since_ns > peer->last_query_ns)
		peer->query_interval_ns = first_ns;
	else
		peer->query_interval_ns =
			MIN(peer->query_interval_ns, LIVENESS_QUERY_NS_MAX);
}

/* The end of the interval that began at from_ns, and a part of it more that
 * differs from peer to peer and from query to query.  It is one of a few parts,
 * so that a rank that waits for thousands wakes up as few times. */
static uint64_t due_ns(const struct liveness *peer, unsigned number,
		       uint64_t from_ns)
{
	uint64_t drawn = (from_ns ^ (uint64_t)number << 32) * MIXER;

	drawn = (drawn ^ drawn >> 32) * MIXER >> 32;
	return from_ns + peer->query_interval_ns +
	       drawn % SPREAD_PARTS * peer->query_interval_ns /
		       (4 * SPREAD_PARTS);
}

bool liveness_wants_query(struct liveness *peer, unsigned number, bool urgent,
			  uint64_t first_ns, uint64_t deadline_ns,
			  uint64_t now_ns, uint64_t *until_ns)
{
	uint64_t since_ns = MAX(peer->progress_ns, peer->waiting_since_ns);

	choose_interval(peer, urgent, first_ns, deadline_ns, since_ns);
	*until_ns = due_ns(peer, number, MAX(since_ns, peer->last_query_ns));
	if (now_ns < *until_ns)
		return false;
	peer->last_query_ns = now_ns;
	peer->query_interval_ns =
		MIN(2 * peer->query_interval_ns, LIVENESS_QUERY_NS_MAX);
	*until_ns = due_ns(peer, number, now_ns);
	return true;
}

bool debt_is_overdue(struct debt *debt, bool owes, uint64_t paid,
		     uint64_t heard_ns, uint64_t deadline_ns, uint64_t now_ns)
{
	uint64_t since_ns = MIN(heard_ns, debt->looked_ns);
	bool was_away = now_ns > since_ns + deadline_ns / AWAY_PART;

	debt->looked_ns = now_ns;
	if (!owes || was_away || paid != debt->paid) {
		debt->since_ns = now_ns;
		debt->paid = paid;
	}
	return now_ns > debt->since_ns + deadline_ns;
}
