/*
 * udp_wire.h - the datagrams between the ranks of a cluster sort
 *
 * There are two kinds, on two sockets of each rank.  All integers are little
 * endian.  A datagram that comes in is checked in this order, and dropped in
 * silence if one check fails: length, token or tag, version, fields.
 *
 * DATA is a segment of a message: 32 bytes and the payload.
 *
 *      0 +-----------------------------------------------+
 *        | CRC-32C of all that follows                   |  u32
 *      4 +-----------+-----------+-----------+-----------+
 *        | version   | type      | epoch                 |  1 byte each, u16
 *      8 +-----------+-----------+-----------------------+
 *        | token of the job                              |  u64
 *     16 +-----------------------+-----------------------+
 *        | source rank           | destination rank      |  u16 each
 *     20 +-----------------------+-----------------------+
 *        | flags                 | length of the payload |  u16 each
 *     24 +-----------------------+-----------------------+
 *        | offset in the message                         |  u64
 *     32 +-----------------------------------------------+
 *        | payload ...                                   |
 *
 * STATUS tells where a rank stands.  It has a keyed BLAKE2b tag of 16 bytes
 * over all that follows it, the fixed fields, and four optional tails.  It
 * describes a state, not an event: if one is lost, the next one has all that it
 * said; if one comes twice, the second changes nothing; and one that was
 * overtaken is recognised by its serial.  STATUS also carries the failure of a
 * run to all other ranks.
 *
 * The application payload of a STATUS before the first barrier is the hello: an
 * offer of shared memory (udp_page.h) of UDP_PAGE_OFFER_BYTES, and what the
 * program has to say; or, with UDP_STATUS_TOLD, what the program tells rank 0
 * in the meantime.  A rank that has taken such an offer gets its STATUS through
 * that memory, without a tag, and a datagram of one byte that wakes it.
 *
 * A rank that has the secret may still lie about every number, out of malice or
 * because its memory is faulty.  The table says what each number may be, and
 * which file checks that: udp_NAME.c, exchange.c, or cluster_NAME.c.  A STATUS
 * that udp_wire.c refuses is dropped, so that its sender seems silent.  What
 * the other files refuse ends the run on all ranks with EXIT_PEER and the
 * liar's name.
 *
 *      version, type,       these ones, and of the datagram's       wire
 *        counts, flags        length
 *      source, destination  below UDP_NODES_MAX                     wire
 *                           of the job, and not our own             status
 *      data_port            not 0                                   wire
 *      serial               any; an older one is dropped            status
 *      phase, epoch         at most EXCHANGE_LEAD_MAX collectives   status
 *                             ahead, and not ahead in one and
 *                             behind in the other
 *      round                any: it only lets us go on              send
 *      delay_ms             up to EXCHANGE_DELAY_MS_MAX             wire
 *      segment_bytes        UDP_SEGMENT_BYTES_MIN to _MAX; 0        wire
 *                             before the first collective
 *      totals               one for each rank, or the one of the    status
 *                             message to us, and no other later
 *                           what the collective allows the source   exchange
 *      sent_bytes           up to the announced length              status
 *      prefix, grant        up to the length of our message; the    status
 *                             grant of a rank that is not ready:
 *                             any, it only lets us send
 *      gaps                 ascending, apart                        wire
 *                           within our message                      status
 *      gap and served       any: they only repeat lists             status
 *        serials
 *      clocks               any: their difference is shown, and     clock
 *                             nothing depends on it
 *      failure              text without NUL, a status that exists  wire
 *                           a rank of the job, else the source      status
 *      application payload  up to EXCHANGE_APPLICATION_BYTES_MAX    wire
 *                           the first hello counts                  status
 *                           the fields of the hello                 agree
 *                           what is told; it ends with the phase    status
 *                           the fields of what is told              progress
 *      page's offer         a sealed file of this user's            page
 *      DATA                 epoch, ranks, the offset of a segment,  receive
 *                             its length; at most once to each
 *                             place
 *                           flags: WHOLE counts only when our        status
 *                             message to the source is all sent
 *                           the digest of splitters and cuts, and    cluster
 *                             the bucket of each record's key,         receive
 *                             if records come, not references
 *
 * A rank whose numbers may be true, but that does not get on, is found by its
 * debts (liveness.h) if it says that it has sent bytes, that it is ready for
 * ours, or that it has gone on.  No check finds a rank that speaks for another,
 * changes a record and leaves its key in the bucket, or answers for ever that
 * it is not so far yet.  That a rank tells each other one another sample is
 * noticed by the digest, but not which rank it is.
 *
 * Token, tag key and the CRC-32C's seed are derived from the job's secret, so
 * that datagrams of another job, of an earlier one or of a stranger have the
 * wrong ones.  (That does not hold for runs that were given one key and no
 * names of their own: rank.h.)
 */
#ifndef UDP_WIRE_H
#define UDP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "exchange/udp/arrivals.h"
#include "exchange/exchange.h"
#include "kernels/crc32c.h"

#define UDP_VERSION 6
#define UDP_SECRET_BYTES 32
#define UDP_DATA_HEADER_BYTES 32
/* An Ethernet of 1500 bytes takes it in one packet. */
#define UDP_STATUS_BYTES_MAX 1400
#define UDP_STATUS_FIXED_BYTES 120
#define UDP_NODES_MAX RANK_NODES_MAX
#define UDP_TOTALS_MAX EXCHANGE_KNOWN_MAX
#define UDP_WAKE_UP_BYTES 1
#define UDP_GAPS_MAX 64
#define UDP_TEXT_BYTES_MAX 160
/* Payload of a DATA datagram.  Every path takes the minimum, which holds a
 * header and some records; UDP carries no more than the maximum. */
#define UDP_PAYLOAD_BYTES_MIN 256
#define UDP_PAYLOAD_BYTES_MAX 65507
#define UDP_SEGMENT_BYTES_MIN (UDP_PAYLOAD_BYTES_MIN - UDP_DATA_HEADER_BYTES)
#define UDP_SEGMENT_BYTES_MAX (UDP_PAYLOAD_BYTES_MAX - UDP_DATA_HEADER_BYTES)

/* Derived once from the job's secret. */
struct udp_wire_keys {
	uint64_t token;
	uint32_t seed; /* CRC-32Cs begin with it */
	uint8_t tag_key[32];
};

/* Returns 0, or -errno if libsodium cannot start. */
int udp_wire_derive_keys(const uint8_t secret[UDP_SECRET_BYTES],
			 struct udp_wire_keys *keys);

/* --- DATA ------------------------------------------------------------------
 */

enum udp_wire_data_flag {
	UDP_DATA_WHOLE = 1, /* the source has all of the destination's message
			     */
};

/* A header, as it lies in the datagram. */
struct udp_wire_data {
	uint32_t crc32c; /* these three and the token are udp_wire.c's */
	uint8_t version;
	uint8_t type;
	uint16_t epoch; /* number of the collective, from 1 */
	uint64_t token;
	uint16_t source, destination;
	uint16_t flags;	 /* enum udp_wire_data_flag */
	uint16_t length; /* of the payload, at least 1 */
	uint64_t offset;
};

/* Write the header of a segment whose payload is at payload (data->length
 * bytes). */
void udp_wire_seal_data(const struct udp_wire_data *data,
			const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			const void *payload,
			uint8_t header[UDP_DATA_HEADER_BYTES]);

/* Take a header apart without looking at the payload.  Returns false if it is
 * of another job or version, or has an impossible field: a length or epoch of
 * 0, a rank of UDP_NODES_MAX or more, an unknown flag, an end past 2^64. */
bool udp_wire_open_data(const uint8_t header[UDP_DATA_HEADER_BYTES],
			const struct udp_wire_keys *keys,
			struct udp_wire_data *data);

/* True if header and payload, which is given in parts, are as they were sealed,
 * and the parts have as many bytes as the header tells. */
bool udp_wire_data_is_whole(const uint8_t header[UDP_DATA_HEADER_BYTES],
			    const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			    const struct iovec *parts, unsigned part_count);

/* --- STATUS ----------------------------------------------------------------
 */

enum udp_wire_flag {
	UDP_STATUS_QUERY = 1,  /* answer with your own status */
	UDP_STATUS_READY = 2,  /* all announcements of this epoch have come */
	UDP_STATUS_FAILED = 4, /* the run has failed: failure_* and text */
	UDP_STATUS_TOLD = 8,   /* of phase 0: the payload is not the hello */
};

struct udp_wire_status {
	/* First the fixed fields, as they lie in the datagram. */
	uint8_t tag[16]; /* this one and the next two are udp_wire.c's */
	uint8_t version;
	uint8_t type;
	uint16_t source, destination;
	uint16_t data_port; /* the source's socket for DATA */
	/* If UDP_STATUS_FAILED; else 0. */
	uint16_t failure_node;	 /* at fault */
	uint16_t failure_status; /* enum exit_status; not EXIT_DONE */
	/* The tails below have these counts; a tail of 0 is absent. */
	uint16_t application_bytes;
	uint16_t total_count;
	uint16_t text_bytes;
	uint16_t gap_count;
	uint32_t serial; /* ascends, from this source to this destination */
	uint32_t flags;
	uint32_t phase;	   /* barriers passed or waited at */
	uint32_t epoch;	   /* number of the collective at hand; 0: none yet */
	uint32_t round;	   /* rounds of it that were handed over */
	uint32_t delay_ms; /* the source may be silent for this long from now:
			      0 to EXCHANGE_DELAY_MS_MAX */
	uint32_t segment_bytes; /* of this epoch's message to the destination:
				   payload of all segments but the last; 0:
				   there is no epoch yet */
	uint32_t gap_serial;	/* of the list of gaps below, if there is one */
	uint32_t served_serial; /* the destination's list of gaps with this
				   serial was sent again */
	/* Bytes of this epoch's message from source to destination that were
	 * sent at least once, from the beginning. */
	uint64_t sent_bytes;
	/* Bytes of the message from destination to source. */
	uint64_t prefix_bytes; /* arrived without a gap */
	uint64_t grant_bytes;  /* may be sent; of each message, if the source is
				  not ready */
	/* These relate clocks: the source's clock, the last clock_ns that it
	 * has seen from the destination (0: none), and for how long it has held
	 * that. */
	uint64_t clock_ns, echo_ns, held_ns;

	/* Then the tails.  The pointers of a status that was opened point into
	 * the datagram. */
	const uint8_t *application; /* application payload */
	/* u64 each: bytes of this source's messages to each node; or of the one
	 * to the destination: then the count is 1. */
	const uint8_t *totals;
	const char *text; /* reason, no NUL; only if UDP_STATUS_FAILED */
	/* Segments that are missing: ascending, and apart. */
	struct arrivals_gap gaps[UDP_GAPS_MAX];
};

/*
 * Write a datagram; returns its bytes.  Fields and counts must be such that
 * udp_wire_open_status() takes them, and application payload and totals must
 * fit beside each other (asserted): with 128 totals a payload of up to 256
 * bytes does.  When there is no room, gaps are left out, and the totals of a
 * status that tells of a failure; the counts of *status then say what is there.
 * A gap of 2^32 segments or more is named by its first 2^32 - 1.
 */
size_t udp_wire_seal_status(struct udp_wire_status *status,
			    const struct udp_wire_keys *keys,
			    uint8_t datagram[UDP_STATUS_BYTES_MAX]);

/* The same without a tag, for memory that only ranks can write, and the way
 * back: false as below. */
size_t udp_wire_put_status(struct udp_wire_status *status,
			   uint8_t datagram[UDP_STATUS_BYTES_MAX]);
bool udp_wire_take_status(const uint8_t *datagram, size_t datagram_bytes,
			  struct udp_wire_status *status);

/* Take a datagram apart.  Returns false if it must be dropped; *status is then
 * undefined. */
bool udp_wire_open_status(const uint8_t *datagram, size_t datagram_bytes,
			  const struct udp_wire_keys *keys,
			  struct udp_wire_status *status);

#endif /* UDP_WIRE_H */
