/*
 * client.h - ask many daemons at once over one socket
 *
 * There is one flat loop and no thread; all memory is allocated at the start.
 * Each node is asked for a session (HELLO), then for what the work wants.  A
 * request that gets no reply is sent again, always with a fresh counter or
 * nonce: first after CLIENT_RETRY_NS or four round trips, then after twice the
 * time, up to CLIENT_RETRY_NS_MAX.  A reply counts only if its tag is right and
 * it has the type, node, session and counter of a request that was sent lately;
 * others are counted and dropped.  A node that is silent for lost_after_ns is
 * lost.
 *
 * A daemon may forget a session, and says so (NO_SESSION): then the client asks
 * the node for another session, and repeats what the work wants.  lost_after_ns
 * goes on meanwhile.  A session of another epoch shows that the daemon was
 * restarted; it may have done what it did not answer before.
 *
 * The client ignores ICMP errors, since any host can forge them.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "net/address.h"
#include "net/hostlist.h"
#include "shell/command.h"
#include "shell/idle_cpus.h"
#include "shell/wire.h"

#define CLIENT_RETRY_NS 20000000u
#define CLIENT_RETRY_NS_MAX 250000000u
/* The client looks for replies without sleeping for this time after a request,
 * if it waits for fewer nodes than there are CPUs and CPUs are idle: to wake up
 * an idle CPU takes half as long as to start a program.  A start takes a
 * fraction of that on a quiet machine. */
#define CLIENT_LOOK_NS 500000u
/* A reply is accepted to one of the last requests: more than are under way. */
#define CLIENT_SENT 64
/* A HELLO's answer is accepted to one of the last ones: more than are sent in 3
 * s. */
#define CLIENT_NONCES 16

struct client_sent {
	uint64_t counter; /* 0: none */
	enum wire_type type;
};

struct client_node {
	const char *host; /* as the user writes it; borrowed */
	char *label;	  /* the host without the port that is the default */
	uint32_t rank;	  /* in the list, and in client.nodes */
	/* The result of address_parse(); if it is not 0, there is no address,
	 * and the node is lost as soon as it is to be asked. */
	int lookup_error;
	struct address address;
	uint8_t id[WIRE_NODE_BYTES];

	bool has_session;
	uint8_t session[WIRE_SESSION_BYTES];
	uint64_t counter;		      /* of the last request in it */
	struct client_sent sent[CLIENT_SENT]; /* [counter % CLIENT_SENT] */
	uint8_t nonces[CLIENT_NONCES][16];
	uint64_t hello_ns[CLIENT_NONCES]; /* when sent */
	unsigned hello_count;
	uint64_t round_trip_ns; /* of the HELLO that was answered */
	bool has_epoch;		/* there has been a session */
	uint8_t epoch[WIRE_EPOCH_BYTES];
	uint32_t restarts; /* of the daemon, counted by its epochs */

	bool working;
	bool lost;
	uint64_t due_ns;      /* when to send (again) */
	uint64_t interval_ns; /* from then on until the next time */
	uint64_t asked_ns;    /* since when it owes a reply; 0: it does not */
	int send_error;	      /* errno of the last sendto(), or 0 */
};

struct client;

/* The caller's work on the nodes.  client_run() calls these functions. */
struct client_work {
	/* Sends the request that is due, for the first time or again. */
	void (*send)(struct client *client, struct client_node *node);
	/* Takes an authentic reply to such a request.  It must call
	 * client_ask(), client_pause() or client_end(). */
	void (*reply)(struct client *client, struct client_node *node,
		      const struct command *command);
	/* The node is silent, and client_end() was called for it; or NULL. */
	void (*lost)(struct client *client, struct client_node *node);
	/* Takes the first of these signals; NULL: client_run() returns. */
	void (*interrupt)(struct client *client);
	void *context;
};

struct client {
	uint8_t key[WIRE_KEY_BYTES];
	const struct hostlist *hosts; /* borrowed */
	struct client_node *nodes;
	uint32_t node_count;
	char *unknown;	 /* hosts without an address, for a failure; or NULL */
	uint32_t *index; /* open addressing by id: rank + 1, or 0 */
	uint32_t index_mask;
	int fds[2]; /* IPv4, IPv6; -1: not needed */
	uint64_t lost_after_ns;
	const struct client_work *work;
	uint32_t working;     /* how many nodes are */
	uint64_t next_due_ns; /* the earliest due_ns of all nodes, or before */
	uint64_t deadline_ns; /* client_run() ends then; 0: never */
	uint64_t served_ns;   /* when we last looked for replies, or meant to */
	uint64_t first_ns;    /* just before this run's first datagram; or 0 */
	uint64_t asked_ns;    /* when the last request to any node was sent */
	struct idle_cpus idle_cpus;
	uint64_t judged_ns; /* the asked_ns that may_look was found for */
	bool may_look;	    /* CPUs are idle: look rather than sleep */
	uint64_t ignored;   /* datagrams that were no reply to us */
	int signal;	    /* the one that interrupted; 0: none */
};

/* Looks up all hosts, which must outlive the client; key has WIRE_KEY_BYTES.
 * A host without an address is a lost node if loses_unknown, else a failure.
 * 0 or -errno with *failure filled, which may refer to the client: print it
 * before client_fini().  Call that in either case. */
int client_init(struct client *client, const struct hostlist *hosts,
		const uint8_t *key, uint64_t lost_after_ns, bool loses_unknown,
		struct failure *failure);

/* Frees the client, and overwrites the key with zeros.  The client may be all
 * zeros. */
void client_fini(struct client *client);

/* Call it once, before client_run() and client_rest(): then SIGINT, SIGTERM,
 * SIGQUIT and, unless it is ignored, SIGHUP are taken in client_run() and
 * client_rest() only. */
int client_catch_signals(void);

/* Begins the work on a node that has none, by a HELLO if it has no session. */
void client_begin(struct client *client, struct client_node *node);
void client_end(struct client *client, struct client_node *node);

/* Calls work->send now. */
void client_ask(struct client *client, struct client_node *node);
/* Calls work->send when pause_ns have passed. */
void client_pause(struct client *client, struct client_node *node,
		  uint64_t pause_ns);

/* Function for work->send: sends one datagram of length_bytes, or of the long
 * length if the body does not fit. */
void client_send(struct client *client, struct client_node *node,
		 enum wire_type type, const void *body, size_t body_bytes,
		 size_t length_bytes);

/* Runs until no node is working.  Returns 0; -ETIME at the deadline; -EINTR if
 * a second signal came, or a first one that the work does not take; or -errno.
 */
int client_run(struct client *client, const struct client_work *work);

/* Sleeps between two runs.  0, or -EINTR if a signal came (client.signal). */
int client_rest(struct client *client, uint64_t ms);

#endif /* CLIENT_H */
