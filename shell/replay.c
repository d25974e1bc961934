/* replay.c - sessions, and which of their counters were seen */
#include <sodium.h>
#include <string.h>

#include "base/base.h"
#include "shell/replay.h"

void replay_init(struct replay *replay)
{
	memset(replay, 0, sizeof(*replay));
	randombytes_buf(replay->epoch, sizeof(replay->epoch));
}

/* --- sessions ------------------------------------------------------------ */

/* Chooses the session that makes room: see REPLAY_SESSIONS_FRESH.  A session
 * that is held is not fresh. */
static struct replay_session *victim(struct replay *replay)
{
	struct replay_session *fresh = NULL, *proven = NULL;
	unsigned fresh_count = 0;

	for (size_t i = 0; i < REPLAY_SESSIONS; i++) {
		struct replay_session *session = &replay->sessions[i];

		if (!session->used)
			return session;
		if (session->highest == 0) {
			fresh_count++;
			if (!fresh || session->last_use < fresh->last_use)
				fresh = session;
		} else if (session->holds == 0 &&
			   (!proven || session->last_use < proven->last_use)) {
			proven = session;
		}
	}
	if (fresh_count >= REPLAY_SESSIONS_FRESH || !proven)
		return fresh;
	return proven;
}

static bool nonce_was_seen(const struct replay *replay, const uint8_t nonce[16])
{
	uint64_t count = MIN(replay->nonce_count, REPLAY_NONCES);

	for (uint64_t i = 0; i < count; i++)
		if (memcmp(replay->nonces[i], nonce, 16) == 0)
			return true;
	return false;
}

const uint8_t *replay_open_session(struct replay *replay,
				   const uint8_t nonce[16])
{
	struct replay_session *session;

	if (nonce_was_seen(replay, nonce))
		return NULL;
	memcpy(replay->nonces[replay->nonce_count++ % REPLAY_NONCES], nonce,
	       16);
	session = victim(replay);
	*session = (struct replay_session){
		.used = true,
		.last_use = ++replay->accepted,
	};
	randombytes_buf(session->session, sizeof(session->session));
	return session->session;
}

static struct replay_session *find(struct replay *replay,
				   const uint8_t id[WIRE_SESSION_BYTES])
{
	struct replay_session *session = &replay->sessions[replay->latest];

	/* Most often it is the same as before, which saves a walk. */
	if (session->used && memcmp(session->session, id, 16) == 0)
		return session;
	for (uint32_t i = 0; i < REPLAY_SESSIONS; i++) {
		session = &replay->sessions[i];
		if (session->used && memcmp(session->session, id, 16) == 0) {
			replay->latest = i;
			return session;
		}
	}
	return NULL;
}

void replay_hold(struct replay *replay,
		 const uint8_t session[WIRE_SESSION_BYTES])
{
	struct replay_session *found = find(replay, session);

	if (found)
		found->holds++;
}

void replay_release(struct replay *replay,
		    const uint8_t session[WIRE_SESSION_BYTES])
{
	struct replay_session *found = find(replay, session);

	if (found && found->holds > 0)
		found->holds--;
}

/* --- the window of one session ------------------------------------------- */

static uint64_t *word_of(struct replay_session *session, uint64_t counter)
{
	return &session->seen[counter % REPLAY_WINDOW / 64];
}

static uint64_t bit_of(uint64_t counter)
{
	return (uint64_t)1 << (counter % 64);
}

/* Moves the window up to counter.  A counter that leaves the window has the
 * same bit as one that comes in: most often one bit, since clients count by
 * one. */
static void advance(struct replay_session *session, uint64_t counter)
{
	if (counter - session->highest >= REPLAY_WINDOW) {
		memset(session->seen, 0, sizeof(session->seen));
	} else {
		for (uint64_t i = session->highest + 1; i <= counter; i++)
			*word_of(session, i) &= ~bit_of(i);
	}
	session->highest = counter;
}

static bool take(struct replay_session *session, uint64_t counter)
{
	if (counter == 0)
		return false;
	if (counter > session->highest) {
		if (counter - session->highest > REPLAY_AHEAD)
			return false;
		advance(session, counter);
	} else if (session->highest - counter >= REPLAY_WINDOW ||
		   *word_of(session, counter) & bit_of(counter)) {
		return false;
	}
	*word_of(session, counter) |= bit_of(counter);
	return true;
}

enum replay_verdict replay_accept(struct replay *replay,
				  const uint8_t session[WIRE_SESSION_BYTES],
				  uint64_t counter)
{
	struct replay_session *found = find(replay, session);

	if (!found)
		return REPLAY_NO_SESSION;
	if (!take(found, counter))
		return REPLAY_REFUSED;
	found->last_use = ++replay->accepted;
	return REPLAY_ACCEPTED;
}
