/*
 * cluster_liar.h - a rank of a simulated world that has the key and lies
 * (lie.h)
 *
 * Included by one file of a program.
 */
#ifndef CLUSTER_LIAR_H
#define CLUSTER_LIAR_H

#include "cluster_world.h"
#include "tests/programs/lie.h"

static struct lie lies[LIES_MAX];
static unsigned lie_count, liar;
static bool told;		  /* a lie, since the caller cleared this */
static bool accuses;		  /* the liar tells of failures, too */
static struct udp_wire_keys keys; /* zeros until the first call */

/* Copy one of the liar's datagrams, and change it.  Returns its length; 0: it
 * is not to be sent. */
static size_t world_lie(unsigned socket, const uint8_t *bytes,
			size_t byte_count,
			uint8_t datagram[DATAGRAM_BATCH_BYTES_MAX])
{
	if (keys.token == 0 && udp_wire_derive_keys(secret, &keys) < 0)
		abort();
	if (!accuses && socket == CONTROL &&
	    byte_count >= UDP_STATUS_FIXED_BYTES &&
	    (bytes[LIE_FLAGS_AT] & UDP_STATUS_FAILED))
		return 0;
	memcpy(datagram, bytes, byte_count);
	return lie_tell(lies, lie_count, &keys, socket == DATA, datagram,
			byte_count, DATAGRAM_BATCH_BYTES_MAX, &told);
}

#endif /* CLUSTER_LIAR_H */
