/*
 * udp.h - an exchange over UDP, the first transport of exchange.h
 *
 * A rank tells the others where it stands in small datagrams, STATUS, and sends
 * records in large ones, DATA (udp_wire.h).  A receiver names the segments that
 * it misses, and the sender sends them again.  If all ranks are on one machine,
 * STATUS can go through memory that they share (udp_page.h); a datagram then
 * only wakes a rank that sleeps.
 */
#ifndef UDP_H
#define UDP_H

#include "base/cpu.h"
#include "exchange/exchange.h"

/* What only UDP knows; all ranks must have the same crc32c and status_page. */
struct udp_options {
	enum cpu_level kernel; /* for the CRC-32C */
	bool plain; /* a system call for each datagram: sendto and recv */
	/* Compute and check the CRC-32C of each segment.  On loopback bytes are
	 * only copied: the kernel, too, computes no checksum there. */
	bool crc32c;
	/* All ranks are on one machine and may send STATUS through memory. */
	bool status_page;
	/* Rank 0's port; 0: the job's token tells it.  It is --port of the
	 * program, as a failure calls it. */
	uint16_t port;
	/* Payload of a datagram, UDP_PAYLOAD_BYTES_MIN to _MAX (udp_wire.h);
	 * 0: as much as the path takes unfragmented. */
	uint32_t payload_bytes;
	/* Bytes under way to one receiver; 0: a part of its socket's buffer. */
	uint32_t window_bytes;
	/* Threads that move DATA, with the caller's own; 0: that alone.  Each
	 * has a socket. */
	unsigned thread_count;
};

/* As many as keep a link of 100 Gbit/s busy. */
#define UDP_THREADS_MAX 8

/* Open the sockets and send the first STATUS.  NULL with *failure filled, which
 * then points to nothing of the exchange. */
struct exchange *udp_open(const struct exchange_options *options,
			  const struct udp_options *udp_options,
			  struct failure *failure);

#endif /* UDP_H */
