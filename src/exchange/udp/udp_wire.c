/*
 * udp_wire.c - write datagrams, and take apart those that may be true
 */
#include "exchange/udp/udp_wire.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/base.h"
#include "base/failure.h"

#define TAG_BYTES sizeof(((struct udp_wire_status *)NULL)->tag)
#define FLAGS_KNOWN                                                            \
	(UDP_STATUS_QUERY | UDP_STATUS_READY | UDP_STATUS_FAILED |             \
	 UDP_STATUS_TOLD)

/* The two kinds also come to different sockets; the type keeps them apart
 * should they ever share one. */
enum type {
	TYPE_DATA = 1,
	TYPE_STATUS = 2,
};

static_assert(sizeof(struct udp_wire_data) == UDP_DATA_HEADER_BYTES &&
		      offsetof(struct udp_wire_status, application) ==
			      UDP_STATUS_FIXED_BYTES,
	      "no padding");

/* 12 bytes rather than 16: a gap is short, but may lie far into a message. */
struct gap_wire {
	uint8_t first[8];
	uint8_t count[4];
};

static_assert(UDP_STATUS_FIXED_BYTES + 8 * UDP_TOTALS_MAX <=
		      UDP_STATUS_BYTES_MAX,
	      "any number of totals fits");
static_assert(UDP_STATUS_FIXED_BYTES + EXCHANGE_APPLICATION_BYTES_MAX +
			      UDP_TEXT_BYTES_MAX <=
		      UDP_STATUS_BYTES_MAX,
	      "a failure's text fits beside any application payload");

/* --- keys ----------------------------------------------------------------- */

/*
 * One secret serves several purposes.  BLAKE2b's personalization makes a
 * separate hash function for each: the token, which can be read on the network,
 * tells nothing of the tag key.
 */
struct purpose {
	uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES];
};

static const struct purpose purpose_token = { "blink token 1" };
static const struct purpose purpose_seed = { "blink digest 1" };
static const struct purpose purpose_tag_key = { "blink tag key 1" };
static const struct purpose purpose_tag = { "blink status 1" };

static_assert(sizeof(((struct udp_wire_keys *)NULL)->tag_key) ==
		      UDP_SECRET_BYTES,
	      "keys of one size");

static void hash(const struct purpose *purpose,
		 const uint8_t key[UDP_SECRET_BYTES], const void *bytes,
		 size_t byte_count, uint8_t *result, size_t result_bytes)
{
	int error = crypto_generichash_blake2b_salt_personal(
		result, result_bytes, bytes, byte_count, key, UDP_SECRET_BYTES,
		NULL, purpose->personal);

	/* It can only fail because of the sizes, which are constants here. */
	assert(error == 0);
	(void)error;
}

int udp_wire_derive_keys(const uint8_t secret[UDP_SECRET_BYTES],
			 struct udp_wire_keys *keys)
{
	uint8_t bytes[crypto_generichash_blake2b_BYTES_MIN];

	if (sodium_init() < 0)
		return -ENOSYS;
	hash(&purpose_token, secret, NULL, 0, bytes, sizeof(bytes));
	keys->token = load_le64(bytes);
	hash(&purpose_seed, secret, NULL, 0, bytes, sizeof(bytes));
	keys->seed = (uint32_t)load_le64(bytes);
	hash(&purpose_tag_key, secret, NULL, 0, keys->tag_key,
	     sizeof(keys->tag_key));
	return 0;
}

/* --- DATA ------------------------------------------------------------------
 */

static bool data_is_good(const struct udp_wire_data *data)
{
	return data->epoch > 0 && data->source < UDP_NODES_MAX &&
	       data->destination < UDP_NODES_MAX && data->length > 0 &&
	       (data->flags & ~UDP_DATA_WHOLE) == 0 &&
	       data->offset <= UINT64_MAX - data->length;
}

/* The CRC-32C of the header behind its own; the caller goes on with the
 * payload. */
static uint32_t crc32c_of_header(const uint8_t *header,
				 const struct udp_wire_keys *keys,
				 crc32c_fn *crc32c)
{
	size_t skip = sizeof(((struct udp_wire_data *)NULL)->crc32c);

	return crc32c(keys->seed, header + skip, UDP_DATA_HEADER_BYTES - skip);
}

void udp_wire_seal_data(const struct udp_wire_data *data,
			const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			const void *payload,
			uint8_t header[UDP_DATA_HEADER_BYTES])
{
	struct udp_wire_data wire = *data;
	uint32_t value;

	assert(data_is_good(data));
	wire.version = UDP_VERSION;
	wire.type = TYPE_DATA;
	wire.token = keys->token;
	memcpy(header, &wire, sizeof(wire));
	value = crc32c_of_header(header, keys, crc32c);
	store_le32(header, crc32c(value, payload, data->length));
}

bool udp_wire_open_data(const uint8_t header[UDP_DATA_HEADER_BYTES],
			const struct udp_wire_keys *keys,
			struct udp_wire_data *data)
{
	memcpy(data, header, sizeof(*data));
	return data->token == keys->token && data->version == UDP_VERSION &&
	       data->type == TYPE_DATA && data_is_good(data);
}

bool udp_wire_data_is_whole(const uint8_t header[UDP_DATA_HEADER_BYTES],
			    const struct udp_wire_keys *keys, crc32c_fn *crc32c,
			    const struct iovec *parts, unsigned part_count)
{
	uint32_t value = crc32c_of_header(header, keys, crc32c);
	size_t byte_count = 0;
	struct udp_wire_data wire;

	for (unsigned i = 0; i < part_count; i++) {
		value = crc32c(value, parts[i].iov_base, parts[i].iov_len);
		byte_count += parts[i].iov_len;
	}
	memcpy(&wire, header, sizeof(wire));
	return value == wire.crc32c && byte_count == wire.length;
}

/* --- STATUS ----------------------------------------------------------------
 */

static size_t bytes_of_tails(const struct udp_wire_status *status)
{
	return status->application_bytes +
	       status->total_count * sizeof(uint64_t) + status->text_bytes +
	       status->gap_count * sizeof(struct gap_wire);
}

static bool counts_are_good(const struct udp_wire_status *status)
{
	return status->application_bytes <= EXCHANGE_APPLICATION_BYTES_MAX &&
	       status->total_count <= UDP_TOTALS_MAX &&
	       status->text_bytes <= UDP_TEXT_BYTES_MAX &&
	       status->gap_count <= UDP_GAPS_MAX &&
	       (status->flags & UDP_STATUS_FAILED || status->text_bytes == 0);
}

/* Bitmaps and buffers are allocated by the length of a segment. */
static bool segment_is_good(const struct udp_wire_status *status)
{
	if (status->epoch == 0)
		return status->segment_bytes == 0;
	return status->segment_bytes >= UDP_SEGMENT_BYTES_MIN &&
	       status->segment_bytes <= UDP_SEGMENT_BYTES_MAX;
}

static bool fields_are_good(const struct udp_wire_status *status)
{
	if (status->source >= UDP_NODES_MAX ||
	    status->destination >= UDP_NODES_MAX ||
	    status->flags & ~(uint32_t)FLAGS_KNOWN || status->data_port == 0 ||
	    status->delay_ms > EXCHANGE_DELAY_MS_MAX ||
	    !segment_is_good(status) || !counts_are_good(status))
		return false;
	if (!(status->flags & UDP_STATUS_FAILED))
		return status->failure_node == 0 && status->failure_status == 0;
	return status->failure_node < UDP_NODES_MAX &&
	       status->failure_status > EXIT_DONE &&
	       status->failure_status <= EXIT_RESOURCES;
}

static bool gap_is_good(const struct arrivals_gap *gap)
{
	return gap->count > 0 && gap->first <= UINT64_MAX - gap->count;
}

/* A segment that was named twice would be sent twice. */
static bool gap_is_behind(const struct arrivals_gap *gap,
			  const struct arrivals_gap *last)
{
	return gap->first > last->first &&
	       gap->first - last->first > last->count;
}

/* Leave out what does not fit.  A rank that a failure ends needs no totals. */
static void fit_tails(struct udp_wire_status *status)
{
	const size_t room = UDP_STATUS_BYTES_MAX - UDP_STATUS_FIXED_BYTES;
	unsigned gap_count = status->gap_count;

	status->gap_count = 0;
	if (bytes_of_tails(status) > room && status->flags & UDP_STATUS_FAILED)
		status->total_count = 0;
	assert(bytes_of_tails(status) <= room);
	status->gap_count =
		(uint16_t)MIN(gap_count, (room - bytes_of_tails(status)) /
						 sizeof(struct gap_wire));
}

static void make_tag(const uint8_t *datagram, size_t datagram_bytes,
		     const struct udp_wire_keys *keys, uint8_t tag[TAG_BYTES])
{
	hash(&purpose_tag, keys->tag_key, datagram + TAG_BYTES,
	     datagram_bytes - TAG_BYTES, tag, TAG_BYTES);
}

static uint8_t *put(uint8_t *next, const void *bytes, size_t byte_count)
{
	if (byte_count > 0)
		memcpy(next, bytes, byte_count);
	return next + byte_count;
}

static uint8_t *put_gap(uint8_t *next, const struct arrivals_gap *gap)
{
	/* The end of a longer gap is named once its beginning has arrived. */
	struct gap_wire wire;

	assert(gap_is_good(gap));
	store_le64(wire.first, gap->first);
	store_le32(wire.count, (uint32_t)MIN(gap->count, UINT32_MAX));
	return put(next, &wire, sizeof(wire));
}

size_t udp_wire_put_status(struct udp_wire_status *status,
			   uint8_t datagram[UDP_STATUS_BYTES_MAX])
{
	uint8_t *next = datagram;

	fit_tails(status);
	assert(fields_are_good(status));
	status->version = UDP_VERSION;
	status->type = TYPE_STATUS;
	next = put(next, status, UDP_STATUS_FIXED_BYTES);
	next = put(next, status->application, status->application_bytes);
	next = put(next, status->totals,
		   status->total_count * sizeof(uint64_t));
	next = put(next, status->text, status->text_bytes);
	for (unsigned i = 0; i < status->gap_count; i++)
		next = put_gap(next, &status->gaps[i]);
	return (size_t)(next - datagram);
}

size_t udp_wire_seal_status(struct udp_wire_status *status,
			    const struct udp_wire_keys *keys,
			    uint8_t datagram[UDP_STATUS_BYTES_MAX])
{
	size_t datagram_bytes = udp_wire_put_status(status, datagram);

	make_tag(datagram, datagram_bytes, keys, datagram);
	return datagram_bytes;
}

static bool take_gap(const uint8_t *bytes, struct arrivals_gap *gap)
{
	struct gap_wire wire;

	memcpy(&wire, bytes, sizeof(wire));
	*gap = (struct arrivals_gap){
		.first = load_le64(wire.first),
		.count = load_le32(wire.count),
	};
	return gap_is_good(gap);
}

/* The caller has checked the counts, and that the datagram has all of that. */
static bool take_tails(const uint8_t *next, struct udp_wire_status *status)
{
	status->application = status->application_bytes > 0 ? next : NULL;
	next += status->application_bytes;
	status->totals = status->total_count > 0 ? next : NULL;
	next += status->total_count * sizeof(uint64_t);
	status->text = status->text_bytes > 0 ? (const char *)next : NULL;
	if (memchr(next, '\0', status->text_bytes))
		return false;
	next += status->text_bytes;
	for (unsigned i = 0; i < status->gap_count; i++) {
		if (!take_gap(next, &status->gaps[i]) ||
		    (i > 0 &&
		     !gap_is_behind(&status->gaps[i], &status->gaps[i - 1])))
			return false;
		next += sizeof(struct gap_wire);
	}
	return true;
}

static bool length_is_good(size_t datagram_bytes)
{
	return datagram_bytes >= UDP_STATUS_FIXED_BYTES &&
	       datagram_bytes <= UDP_STATUS_BYTES_MAX;
}

bool udp_wire_take_status(const uint8_t *datagram, size_t datagram_bytes,
			  struct udp_wire_status *status)
{
	if (!length_is_good(datagram_bytes))
		return false;
	memcpy(status, datagram, UDP_STATUS_FIXED_BYTES);
	return status->version == UDP_VERSION && status->type == TYPE_STATUS &&
	       fields_are_good(status) &&
	       datagram_bytes ==
		       UDP_STATUS_FIXED_BYTES + bytes_of_tails(status) &&
	       take_tails(datagram + UDP_STATUS_FIXED_BYTES, status);
}

bool udp_wire_open_status(const uint8_t *datagram, size_t datagram_bytes,
			  const struct udp_wire_keys *keys,
			  struct udp_wire_status *status)
{
	uint8_t tag[TAG_BYTES];

	if (!length_is_good(datagram_bytes))
		return false;
	make_tag(datagram, datagram_bytes, keys, tag);
	if (sodium_memcmp(tag, datagram, sizeof(tag)) != 0)
		return false;
	/* The bytes are from a rank that knows the secret. */
	return udp_wire_take_status(datagram, datagram_bytes, status);
}
