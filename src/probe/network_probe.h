/*
 * network_probe.h - round trips and throughput between the ranks of a job
 *
 * Rank 0 asks every other one in turn; they only answer.  Datagrams are those
 * of udp_wire.h's DATA, with the job's token and CRC-32C, so that strangers
 * and earlier jobs are not answered; "exchange" says what one is:
 *
 *      ping    comes back as it is
 *      stream  one of a batch, as fast as they can be sent; counted
 *      count   answered with how many bytes of the stream came, and how long
 *              after its first the last one
 *      end     answered, and the answering rank is done
 *
 * Lost pings and counts are sent again; lost bytes of a stream are what is
 * measured.
 */
#ifndef NETWORK_PROBE_H
#define NETWORK_PROBE_H

#include <stdint.h>

#include "base/failure.h"
#include "net/rank.h"

struct network_probe {
	const struct rank *rank;
	uint16_t port;	       /* of rank 0 */
	unsigned rounds;       /* pings */
	uint32_t ping_bytes;   /* payload, >= 16 */
	uint64_t stream_bytes; /* 0: no stream */
	uint64_t deadline_ns;  /* a silent rank is given up */
};

/* Of one rank, as rank 0 saw it. */
struct network_figures {
	uint64_t *round_trip_ns; /* the caller's, rounds of them */
	uint32_t lost_pings;	 /* had to be sent again */
	uint32_t payload_bytes;	 /* of a datagram of the stream */
	uint64_t arrived_bytes;	 /* payload */
	uint64_t arrived_ns;
};

/* On rank 0: figures[i] of rank i, from 1 on.  On others: answers until rank 0
 * ends it; figures are not looked at.  0 or -errno with *failure filled
 * (EXIT_PEER names the rank). */
int network_probe_run(const struct network_probe *probe,
		      struct network_figures *figures, struct failure *failure);

#endif /* NETWORK_PROBE_H */
