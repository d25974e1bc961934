/*
 * client.h - many daemons asked at once over one socket
 *
 * One flat loop, no threads, all memory at the start.  Each node is asked for a
 * session (HELLO), then for what the work wants; a request that gets no reply
 * is sent again, always with a fresh counter or nonce, first after
 * CLIENT_RETRY_NS or four round trips, then after twice the time up to
 * CLIENT_RETRY_NS_MAX.  A reply counts only if its tag is right and it is of
 * the type, node, session and counter of a request that was sent lately; others
 * are counted and forgotten.  A node that is silent for lost_after_ns is lost.
 *
 * A daemon may forget a session, and says so (NO_SESSION): then the node is
 * asked for another, and for what the work wants again.  The time after which
 * it is lost goes on meanwhile.  A session of another epoch shows that the
 * daemon was restarted; what it did not answer before it may have done all the
 * same.
 *
 * ICMP errors are not listened to: anybody can forge them.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"
#include "shell/command.h"
#include "base/failure.h"
#include "net/hostlist.h"
#include "shell/idle_cpus.h"
#include "shell/wire.h"

#define CLIENT_RETRY_NS 20000000u
#define CLIENT_RETRY_NS_MAX 250000000u
/* While fewer nodes than CPUs are waited for and CPUs are free, it does not
 * sleep for so long after a request: to wake up an idle CPU takes half as long
 * as to start a program.  Some times what that takes on a quiet machine. */
#define CLIENT_LOOK_NS 500000u
/* Requests whose replies are still welcome: more than are ever under way. */
#define CLIENT_SENT 64
/* HELLOs, the same: what is sent in 3 s, and some. */
#define CLIENT_NONCES 16

struct client_sent {
	uint64_t counter; /* 0: none */
	enum wire_type type;
};

struct client_node {
	const char *host; /* as the user wrote it; borrowed */
	uint32_t rank;	  /* in the list, and in client.nodes */
	struct address address;
	uint8_t id[WIRE_NODE_BYTES];

	bool has_session;
	uint8_t session[WIRE_SESSION_BYTES];
	uint64_t counter;		      /* the last one sent in it */
	struct client_sent sent[CLIENT_SENT]; /* [counter % CLIENT_SENT] */
	uint8_t nonces[CLIENT_NONCES][16];
	uint64_t hello_ns[CLIENT_NONCES]; /* when sent */
	unsigned hello_count;
	uint64_t round_trip_ns; /* of the HELLO that was answered */
	bool has_epoch;		/* there was a session */
	uint8_t epoch[WIRE_EPOCH_BYTES];
	uint32_t restarts; /* of the daemon, seen by its epochs */

	bool working;
	bool lost;
	uint64_t due_ns;      /* when to send (again) */
	uint64_t interval_ns; /* until the next time */
	uint64_t asked_ns;    /* since when it owes a reply; 0: it does not */
	int send_error; /* errno of the last datagram that did not leave, or 0
			 */
};

struct client;

/* What is wanted of the nodes.  All run within client_run(). */
struct client_work {
	/* Send the request that is due: the first time, and again. */
	void (*send)(struct client *client, struct client_node *node);
	/* An authentic reply to such a request.  Goes on by client_ask(),
	 * client_pause() or client_end(). */
	void (*reply)(struct client *client, struct client_node *node,
		      const struct command *command);
	/* It is silent; its work has ended. */
	void (*lost)(struct client *client, struct client_node *node);
	/* The first SIGINT or SIGTERM; NULL: stop at once. */
	void (*interrupt)(struct client *client);
	void *context;
};

struct client {
	uint8_t key[WIRE_KEY_BYTES];
	const struct hostlist *hosts; /* borrowed */
	struct client_node *nodes;
	uint32_t node_count;
	uint32_t *index; /* open addressing by id: rank + 1, or 0 */
	uint32_t index_mask;
	int fds[2]; /* IPv4, IPv6; -1: not needed */
	uint64_t lost_after_ns;
	const struct client_work *work;
	uint32_t working;     /* nodes */
	uint64_t next_due_ns; /* of all nodes, or earlier */
	uint64_t deadline_ns; /* client_run() ends then; 0: never */
	uint64_t served_ns;   /* when we last looked, or meant to */
	uint64_t first_ns;    /* just before this run's first datagram; 0 */
	uint64_t asked_ns;    /* the latest request to any node */
	struct idle_cpus idle_cpus;
	uint64_t judged_ns; /* the request, by asked_ns, for which we know: */
	bool may_look;	    /* for its reply, rather than sleep */
	uint64_t ignored;   /* datagrams that were not for us */
	int signal;	    /* that interrupted; 0: none */
};

/* Looks up all hosts; key: WIRE_KEY_BYTES; hosts must outlive the client.
 * 0 or -errno with *failure filled; client_fini() is to be called anyway. */
int client_init(struct client *client, const struct hostlist *hosts,
		const uint8_t *key, uint64_t lost_after_ns,
		struct failure *failure);

/* Zeroes the key too.  Safe on a zeroed client. */
void client_fini(struct client *client);

/* From now on SIGINT and SIGTERM are seen in client_run() only.  Once, before
 * it. */
int client_catch_signals(void);

/* Begin this work on a node that has none: a HELLO first if need be. */
void client_begin(struct client *client, struct client_node *node);
void client_end(struct client *client, struct client_node *node);

/* Call work->send now. */
void client_ask(struct client *client, struct client_node *node);
/* Call it after so long. */
void client_pause(struct client *client, struct client_node *node,
		  uint64_t pause_ns);

/* For work->send: one datagram, of length_bytes or the long length if the body
 * does not fit. */
void client_send(struct client *client, struct client_node *node,
		 enum wire_type type, const void *body, size_t body_bytes,
		 size_t length_bytes);

/* Until no node is working.  0; -ETIME at the deadline; -EINTR if a second
 * signal came, or the first and the work does not take it; or -errno. */
int client_run(struct client *client, const struct client_work *work);

/* Sleep, with nobody waiting for us.  0, or -EINTR upon a signal (signal). */
int client_rest(struct client *client, uint64_t ms);

#endif /* CLIENT_H */
