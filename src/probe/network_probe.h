/*
 * network_probe.h - round trips and throughput between the ranks of a job
 *
 * Rank 0 queries every other rank in turn; the other ranks only reply.
 * Datagrams have the format of udp_wire.h's DATA, with the job's token and
 * checksum, so that a rank does not reply to strangers and earlier jobs.  Their
 * field "exchange" tells their kind:
 *
 *      ping    comes back as it is
 *      stream  one of a batch, as fast as they can be sent; counted
 *      tcp     the first bytes of a connection, which is counted, too
 *      count   answered with the serial of the last stream or connection, how
 *              many of its bytes came, and how long after the first the last
 *      end     answered, and the answering rank is done
 *
 * Lost pings and counts are sent again; lost bytes of a stream are what is
 * measured.  A rank takes connections from rank 0's address, at the port of its
 * datagrams, and closes those that begin otherwise.
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
	uint64_t deadline_ns;  /* the probe fails if a rank is silent longer */
};

struct network_arrival {
	uint64_t bytes; /* payload */
	uint64_t ns;	/* from the first to the last; 0: nothing came */
};

/* What rank 0 saw of one rank. */
struct network_figures {
	uint64_t *round_trip_ns; /* the caller's, rounds of them */
	uint32_t lost_pings;	 /* had to be sent again */
	uint32_t payload_bytes;	 /* of a datagram of the stream */
	struct network_arrival udp, tcp;
	int tcp_error; /* -errno: there is no connection */
};

/* Rank 0 sets figures[i] for each rank i from 1 on.  Other ranks reply until
 * rank 0 ends the probe; they do not use figures.  Returns 0, or -errno with
 * *failure filled (EXIT_PEER names the rank). */
int network_probe_run(const struct network_probe *probe,
		      struct network_figures *figures, struct failure *failure);

#endif /* NETWORK_PROBE_H */
