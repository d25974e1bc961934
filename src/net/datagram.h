/*
 * datagram.h - a UDP socket that moves many segments with one call
 *
 * UDP_SEGMENT (GSO, Linux 4.18) sends up to 64 segments of equal size as one
 * (the last may be shorter); UDP_GRO (Linux 5.0) receives such segments as one.
 * A byte then costs a fifth.  If the kernel or the path refuses either, the
 * same calls move segments one by one; the caller need not know.
 *
 * The sockets are not connected and never wait: one socket serves all peers.
 */
#ifndef DATAGRAM_H
#define DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/failure.h"
#include "net/address.h"

/* One call moves this much at most.  The kernel's limits are 64 segments (128
 * in newer kernels) and the 16 bits of IP's length. */
#define DATAGRAM_SEGMENTS_MAX 64
#define DATAGRAM_BATCH_BYTES_MAX 65507
/* Parts that a segment may be made of, sent or received. */
#define DATAGRAM_PARTS_MAX 4

struct datagram_socket {
	int fd;		      /* -1: closed */
	struct address local; /* as bound, with the port that the system drew */
	bool sends_batches;   /* false: the kernel refused, or plain */
	bool receives_batches;
	/* Size of the receive buffer, of which each datagram takes more than
	 * its payload: the kernel counts its own overhead, too. */
	uint32_t receive_room_bytes;
};

struct datagram_options {
	bool plain;		  /* move segments one by one */
	uint32_t send_room_bytes; /* SO_SNDBUF; 0: the system's default */
	/* SO_RCVBUF; 0: the system's default.  Without privilege a process may
	 * get less. */
	uint32_t receive_room_bytes;
};

/*
 * Bind to local (port 0: the system draws one).  Returns 0, or -errno with
 * *failure filled (EXIT_PEER); after -EADDRINUSE the caller may try another
 * port.
 */
int datagram_open(struct datagram_socket *socket, const struct address *local,
		  const struct datagram_options *options,
		  struct failure *failure);
void datagram_close(struct datagram_socket *socket);

/* Bytes of UDP payload that reach peer from local unfragmented, by the route's
 * MTU: 1472, 8972, 65507 (loopback) ...; 0 if there is no route (errno set).
 * What the kernel learns by ICMP later does not count. */
size_t datagram_payload_bytes(const struct address *local,
			      const struct address *peer);

/*
 * Send total_bytes (>= 1), the bytes of the parts one after the other, as
 * segments of segment_bytes (the last may be shorter): at most
 * DATAGRAM_SEGMENTS_MAX of them and DATAGRAM_BATCH_BYTES_MAX bytes.  A part
 * belongs to one segment only.
 *
 * Returns the number of segments that were sent, from the first on; 0: try
 * again when the socket can be written; or -errno: an error that will stay,
 * such as -EMSGSIZE for a segment that is longer than the path allows (no
 * segment leaves in fragments).
 *
 * A segment that the network or a queue drops, or that no receiver is there
 * for, counts as sent: ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, ENETDOWN,
 * ENETUNREACH, ENOBUFS, ENOMEM, and EPERM, which a packet filter answers.  If
 * that goes on, the peer's silence shows it.
 */
int datagram_send(struct datagram_socket *socket, const struct address *to,
		  const struct iovec *parts, unsigned part_count,
		  size_t segment_bytes, size_t total_bytes);

/* The first batch in the queue. */
struct datagram_head {
	struct address from;
	size_t total_bytes;
	size_t segment_bytes; /* == total_bytes: a single segment */
	size_t head_bytes;    /* bytes that were copied to the caller's room */
};

/* Copy its first bytes and leave it in the queue.  Returns 1; 0 if the queue is
 * empty; or -errno. */
int datagram_peek(struct datagram_socket *socket, void *room, size_t room_bytes,
		  struct datagram_head *head);

/*
 * Take the batch that datagram_peek() saw into the parts.  Bytes that do not
 * fit are lost.  Returns the bytes received, or -errno (-EAGAIN: the queue is
 * empty).
 */
ssize_t datagram_take(struct datagram_socket *socket, const struct iovec *parts,
		      unsigned part_count);

/* Peek and take at once, for sockets without batches.  A datagram that is
 * longer than room_bytes is cut; total_bytes still tells its length.  Returns
 * 1; 0 if the queue is empty; or -errno. */
int datagram_receive(struct datagram_socket *socket, void *room,
		     size_t room_bytes, struct datagram_head *head);

#endif /* DATAGRAM_H */
