/*
 * virtual_network.h - the simulated network between the hosts of a world
 *
 *      host  ->  leaf switch  ( ->  spine switch  ->  leaf switch )  ->  host
 *
 * Each arrow is a link of one rate and delay.  Before it waits what the link
 * has not sent yet: behind a host up to the socket's buffer, so that the sender
 * waits; behind a switch up to a number of bytes, and what finds no room there
 * is dropped.  If the hosts are more than a leaf has, each leaf has links to so
 * many spines that hosts * rate / spines * rate is the oversubscription; the
 * two ports of a datagram decide by which spine it goes.
 *
 * A datagram that is longer than the MTU takes is one of several fragments,
 * each with its headers, and is lost with any of them.  Loss, duplication,
 * corruption and delay happen by chance at the end of the way.
 *
 * The bytes of a datagram are kept without the zeros at its end.
 */
#ifndef VIRTUAL_NETWORK_H
#define VIRTUAL_NETWORK_H

#include <sys/uio.h>

#include "exchange/udp/udp.h"
#include "net/address.h"
#include "net/datagram.h"
#include "simulate/world.h"

/* What a chance is out of. */
#define VIRTUAL_CHANCE ((uint64_t)1000000000)
/* Of a place: for STATUS, for DATA, and a waker of each thread. */
#define VIRTUAL_SOCKETS (3 * UDP_THREADS_MAX)

/* CPU time of a call, of each datagram that it moves, and of each byte. */
struct virtual_cost {
	uint32_t call_ns, datagram_ns, byte_ps;
};

struct virtual_network_options {
	uint64_t link_bits_per_s;
	uint64_t link_delay_ns;
	uint64_t queue_bytes; /* of a switch port */
	uint32_t mtu_bytes;
	uint32_t datagram_bytes;   /* payload that a path is said to take; 0: as
				      much as the MTU does */
	uint32_t receive_room_max; /* net.core.rmem_max */
	unsigned leaf_hosts;	   /* 0: one switch has all */
	unsigned oversubscription;
	/* Out of VIRTUAL_CHANCE, for each packet. */
	uint64_t loss, duplication, reordering, corruption;
	uint64_t reordered_ns; /* such a datagram comes later by this */
	/* Datagrams from this host that are longer are lost, unless 0. */
	unsigned long_loss_host;
	uint32_t long_loss_bytes;
	struct virtual_cost send, receive;
	uint32_t clock_ns;  /* to read it; 0: a timeline changes nothing */
	uint32_t poll_ns;   /* to find that nothing has come */
	uint32_t wakeup_ns; /* from a sleep */
};

struct virtual_counters {
	uint64_t datagrams, bytes; /* sent, with all headers */
	uint64_t delivered;
	uint64_t queue_drops; /* by switches */
	uint64_t room_drops;  /* by sockets whose buffer is full */
	uint64_t lost, duplicated, reordered, corrupted;
};

/* A link, and what is on it or waits before it. */
struct virtual_port {
	struct event event; /* first: the first packet comes out of it */
	struct virtual_network *network;
	uint64_t free_ps; /* it has sent all by then */
	struct packet *first, **last;
};

struct packet {
	struct event event; /* first: it comes late */
	struct virtual_network *network;
	struct packet *next; /* in a port or a socket */
	uint64_t out_ns;     /* it comes out of the port */
	uint32_t from, to;   /* hosts */
	uint16_t from_port, to_port;
	uint16_t hops; /* switch ports behind it */
	uint32_t byte_count, wire_bytes, fragments;
	uint32_t kept_bytes;
	uint8_t bytes[];
};

struct virtual_socket {
	bool open, batches;
	uint16_t port;
	uint64_t send_room_ps;
	/* The link, if it were the socket's alone, has sent all by then: what
	 * others of the host send takes no room of the socket's. */
	uint64_t free_ps;
	uint32_t room_bytes, used_bytes;
	struct packet *first, **last;
	uint64_t woken_ns; /* a waker; UINT64_MAX: nobody has woken it */
};

struct virtual_network {
	struct world *world;
	struct virtual_network_options options;
	struct virtual_counters counters;
	uint64_t random;
	uint64_t queue_ps; /* a full queue */
	size_t port_count;
	unsigned leaf_hosts, leaf_count, spine_count;
	struct virtual_port *ports; /* [port_count]; owned: */
	/* [host], [leaf * spine_count + spine] twice */
	struct virtual_port *from_host, *to_host, *up, *down;
	struct virtual_socket (*sockets)[VIRTUAL_SOCKETS]; /* [host]; owned */
	/* Or NULL: gets each datagram in place of virtual_network_put(). */
	void (*tap)(struct host *host, unsigned socket,
		    const struct address *to, const uint8_t *bytes,
		    size_t byte_count);
};

/* Make the world's network.  Returns 0 or -ENOMEM; then virtual_network_fini()
 * is to be called, too. */
int virtual_network_init(struct virtual_network *network, struct world *world,
			 const struct virtual_network_options *options,
			 uint64_t seed);
void virtual_network_fini(struct virtual_network *network);
/* Forget what is under way and all events of the world, close all sockets, and
 * let time begin anew. */
void virtual_network_clear(struct virtual_network *network);

/* The address of a host, 10.0.0.1 and so on, with this port. */
void virtual_network_address(unsigned host, uint16_t port,
			     struct address *address);

/* The host sends a datagram, at its time. */
void virtual_network_put(struct host *host, unsigned socket,
			 const struct address *to, const uint8_t *bytes,
			 size_t byte_count);
/* The socket's buffer is not full: it takes a message, however long. */
bool virtual_network_has_room(const struct host *host, unsigned socket);
/* When poll() finds that the socket can be written, as half of its buffer is
 * free; the host's time: now. */
uint64_t virtual_network_writable_ns(const struct host *host, unsigned socket);
/* The first datagram has been taken from the socket: free it. */
void virtual_network_drop_first(struct virtual_socket *socket);

#endif /* VIRTUAL_NETWORK_H */
