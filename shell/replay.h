/*
 * replay.h - sessions, and which of their counters were seen
 *
 * The window is that of RFC 6479, as in WireGuard: a counter is accepted once,
 * in any order, unless it is REPLAY_WINDOW or more behind the highest one, or
 * so far ahead of it that no client of ours can have counted there.
 *
 * The daemon draws sessions at random, so that no datagram that was recorded
 * before a restart, or sent to another daemon, belongs to one.  HELLOs are not
 * bound to a session: the nonces of the last HELLOs are remembered, so that a
 * repeated HELLO gets no reply; one that is older gets a session that no client
 * uses.
 *
 * A session that is held never makes room for another.  The caller holds less
 * than REPLAY_SESSIONS - REPLAY_SESSIONS_FRESH at the same time.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "shell/wire.h"

#define REPLAY_WINDOW 1024
/* Hours of a client's retries, all of them lost. */
#define REPLAY_AHEAD (1 << 20)
#define REPLAY_SESSIONS 256 /* the least recently used one makes room */
#define REPLAY_NONCES 4096

/* Sessions that may be fresh, opened but never used.  When there are more, the
 * oldest of them makes room and not one in use, so that old HELLOs that are
 * sent again cannot push out the clients that prove that they have the key. */
#define REPLAY_SESSIONS_FRESH 64

struct replay_session {
	uint8_t session[WIRE_SESSION_BYTES];
	bool used;
	uint32_t holds;
	uint64_t last_use;		   /* replay.accepted at that time */
	uint64_t highest;		   /* 0: fresh */
	uint64_t seen[REPLAY_WINDOW / 64]; /* bit counter % REPLAY_WINDOW */
};

struct replay {
	uint8_t epoch[WIRE_EPOCH_BYTES]; /* drawn by replay_init() */
	struct replay_session sessions[REPLAY_SESSIONS];
	uint8_t nonces[REPLAY_NONCES][16];
	uint64_t nonce_count; /* ever */
	uint64_t accepted;    /* HELLOs and counters, ever */
	uint32_t latest;      /* the index of the session that was found last */
};

void replay_init(struct replay *replay);

/* Opens a session for this nonce; NULL if the nonce was seen. */
const uint8_t *replay_open_session(struct replay *replay,
				   const uint8_t nonce[16]);

enum replay_verdict {
	REPLAY_ACCEPTED,
	REPLAY_REFUSED,	   /* the counter was seen, or is out of the window */
	REPLAY_NO_SESSION, /* the session was never opened, or made room */
};

/* Accepts each counter of a session once; counters begin at 1. */
enum replay_verdict replay_accept(struct replay *replay,
				  const uint8_t session[WIRE_SESSION_BYTES],
				  uint64_t counter);

/* Keeps a session that is known from making room, until it is released as often
 * as it was held. */
void replay_hold(struct replay *replay,
		 const uint8_t session[WIRE_SESSION_BYTES]);
void replay_release(struct replay *replay,
		    const uint8_t session[WIRE_SESSION_BYTES]);

#endif /* REPLAY_H */
