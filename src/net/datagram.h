/*
 * datagram.h - a UDP socket that moves many segments with one call
 *
 * UDP_SEGMENT (GSO, Linux 4.18) sends up to 64 segments of equal size, the last
 * may be shorter, as one; UDP_GRO (Linux 5.0) receives what came so as one.  A
 * byte then costs a fifth.  Where the kernel or the path refuses either, and
 * without being asked, the same calls move segments one by one.
 *
 * The sockets are not connected and never wait: one of them serves all peers.
 */
#ifndef DATAGRAM_H
#define DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "net/address.h"
#include "base/failure.h"

/* What one call moves at most; the kernel's limits are 64 (128 in newer ones)
 * and the 16 bits of IP's length. */
#define DATAGRAM_SEGMENTS_MAX 64
#define DATAGRAM_BATCH_BYTES_MAX 65507
/* Parts a segment may be made of, on either way. */
#define DATAGRAM_PARTS_MAX 4

struct datagram_socket {
	int fd;		      /* -1: closed */
	struct address local; /* as bound: with the port that was drawn */
	bool sends_batches;   /* false: refused, or not wanted */
	bool receives_batches;
	/* Room for what has arrived and was not taken yet, as the kernel counts
	 * it: with its own overhead. */
	uint32_t receive_room_bytes;
};

struct datagram_options {
	bool plain; /* one by one, as if the kernel knew nothing else */
	uint32_t send_room_bytes; /* SO_SNDBUF; 0: as the system has it */
	/* SO_RCVBUF, 0: as the system has it; privileged ones get all of it */
	uint32_t receive_room_bytes;
};

/*
 * Bind to local (port 0: one is drawn).  0 or -errno with *failure filled
 * (EXIT_PEER); -EADDRINUSE is for the caller to try another port.
 */
int datagram_open(struct datagram_socket *socket, const struct address *local,
		  const struct datagram_options *options,
		  struct failure *failure);
void datagram_close(struct datagram_socket *socket);

/* Bytes of UDP payload that reach peer from local unfragmented, by the route's
 * MTU: 1472, 8972, 65507 (loopback) ...; 0 if there is no route (errno set).
 * What ICMP teaches the kernel later is not looked at. */
size_t datagram_payload_bytes(const struct address *local,
			      const struct address *peer);

/*
 * Send total_bytes (>= 1), the bytes of the parts one after the other, as
 * segments of segment_bytes (the last may be shorter): at most
 * DATAGRAM_SEGMENTS_MAX of them and DATAGRAM_BATCH_BYTES_MAX bytes.  A part
 * belongs to one segment only.
 *
 * Returns the number of segments that were sent, from the first on; 0: try
 * again when it can be written; or -errno: an error that will stay, such as
 * -EMSGSIZE for a segment that is longer than the path allows (nothing leaves
 * in fragments).
 *
 * What the network or a queue drops, or a receiver that is not there refuses,
 * counts as sent: ECONNREFUSED, EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENETUNREACH,
 * ENOBUFS, ENOMEM, and EPERM, which a packet filter answers.  If it goes on,
 * the peer's silence shows it.
 */
int datagram_send(struct datagram_socket *socket, const struct address *to,
		  const struct iovec *parts, unsigned part_count,
		  size_t segment_bytes, size_t total_bytes);

/* What stands first in the queue. */
struct datagram_head {
	struct address from;
	size_t total_bytes;
	size_t segment_bytes; /* == total_bytes: a single one */
	size_t head_bytes;    /* copied to the caller's room */
};

/* Copy the first bytes without taking it.  1, 0: the queue is empty, -errno. */
int datagram_peek(struct datagram_socket *socket, void *room, size_t room_bytes,
		  struct datagram_head *head);

/*
 * Take what datagram_peek() saw into the parts.  What does not fit is lost.
 * Bytes received, or -errno (-EAGAIN: the queue is empty).
 */
ssize_t datagram_take(struct datagram_socket *socket, const struct iovec *parts,
		      unsigned part_count);

/* Both at once, for sockets without batches: total_bytes of at most room_bytes
 * (a longer one is cut and total_bytes tells).  1, 0: empty, -errno. */
int datagram_receive(struct datagram_socket *socket, void *room,
		     size_t room_bytes, struct datagram_head *head);

#endif /* DATAGRAM_H */
