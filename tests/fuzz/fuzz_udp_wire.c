/*
 * What the network may send to a rank: no crash, and no way in for a status
 * without the secret.
 *
 * The input is a datagram.  First it is opened as it is, then with its tag, or
 * token and CRC-32C, made right, so that the checks behind them are reached.
 * What they let through is sealed again: it must come to the same bytes, so
 * nothing in a datagram goes unread.
 */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "exchange/udp/udp_wire.h"

#define TAG_BYTES 16
#define CRC32C_BYTES 4
#define TOKEN_OFFSET 8

static struct udp_wire_keys keys;

static void require(int condition)
{
	if (!condition)
		abort();
}

/* --- STATUS -------------------------------------------------------------- */

static void make_tag_right(uint8_t *datagram, size_t size)
{
	static const uint8_t personal[16] = "blink status 1";

	crypto_generichash_blake2b_salt_personal(
		datagram, TAG_BYTES, datagram + TAG_BYTES, size - TAG_BYTES,
		keys.tag_key, sizeof(keys.tag_key), NULL, personal);
}

static void require_limits(const struct udp_wire_status *status)
{
	require(status->source < UDP_NODES_MAX);
	require(status->destination < UDP_NODES_MAX);
	require(status->application_bytes <= EXCHANGE_APPLICATION_BYTES_MAX);
	require(status->total_count <= UDP_TOTALS_MAX);
	require(status->text_bytes <= UDP_TEXT_BYTES_MAX);
	require(status->gap_count <= UDP_GAPS_MAX);
	if (!(status->flags & UDP_STATUS_FAILED))
		require(status->text_bytes == 0 && status->failure_status == 0);
	for (unsigned i = 0; i < status->gap_count; i++) {
		const struct arrivals_gap *gap = &status->gaps[i];

		require(gap->count > 0 && gap->first + gap->count > gap->first);
	}
}

static void try_status(uint8_t *datagram, size_t size)
{
	uint8_t again[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status;

	require(!udp_wire_open_status(datagram, size, &keys, &status));
	/* Through shared memory it comes without a tag. */
	if (udp_wire_take_status(datagram, size, &status))
		require_limits(&status);
	if (size < TAG_BYTES)
		return;
	make_tag_right(datagram, size);
	if (!udp_wire_open_status(datagram, size, &keys, &status))
		return;
	require_limits(&status);
	require(udp_wire_seal_status(&status, &keys, again) == size);
	require(memcmp(again, datagram, size) == 0);
}

/* --- DATA ---------------------------------------------------------------- */

/* In two parts, cut where the input says. */
static bool is_whole(uint8_t *datagram, size_t size)
{
	uint8_t *payload = datagram + UDP_DATA_HEADER_BYTES;
	size_t payload_bytes = size - UDP_DATA_HEADER_BYTES;
	size_t cut = payload_bytes ? payload[0] % (payload_bytes + 1) : 0;
	const struct iovec parts[] = {
		{ payload, cut },
		{ payload + cut, payload_bytes - cut },
	};

	return udp_wire_data_is_whole(datagram, &keys, crc32c_scalar, parts,
				      ARRAY_LEN(parts));
}

static void make_crc32c_right(uint8_t *datagram, size_t size)
{
	uint8_t crc32c[8];

	store_le64(crc32c, crc32c_scalar(keys.seed, datagram + CRC32C_BYTES,
					 size - CRC32C_BYTES));
	memcpy(datagram, crc32c, CRC32C_BYTES);
}

static void try_data(uint8_t *datagram, size_t size)
{
	uint8_t again[UDP_DATA_HEADER_BYTES];
	struct udp_wire_data data;

	if (size < UDP_DATA_HEADER_BYTES)
		return;
	/* A fuzzer that watches comparisons learns the token: so may these be
	 * right or wrong. */
	udp_wire_open_data(datagram, &keys, &data);
	is_whole(datagram, size);

	store_le64(datagram + TOKEN_OFFSET, keys.token);
	make_crc32c_right(datagram, size);
	if (!udp_wire_open_data(datagram, &keys, &data))
		return;
	require(data.length > 0 && data.offset + data.length > data.offset);
	require(is_whole(datagram, size) ==
		(data.length == size - UDP_DATA_HEADER_BYTES));
	if (!is_whole(datagram, size))
		return;
	udp_wire_seal_data(&data, &keys, crc32c_scalar,
			   datagram + UDP_DATA_HEADER_BYTES, again);
	require(memcmp(again, datagram, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[UDP_SECRET_BYTES] =
		"the fuzzer guesses no such key.";
	/* Of exactly this size, so that the sanitizer sees a byte too far. */
	uint8_t *datagram = malloc(MAX(size, 1));

	require(udp_wire_derive_keys(secret, &keys) == 0);
	require(datagram != NULL);
	if (size > 0)
		memcpy(datagram, data, size);
	try_status(datagram, size);
	if (size > 0)
		memcpy(datagram, data, size);
	try_data(datagram, size);
	free(datagram);
	return 0;
}
