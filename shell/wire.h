/*
 * wire.h - the command datagrams between blinksh and blinkd
 *
 * Every datagram has one of two lengths, and a reply has the length of its
 * request or the shorter one, so that a daemon cannot be used to multiply
 * traffic.  All integers are little endian.  The receiver checks length, tag,
 * version and fields in this order, and drops in silence a datagram that fails.
 *
 *        0 +--------------------------------+
 *          | tag: BLAKE2b-256, keyed        |  over all that follows
 *       32 +---------+------+-------+-------+
 *          | version | type | flags | zero  |  1 byte each
 *       36 +---------+------+-------+-------+
 *          | body_bytes                     |  u32: without the zeros behind
 *       40 +--------------------------------+
 *          | node: 16 bytes                 |  the daemon's address and port,
 *          |                                |  hashed as the client writes them
 *       56 +--------------------------------+
 *          | session: 16 bytes              |  the daemon draws it; 0 in HELLO
 *       72 +--------------------------------+
 *          | counter                        |  u64: counts the requests of the
 *          |                                |  session; a reply repeats it
 *       80 +--------------------------------+
 *          | body                           |  depends on type; zeros follow
 *   256 or |                                |
 *     1200 +--------------------------------+
 *
 * Replay (after WireGuard and munge, without a clock): HELLO asks the daemon
 * for a session, a random number that it draws afresh for each HELLO; all other
 * requests carry it and a counter that the daemon accepts once (replay.h).  A
 * daemon that restarts knows no old session.  The direction is part of the
 * type, and the tag covers the destination: a recorded datagram is of no use
 * anywhere.
 *
 * A daemon keeps few sessions.  It answers a request of an unknown session by
 * NO_SESSION, with the session and the counter of the request and of the
 * shorter length, and does nothing else; the client says HELLO again and
 * repeats its request.  A request that was recorded, and is sent again when the
 * daemon has forgotten its session, gets that answer, too.  Its sender learns
 * that the session is forgotten; the owner of a forged address gets no more
 * bytes than were sent to the daemon; and the client accepts the answer only
 * while it uses that session, when the answer is true.
 *
 * SESSION carries the daemon's epoch, which the daemon draws when it begins.
 * Jobs end with their daemon.  A client that has sent a START, and then gets a
 * session of another epoch, asks for the state of the job (RENEW) and never
 * sends that START again.
 */
#ifndef WIRE_H
#define WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/keyfile.h"

struct le32 {
	uint8_t bytes[4];
};
struct le64 {
	uint8_t bytes[8];
};

#define WIRE_VERSION 2
#define WIRE_SHORT_BYTES 256
#define WIRE_LONG_BYTES 1200
#define WIRE_TAG_BYTES 32
#define WIRE_KEY_BYTES KEYFILE_KEY_BYTES
#define WIRE_NODE_BYTES 16
#define WIRE_SESSION_BYTES 16
#define WIRE_EPOCH_BYTES 16
#define WIRE_JOB_BYTES 16
#define WIRE_SECRET_BYTES 32 /* of a job; it is never sent */
#define WIRE_HEADER_BYTES 80
#define WIRE_SHORT_BODY_BYTES (WIRE_SHORT_BYTES - WIRE_HEADER_BYTES)
#define WIRE_LONG_BODY_BYTES (WIRE_LONG_BYTES - WIRE_HEADER_BYTES)

/* Requests are odd, replies even: a reflected datagram is of the wrong kind. */
enum wire_type {
	WIRE_HELLO = 1,	       /* -> SESSION; body: wire_hello */
	WIRE_SESSION = 2,      /* body: wire_session */
	WIRE_START = 3,	       /* -> JOB; body: wire_start and arguments */
	WIRE_JOB = 4,	       /* body: wire_job and the ends of the output */
	WIRE_RENEW = 5,	       /* -> JOB: its state now; renews the lease */
	WIRE_CANCEL = 7,       /* -> JOB: kill all its processes */
	WIRE_OUTPUT = 9,       /* -> OUTPUT_PART; body: wire_output; long */
	WIRE_OUTPUT_PART = 10, /* body: wire_output and bytes */
	WIRE_STATUS = 11,      /* -> NODE; body: none */
	WIRE_NODE = 12,	       /* body: wire_node_status */
	WIRE_NO_SESSION = 14,  /* reply to any but HELLO; body: none */
};

static inline bool wire_is_request(enum wire_type type)
{
	return type & 1;
}

struct wire_header {
	uint8_t tag[WIRE_TAG_BYTES];
	uint8_t version;
	uint8_t type;
	uint8_t flags; /* 0 */
	uint8_t zero;
	struct le32 body_bytes;
	uint8_t node[WIRE_NODE_BYTES];
	uint8_t session[WIRE_SESSION_BYTES];
	struct le64 counter;
};
static_assert(sizeof(struct wire_header) == WIRE_HEADER_BYTES, "no padding");

struct wire_hello {
	uint8_t nonce[16]; /* fresh; repeated in the reply */
};

struct wire_session {
	uint8_t nonce[16];
	uint8_t session[WIRE_SESSION_BYTES];
	uint8_t epoch[WIRE_EPOCH_BYTES]; /* of this run of the daemon */
};

/* The arguments follow, each ended by a NUL; argument 0 is an absolute path. In
 * them %r, %n, %h and %% stand for rank, node count, host and '%'.  Behind
 * them, without NULs, follow a list of all hosts in the order of their ranks,
 * as hostlist.h has it, and the host of this node. */
struct wire_start {
	uint8_t job[WIRE_JOB_BYTES]; /* drawn by the client; a second START of
				      * the same job acts as a RENEW */
	struct le32 rank;
	struct le32 node_count;
	struct le32 lease_ms;	/* the job is killed if not renewed for it */
	struct le32 timeout_ms; /* the job is killed after it; 0: never */
	struct le32 argument_count;
	struct le32 hosts_bytes; /* of the list; 0: it did not fit */
	struct le32 host_bytes;	 /* of %h */
};

/* The body of RENEW and CANCEL. */
struct wire_job_request {
	uint8_t job[WIRE_JOB_BYTES];
};

enum wire_job_state {
	WIRE_JOB_UNKNOWN = 0, /* not started by this run of the daemon, or
			       * longer ago than the last HISTORY_JOBS */
	WIRE_JOB_RUNNING = 1,
	WIRE_JOB_EXITED = 2,	/* code: exit status */
	WIRE_JOB_KILLED = 3,	/* code: signal, not sent by the daemon */
	WIRE_JOB_TIMED_OUT = 4, /* the daemon killed it after timeout_ms */
	WIRE_JOB_LEASE_EXPIRED = 5,
	WIRE_JOB_CANCELLED = 6,
	WIRE_JOB_REFUSED = 7, /* code: errno; EPERM: the program is not allowed,
			       * EAGAIN: too many jobs run, else exec failed */
	WIRE_JOB_FORGOTTEN = 8, /* the job has ended or was refused here, and
				 * the daemon no longer knows how */
};

/* The last stdout_bytes of stdout follow, and then the last stderr_bytes of
 * stderr: as many as fit, and of stderr all that fit before any of stdout. */
struct wire_job {
	uint8_t job[WIRE_JOB_BYTES];
	struct le32 state;
	struct le32 code;
	struct le64 elapsed_ns; /* from before the start to after the reap */
	struct le64 user_ns;
	struct le64 system_ns;
	struct le64 max_rss_bytes;
	struct le64 stdout_total; /* bytes the job has written */
	struct le64 stderr_total;
	struct le32 stdout_bytes; /* in this datagram: the last ones */
	struct le32 stderr_bytes;
};

/* OUTPUT asks for bytes from offset on of what the daemon has kept. OUTPUT_PART
 * repeats the fields, with the number of bytes that follow. */
struct wire_output {
	uint8_t job[WIRE_JOB_BYTES];
	struct le32 stream; /* 1 stdout, 2 stderr */
	struct le32 bytes;  /* in this datagram */
	struct le64 offset; /* in all that the job has written */
};

struct wire_node_status {
	struct le64 uptime_ns;
	struct le64 started; /* jobs */
	struct le64 running;
	/* Counts of refused datagrams, by the first check that they failed. */
	struct le64 refused_length;
	struct le64 refused_tag;
	struct le64 refused_replay; /* session or counter */
	struct le64 refused_fields;
	struct le64 resident_bytes;
};

static_assert(sizeof(struct wire_job) + sizeof(struct wire_header) <=
		      WIRE_SHORT_BYTES,
	      "a reply fits into the shortest request");
static_assert(sizeof(struct wire_node_status) + sizeof(struct wire_header) <=
		      WIRE_SHORT_BYTES,
	      "a reply fits into the shortest request");

#endif /* WIRE_H */
