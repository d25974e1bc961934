/*
 * udp_wire.h - the datagrams between the ranks of a cluster sort
 *
 * Two kinds, on two sockets of each rank.  All integers are little endian.
 * What comes in is checked in this order and dropped in silence when wrong:
 * length, token or tag, version, fields.
 *
 * DATA, a segment of a message, 32 bytes and the payload:
 *
 *      0 +-----------------------------------------------+
 *        | CRC-32C of all that follows                    |  u32
 *      4 +-----------+-----------+-----------+-----------+
 *        | version   | type      | exchange  | zero      |  1 byte each
 *      8 +-----------+-----------+-----------+-----------+
 *        | token: of the job                             |  u64
 *     16 +-----------------------+-----------------------+
 *        | source rank           | destination rank      |  u16 each
 *     20 +-----------------------+-----------------------+
 *        | round                 | length of the payload |  u16 each
 *     24 +-----------------------+-----------------------+
 *        | offset in the message                         |  u64
 *     32 +-----------------------------------------------+
 *        | payload ...                                   |
 *
 * STATUS, where a rank stands: a keyed BLAKE2b tag of 16 bytes over all that
 * follows, the fixed fields, and four optional tails.  It says what is so, not
 * what happened: a lost one is made good by the next, one that comes twice does
 * no harm, and one that was overtaken is known by its serial.  It also carries
 * the failure of a run to all others.
 *
 * The blob of a STATUS before the first barrier is the hello: an offer of
 * shared memory (udp_page.h), UDP_PAGE_OFFER_BYTES, and what the
 * program has to say.  Who has taken such an offer is sent a STATUS through
 * that memory, without a tag; and the ring, a datagram of one byte, that wakes
 * it.
 *
 * A rank that has the secret may still lie about every number, out of malice or
 * for a fault of its memory.  The table says what each number may be, and which
 * file checks that: exchange.c, exchange_NAME.c, or cluster_agree.c.  A STATUS
 * that udp_wire.c refuses is dropped, and its sender is silent; what the
 * other files refuse ends the run on all ranks with EXIT_PEER and the liar's
 * name.
 *
 *      version, type,       the ones of here, and of the            wire
 *        counts, flags        datagram's length
 *      source, destination  below UDP_NODES_MAX                wire
 *                           of the job, and not our own             status
 *      data_port            not 0                                   wire
 *      serial               any; an older one is dropped            status
 *      phase, exchange      at most one collective ahead, and not   status
 *                             ahead in one and behind in the other
 *      round                any: it only lets us go on              send
 *      busy_ms              up to EXCHANGE_BUSY_MS_MAX              wire
 *      segment_bytes        UDP_SEGMENT_BYTES_MIN to _MAX; 0   wire
 *                             before the first collective
 *      totals               one for each rank, and no other later   status
 *                           what the collective allows the source   exchange
 *      sent_bytes           up to the announced length              status
 *      prefix, grant        up to the length of our message         status
 *      gaps                 ascending, apart                        wire
 *                           within our message                      status
 *      gap and served       any: they only repeat lists             status
 *        serials
 *      clocks               any: what they differ by is shown, and  status
 *                             not counted upon
 *      failure              text without NUL, a status that exists  wire
 *                           a rank of the job, else the source      status
 *      blob                 up to EXCHANGE_APPLICATION_BYTES_MAX           wire
 *                           the first hello stands                  status
 *                           the fields of the hello                 agree
 *      board's offer        a sealed file of this user's            board
 *      DATA                 exchange, ranks, an offset that is a    receive
 *                             segment's, its length; at most once
 *                             to each place
 *
 * What no check finds: a rank that speaks for another, tells each something
 * else, or answers for ever and does nothing.
 *
 * Token, tag key and the CRC-32C's seed come from the job's secret, so that
 * datagrams of another job, of an earlier one or of a stranger have the wrong
 * ones.  (Not so of runs that were given one key and no name of their own:
 * rank.h.)
 */
#ifndef EXCHANGE_WIRE_H
#define EXCHANGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "exchange/arrivals.h"
#include "exchange/exchange.h"
#include "kernels/crc32c.h"

#define UDP_VERSION 2
#define UDP_SECRET_BYTES 32
#define UDP_DATA_HEADER_BYTES 32
#define UDP_STATUS_BYTES_MAX 1400
#define UDP_STATUS_FIXED_BYTES 120
#define UDP_NODES_MAX 128
#define EXCHANGE_APPLICATION_BYTES_MAX 256
#define UDP_WAKE_UP_BYTES 1
#define UDP_GAPS_MAX 64
#define UDP_TEXT_BYTES_MAX 160
/* A datagram of DATA: what every path takes holds a header and some records;
 * more than the maximum UDP does not carry. */
#define UDP_PAYLOAD_BYTES_MIN 256
#define UDP_PAYLOAD_BYTES_MAX 65507
#define UDP_SEGMENT_BYTES_MIN (UDP_PAYLOAD_BYTES_MIN - UDP_DATA_HEADER_BYTES)
#define UDP_SEGMENT_BYTES_MAX (UDP_PAYLOAD_BYTES_MAX - UDP_DATA_HEADER_BYTES)
/* Derived once from the job's secret. */
struct udp_wire_keys {
	uint64_t token;
	uint32_t seed; /* of CRC-32Cs */
	uint8_t tag_key[32];
};

/* 0 or -errno (libsodium cannot start). */
int udp_wire_derive_keys(const uint8_t secret[UDP_SECRET_BYTES],
			 struct udp_wire_keys *keys);

/* --- DATA ------------------------------------------------------------------
 */

struct udp_wire_data {
	uint8_t epoch; /* number of the collective, from 1 */
	uint16_t source, destination;
	uint16_t round;
	uint16_t length; /* of the payload: 1 .. */
	uint64_t offset;
};

/* The header of a segment whose payload is at payload (data->length bytes). */
void udp_wire_seal_data(const struct udp_wire_data *data,
			const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			const void *payload,
			uint8_t header[UDP_DATA_HEADER_BYTES]);

/* Take a header apart without looking at the payload.  False: not of this job
 * or version, or fields that cannot be (length or exchange 0, unused byte not
 * zero, a rank of UDP_NODES_MAX or more, an end past 2^64). */
bool udp_wire_open_data(const uint8_t header[UDP_DATA_HEADER_BYTES],
			const struct udp_wire_keys *keys,
			struct udp_wire_data *data);

/* Whether header and payload, in parts, are as they were sealed; the parts must
 * have as many bytes as the header tells. */
bool udp_wire_data_is_whole(const uint8_t header[UDP_DATA_HEADER_BYTES],
			    const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			    const struct iovec *parts, unsigned part_count);

/* --- STATUS ----------------------------------------------------------------
 */

enum udp_wire_flag {
	UDP_STATUS_QUERY = 1,  /* answer with your own status */
	UDP_STATUS_READY = 2,  /* messages of this exchange can be received */
	UDP_STATUS_FAILED = 4, /* the run has failed: failure_* and text */
};

struct udp_wire_status {
	uint16_t source, destination;
	uint32_t serial; /* of this source's to this destination, ascending */
	uint32_t flags;
	uint32_t phase;	    /* barriers passed or waited at */
	uint32_t epoch;	    /* collective at hand, 0: none yet */
	uint32_t round;	    /* rounds of it that are over or nearly */
	uint16_t data_port; /* the source's socket for DATA */
	uint32_t busy_ms;   /* it may be silent for this long from now:
			       0 .. EXCHANGE_BUSY_MS_MAX */
	/* Of the message of this exchange from source to destination. */
	uint32_t segment_bytes; /* payload of its segments but the last; 0:
				   there is no exchange yet */
	uint64_t sent_bytes;	/* sent once, from the beginning */
	/* Of the message from destination to source. */
	uint64_t prefix_bytes;	/* arrived without a gap */
	uint64_t grant_bytes;	/* may be sent */
	uint32_t gap_serial;	/* of the list of gaps below, if there is one */
	uint32_t served_serial; /* your list with this serial was sent again */
	/* To relate clocks: the source's now, the last clock_ns it has seen of
	 * the destination's (0: none) and for how long it has had it. */
	uint64_t clock_ns, echo_ns, held_ns;
	/* If UDP_STATUS_FAILED; else 0. */
	uint16_t failure_node;	 /* at fault */
	uint16_t failure_status; /* enum exit_status; not EXIT_DONE */
	/* Tails; counts of 0: absent.  Point into the datagram when opened. */
	const uint8_t *application; /* what the program above has to say */
	uint16_t application_bytes;
	const uint8_t *totals; /* u64 each: bytes of this source's messages */
	uint16_t total_count;  /* to each node: 0 or the number of nodes */
	const char *text;      /* reason, no NUL; only if UDP_STATUS_FAILED */
	uint16_t text_bytes;
	/* Segments, each u64: ascending, and apart. */
	struct arrivals_gap gaps[UDP_GAPS_MAX];
	uint16_t gap_count;
};

/*
 * Bytes written.  Fields and counts must be such that udp_wire_open_status()
 * takes them, and blob and totals find room beside each other: with 128 totals
 * a blob of 256 bytes does (asserted).  Left out when there is no room: gaps,
 * and the totals of a status that tells of a failure.  Of a gap of 2^32
 * segments or more the first 2^32 - 1 are named.
 */
size_t udp_wire_seal_status(const struct udp_wire_status *status,
			    const struct udp_wire_keys *keys,
			    uint8_t datagram[UDP_STATUS_BYTES_MAX]);

/* The same without a tag, for memory that only ranks can write. */
size_t udp_wire_put_status(const struct udp_wire_status *status,
			   uint8_t datagram[UDP_STATUS_BYTES_MAX]);
bool udp_wire_take_status(const uint8_t *datagram, size_t datagram_bytes,
			  struct udp_wire_status *status);

/* False: drop it; *status is then undefined. */
bool udp_wire_open_status(const uint8_t *datagram, size_t datagram_bytes,
			  const struct udp_wire_keys *keys,
			  struct udp_wire_status *status);

/* The i-th of an opened or sealed status's totals. */
static inline uint64_t udp_wire_total(const struct udp_wire_status *status,
				      unsigned i)
{
	const uint8_t *bytes = status->totals + 8 * (size_t)i;
	uint64_t value = 0;

	for (int b = 7; b >= 0; b--)
		value = value << 8 | bytes[b];
	return value;
}

#endif /* EXCHANGE_WIRE_H */
