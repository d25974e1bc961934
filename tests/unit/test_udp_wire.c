#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "exchange/udp/udp_wire.h"
#include "base/failure.h"

#define PAYLOAD_BYTES 100
#define TAG_BYTES 16
#define GAP_BYTES 12
#define GUARD_BYTES 64

static struct udp_wire_keys keys; /* of the secret 0, 1, 2, ... */

static void count_up(uint8_t *bytes, size_t byte_count, unsigned first)
{
	for (size_t i = 0; i < byte_count; i++)
		bytes[i] = (uint8_t)(first + i);
}

static void flip(uint8_t *bytes, size_t bit)
{
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static int derive_keys(void **state)
{
	uint8_t secret[UDP_SECRET_BYTES];

	(void)state;
	count_up(secret, sizeof(secret), 0);
	return udp_wire_derive_keys(secret, &keys);
}

/* A copy of exactly so many bytes, for the sanitizer; to be freed. */
static uint8_t *exact_copy(const void *bytes, size_t byte_count)
{
	uint8_t *copy = malloc(MAX(byte_count, 1));

	assert_non_null(copy);
	memcpy(copy, bytes, byte_count);
	return copy;
}

/* --- what they look like ------------------------------------------------- */

/* A segment with a pattern in each field. */
static struct udp_wire_data segment(void)
{
	return (struct udp_wire_data){ .epoch = 0x403,
				       .source = 17,
				       .destination = 42,
				       .flags = UDP_DATA_WHOLE,
				       .length = PAYLOAD_BYTES,
				       .offset = 0x0102030405060708 };
}

/* The same of a status, without tails. */
static struct udp_wire_status bare_status(void)
{
	return (struct udp_wire_status){ .source = 17,
					 .destination = 42,
					 .serial = 0x11121314,
					 .flags = UDP_STATUS_QUERY |
						  UDP_STATUS_READY,
					 .phase = 0x21222324,
					 .epoch = 0x31323334,
					 .round = 0x41424344,
					 .data_port = 0x5152,
					 .delay_ms = 0x00026364,
					 .segment_bytes = 0x00007374,
					 .sent_bytes = 0x8182838485868788,
					 .prefix_bytes = 0x9192939495969798,
					 .grant_bytes = 0xa1a2a3a4a5a6a7a8,
					 .gap_serial = 0xb1b2b3b4,
					 .served_serial = 0xc1c2c3c4,
					 .clock_ns = 0xd1d2d3d4d5d6d7d8,
					 .echo_ns = 0xe1e2e3e4e5e6e7e8,
					 .held_ns = 0xf1f2f3f4f5f6f7f8 };
}

/* And with all tails. */
static struct udp_wire_status full_status(void)
{
	static uint8_t application[5], totals[3 * 8];
	static const char text[] = "disk full";
	struct udp_wire_status status = bare_status();

	count_up(application, sizeof(application), 0x10);
	count_up(totals, sizeof(totals), 0x20);
	status.flags = UDP_STATUS_FAILED;
	status.failure_node = 99;
	status.failure_status = EXIT_FILE;
	status.application = application;
	status.application_bytes = sizeof(application);
	status.totals = totals;
	status.total_count = 3;
	status.text = text;
	status.text_bytes = sizeof(text) - 1;
	status.gaps[0] = (struct arrivals_gap){ 7, 1 };
	status.gaps[1] =
		(struct arrivals_gap){ 0x0102030405060708, 0xfffefdfc };
	status.gap_count = 2;
	return status;
}

/* Made by another implementation of the same layout: Python's struct and
 *	hashlib.blake2b(key=, person=b"blink status 1", digest_size=16)
 * with keys of persons "blink token 1", "blink digest 1", "blink tag key 1". */
static const char data_hex[] =
	"4ca1d97806010304a25e0aa293befc9c11002a00010064000807060504030201";
static const char status_hex[] =
	"858ccdac6b76decdb049828488a7014f060211002a0052516300030005000300"
	"0900020014131211040000002423222134333231444342416463020074730000"
	"b4b3b2b1c4c3c2c188878685848382819897969594939291a8a7a6a5a4a3a2a1"
	"d8d7d6d5d4d3d2d1e8e7e6e5e4e3e2e1f8f7f6f5f4f3f2f11011121314202122"
	"232425262728292a2b2c2d2e2f30313233343536376469736b2066756c6c0700"
	"000000000000010000000807060504030201fcfdfeff";

static void keys_derive__known_answer(void **state)
{
	char hex[2 * sizeof(keys.tag_key) + 1];

	(void)state;
	assert_true(keys.token == 0x9cfcbe93a20a5ea2);
	assert_true(keys.seed == 0x074fea1f);
	sodium_bin2hex(hex, sizeof(hex), keys.tag_key, sizeof(keys.tag_key));
	assert_string_equal(hex, "083aa4637d771dc1f17b7083078658cf3ba0d34631ac4"
				 "1a4e014e4963c5c0d2a");
}

/* Each bit of the secret changes all three. */
static void keys_derive__of_another_secret(void **state)
{
	(void)state;
	for (size_t bit = 0; bit < 8 * UDP_SECRET_BYTES; bit++) {
		uint8_t secret[UDP_SECRET_BYTES];
		struct udp_wire_keys other;

		count_up(secret, sizeof(secret), 0);
		flip(secret, bit);
		assert_int_equal(udp_wire_derive_keys(secret, &other), 0);
		assert_true(other.token != keys.token);
		assert_true(other.seed != keys.seed);
		assert_memory_not_equal(other.tag_key, keys.tag_key,
					sizeof(keys.tag_key));
	}
}

static void data_seal__known_answer(void **state)
{
	uint8_t payload[PAYLOAD_BYTES], header[UDP_DATA_HEADER_BYTES];
	char hex[2 * sizeof(header) + 1];
	const struct udp_wire_data data = segment();

	(void)state;
	count_up(payload, sizeof(payload), 0x30);
	udp_wire_seal_data(&data, &keys, crc32c_scalar, payload, header);
	sodium_bin2hex(hex, sizeof(hex), header, sizeof(header));
	assert_string_equal(hex, data_hex);
}

static void status_seal__known_answer(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	char hex[2 * sizeof(datagram) + 1];
	struct udp_wire_status status = full_status();
	size_t datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);

	(void)state;
	sodium_bin2hex(hex, sizeof(hex), datagram, datagram_bytes);
	assert_string_equal(hex, status_hex);
}

/* --- DATA ---------------------------------------------------------------- */

/* Header and payload, to be spoilt. */
struct datagram {
	uint8_t header[UDP_DATA_HEADER_BYTES];
	uint8_t payload[PAYLOAD_BYTES];
};

static struct datagram sealed_segment(void)
{
	struct datagram datagram;
	const struct udp_wire_data data = segment();

	count_up(datagram.payload, sizeof(datagram.payload), 0x30);
	udp_wire_seal_data(&data, &keys, crc32c_scalar, datagram.payload,
			   datagram.header);
	return datagram;
}

static bool is_whole(const uint8_t *header, const uint8_t *payload,
		     size_t payload_bytes)
{
	const struct iovec part = { (void *)payload, payload_bytes };

	return udp_wire_data_is_whole(header, &keys, crc32c_scalar, &part, 1);
}

static bool is_taken(const struct datagram *datagram)
{
	struct udp_wire_data data;

	return udp_wire_open_data(datagram->header, &keys, &data) &&
	       is_whole(datagram->header, datagram->payload,
			sizeof(datagram->payload));
}

static void data_open__what_was_sealed(void **state)
{
	const struct datagram datagram = sealed_segment();
	const struct udp_wire_data sent = segment();
	struct udp_wire_data seen;

	(void)state;
	assert_true(is_taken(&datagram));
	assert_true(udp_wire_open_data(datagram.header, &keys, &seen));
	assert_int_equal(seen.epoch, sent.epoch);
	assert_int_equal(seen.source, sent.source);
	assert_int_equal(seen.destination, sent.destination);
	assert_int_equal(seen.flags, sent.flags);
	assert_int_equal(seen.length, sent.length);
	assert_true(seen.offset == sent.offset);
}

static void data_open__every_flipped_bit(void **state)
{
	struct datagram datagram = sealed_segment();

	(void)state;
	for (size_t bit = 0; bit < 8 * sizeof(datagram); bit++) {
		flip((uint8_t *)&datagram, bit);
		if (is_taken(&datagram))
			fail_msg("bit %zu", bit);
		flip((uint8_t *)&datagram, bit);
	}
	assert_true(is_taken(&datagram));
}

static void data_open__another_job(void **state)
{
	const struct datagram datagram = sealed_segment();
	struct udp_wire_keys other = keys;
	struct udp_wire_data data;
	const struct iovec part = { (void *)datagram.payload,
				    sizeof(datagram.payload) };

	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		other.token = keys.token ^ (uint64_t)1 << bit;
		assert_false(
			udp_wire_open_data(datagram.header, &other, &data));
	}
	other = keys;
	other.seed++;
	assert_false(udp_wire_data_is_whole(datagram.header, &other,
					    crc32c_scalar, &part, 1));
}

/* What no damage does, but a peer with a bug may. */
static void data_open__wrong_fields(void **state)
{
	static const struct {
		size_t offset;
		uint8_t bytes[2];
		bool good;
	} cases[] = {
		{ 4, { 0, 1 }, false },
		{ 4, { 1, 1 }, false }, /* version */
		{ 5, { 0, 3 }, false },
		{ 5, { 2, 3 }, false }, /* type */
		{ 6, { 0, 0 }, false },
		{ 6, { 255, 0 }, true },
		{ 6, { 0, 255 }, true }, /* epoch */
		{ 16, { 255, 15 }, true },
		{ 16, { 0, 16 }, false },
		{ 16, { 0, 255 }, false }, /* source */
		{ 18, { 255, 15 }, true },
		{ 18, { 0, 16 }, false },
		{ 18, { 0, 255 }, false }, /* destination */
		{ 20, { 0, 0 }, true },	   /* flags */
		{ 20, { 2, 0 }, false },
		{ 20, { 0, 1 }, false },
		{ 22, { 0, 0 }, false },
		{ 22, { 1, 0 }, true }, /* length */
		{ 22, { 255, 255 }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct datagram datagram = sealed_segment();
		struct udp_wire_data data;

		memcpy(datagram.header + cases[i].offset, cases[i].bytes, 2);
		if (udp_wire_open_data(datagram.header, &keys, &data) !=
		    cases[i].good)
			fail_msg("byte %zu: %u %u", cases[i].offset,
				 cases[i].bytes[0], cases[i].bytes[1]);
	}
}

static void data_open__end_of_message_overflows(void **state)
{
	struct datagram datagram = sealed_segment();
	struct udp_wire_data data;

	(void)state;
	store_le64(datagram.header + 24, UINT64_MAX - PAYLOAD_BYTES);
	assert_true(udp_wire_open_data(datagram.header, &keys, &data));
	store_le64(datagram.header + 24, UINT64_MAX - PAYLOAD_BYTES + 1);
	assert_false(udp_wire_open_data(datagram.header, &keys, &data));
}

static void data_is_whole__in_any_parts(void **state)
{
	struct datagram datagram = sealed_segment();

	(void)state;
	for (size_t a = 0; a <= PAYLOAD_BYTES; a++) {
		for (size_t b = a; b <= PAYLOAD_BYTES; b++) {
			const struct iovec parts[] = {
				{ datagram.payload, a },
				{ datagram.payload + a, b - a },
				{ datagram.payload + b, PAYLOAD_BYTES - b },
			};

			assert_true(udp_wire_data_is_whole(
				datagram.header, &keys, crc32c_scalar, parts,
				ARRAY_LEN(parts)));
		}
	}
}

/* Ranks may run on unequal machines. */
static void data_is_whole__by_any_kernel(void **state)
{
	static const struct udp_wire_data data = { .epoch = 1, .length = 1440 };
	uint8_t payload[1440], header[UDP_DATA_HEADER_BYTES];
	const struct iovec part = { payload, sizeof(payload) };
	int best = (int)cpu_level_detect();

	(void)state;
	count_up(payload, sizeof(payload), 0x30);
	udp_wire_seal_data(&data, &keys, crc32c_scalar, payload, header);
	for (int level = CPU_SCALAR; level <= best; level++)
		assert_true(udp_wire_data_is_whole(
			header, &keys, crc32c_kernel((enum cpu_level)level),
			&part, 1));
}

static void data_is_whole__every_other_length(void **state)
{
	const struct datagram datagram = sealed_segment();
	uint8_t longer[PAYLOAD_BYTES + GUARD_BYTES] = { 0 };

	(void)state;
	memcpy(longer, datagram.payload, PAYLOAD_BYTES);
	for (size_t length = 0; length <= sizeof(longer); length++) {
		uint8_t *copy = exact_copy(longer, length);

		assert_int_equal(is_whole(datagram.header, copy, length),
				 length == PAYLOAD_BYTES);
		free(copy);
	}
	assert_false(udp_wire_data_is_whole(datagram.header, &keys,
					    crc32c_scalar, NULL, 0));
}

/* The length is looked at, not left to the CRC-32C: it is right here. */
static void data_is_whole__right_crc32c_of_another_length(void **state)
{
	struct datagram datagram = sealed_segment();
	uint32_t value = crc32c_scalar(keys.seed, datagram.header + 4,
				       sizeof(datagram.header) - 4);
	uint8_t bytes[8];

	(void)state;
	value = crc32c_scalar(value, datagram.payload, PAYLOAD_BYTES - 1);
	store_le64(bytes, value);
	memcpy(datagram.header, bytes, 4);
	assert_false(
		is_whole(datagram.header, datagram.payload, PAYLOAD_BYTES - 1));
}

/* --- STATUS: there and back ---------------------------------------------- */

/* The tag alone, over whatever is there. */
static void tag_by_hand(uint8_t *datagram, size_t datagram_bytes)
{
	static const uint8_t personal[16] = "blink status 1";

	crypto_generichash_blake2b_salt_personal(
		datagram, TAG_BYTES, datagram + TAG_BYTES,
		datagram_bytes - TAG_BYTES, keys.tag_key, sizeof(keys.tag_key),
		NULL, personal);
}

static bool opens(const uint8_t *datagram, size_t datagram_bytes)
{
	struct udp_wire_status status;

	return udp_wire_open_status(datagram, datagram_bytes, &keys, &status);
}

static void assert_same_fields(const struct udp_wire_status *a,
			       const struct udp_wire_status *b)
{
	assert_int_equal(a->source, b->source);
	assert_int_equal(a->destination, b->destination);
	assert_int_equal(a->serial, b->serial);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->epoch, b->epoch);
	assert_int_equal(a->round, b->round);
	assert_int_equal(a->data_port, b->data_port);
	assert_int_equal(a->delay_ms, b->delay_ms);
	assert_int_equal(a->segment_bytes, b->segment_bytes);
	assert_true(a->sent_bytes == b->sent_bytes);
	assert_true(a->prefix_bytes == b->prefix_bytes);
	assert_true(a->grant_bytes == b->grant_bytes);
	assert_int_equal(a->gap_serial, b->gap_serial);
	assert_int_equal(a->served_serial, b->served_serial);
	assert_true(a->clock_ns == b->clock_ns);
	assert_true(a->echo_ns == b->echo_ns);
	assert_true(a->held_ns == b->held_ns);
	assert_int_equal(a->failure_node, b->failure_node);
	assert_int_equal(a->failure_status, b->failure_status);
}

static void assert_same_tails(const struct udp_wire_status *a,
			      const struct udp_wire_status *b)
{
	assert_int_equal(a->application_bytes, b->application_bytes);
	if (a->application_bytes > 0)
		assert_memory_equal(a->application, b->application,
				    a->application_bytes);
	assert_int_equal(a->total_count, b->total_count);
	for (unsigned i = 0; i < a->total_count; i++)
		assert_true(load_le64(a->totals + 8 * i) ==
			    load_le64(b->totals + 8 * i));
	assert_int_equal(a->text_bytes, b->text_bytes);
	if (a->text_bytes > 0)
		assert_memory_equal(a->text, b->text, a->text_bytes);
	assert_int_equal(a->gap_count, b->gap_count);
	for (unsigned i = 0; i < a->gap_count; i++) {
		assert_true(a->gaps[i].first == b->gaps[i].first);
		assert_true(a->gaps[i].count == b->gaps[i].count);
	}
}

/* Seal, open, and give back what was seen; tails point into datagram. */
static struct udp_wire_status
through_the_wire(const struct udp_wire_status *sent,
		 uint8_t datagram[UDP_STATUS_BYTES_MAX])
{
	struct udp_wire_status copy = *sent, seen;
	size_t datagram_bytes = udp_wire_seal_status(&copy, &keys, datagram);

	assert_in_range(datagram_bytes, UDP_STATUS_FIXED_BYTES,
			UDP_STATUS_BYTES_MAX);
	memset(&seen, 0xee, sizeof(seen));
	assert_true(
		udp_wire_open_status(datagram, datagram_bytes, &keys, &seen));
	return seen;
}

static void status_open__what_was_sealed(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	const struct udp_wire_status bare = bare_status();
	const struct udp_wire_status full = full_status();
	struct udp_wire_status seen;

	(void)state;
	seen = through_the_wire(&bare, datagram);
	assert_same_fields(&seen, &bare);
	assert_same_tails(&seen, &bare);
	assert_null(seen.application);
	assert_null(seen.totals);
	assert_null(seen.text);

	seen = through_the_wire(&full, datagram);
	assert_same_fields(&seen, &full);
	assert_same_tails(&seen, &full);
	assert_true(load_le64(seen.totals + 8) == 0x2f2e2d2c2b2a2928);
	assert_ptr_equal(seen.application, datagram + UDP_STATUS_FIXED_BYTES);
}

/* Each tail there or not: none is taken for another. */
static void status_open__every_choice_of_tails(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];

	(void)state;
	for (unsigned choice = 0; choice < 16; choice++) {
		struct udp_wire_status sent = full_status(), seen;

		sent.application_bytes =
			choice & 1 ? sent.application_bytes : 0;
		sent.total_count = choice & 2 ? sent.total_count : 0;
		sent.text_bytes = choice & 4 ? sent.text_bytes : 0;
		sent.gap_count = choice & 8 ? sent.gap_count : 0;
		seen = through_the_wire(&sent, datagram);
		assert_same_fields(&seen, &sent);
		assert_same_tails(&seen, &sent);
	}
}

/* The same but for the tag, which is not read. */
static void status_take__what_was_put(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX], sealed[sizeof(datagram)];
	struct udp_wire_status sent = full_status();
	struct udp_wire_status seen;
	size_t byte_count = udp_wire_put_status(&sent, datagram);

	(void)state;
	assert_int_equal(udp_wire_seal_status(&sent, &keys, sealed),
			 byte_count);
	assert_memory_equal(datagram + 16, sealed + 16, byte_count - 16);
	assert_true(udp_wire_take_status(datagram, byte_count, &seen));
	assert_same_fields(&seen, &sent);
	assert_same_tails(&seen, &sent);
	assert_true(udp_wire_take_status(sealed, byte_count, &seen));
	assert_false(udp_wire_open_status(datagram, byte_count, &keys, &seen));
	assert_false(udp_wire_take_status(datagram, byte_count - 1, &seen));
	assert_false(udp_wire_take_status(datagram, 0, &seen));
}

static void status_seal__each_tail_at_its_limit(void **state)
{
	static uint8_t bytes[8 * UDP_TOTALS_MAX];
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status sent = bare_status(), seen;

	(void)state;
	count_up(bytes, sizeof(bytes), 1);
	sent.flags = UDP_STATUS_FAILED;
	sent.failure_status = EXIT_RESOURCES;
	sent.application = bytes;
	sent.application_bytes = EXCHANGE_APPLICATION_BYTES_MAX;
	sent.text = "0123456789abcdef0123456789abcdef0123456789abcdef01234567"
		    "89abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef0123456789abcdef0123456789abcdef";
	sent.text_bytes = UDP_TEXT_BYTES_MAX;
	seen = through_the_wire(&sent, datagram);
	assert_same_tails(&seen, &sent);

	sent = bare_status();
	sent.totals = bytes;
	sent.total_count = UDP_TOTALS_MAX;
	sent.application = bytes;
	sent.application_bytes = 256;
	assert_int_equal(udp_wire_seal_status(&sent, &keys, datagram),
			 UDP_STATUS_BYTES_MAX);
	seen = through_the_wire(&sent, datagram);
	assert_same_tails(&seen, &sent);
}

/* --- STATUS: what finds no room ------------------------------------------ */

static void status_seal__as_many_gaps_as_fit(void **state)
{
	static const uint8_t totals[8 * UDP_TOTALS_MAX];
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status sent = bare_status(), seen;

	(void)state;
	for (unsigned i = 0; i < UDP_GAPS_MAX; i++)
		sent.gaps[i] = (struct arrivals_gap){ 3 * i, 1 + i % 2 };
	sent.gap_count = UDP_GAPS_MAX;
	sent.totals = totals;
	for (unsigned count = 0; count <= UDP_TOTALS_MAX; count++) {
		size_t room = UDP_STATUS_BYTES_MAX - UDP_STATUS_FIXED_BYTES -
			      8 * count;

		sent.total_count = (uint16_t)count;
		seen = through_the_wire(&sent, datagram);
		assert_int_equal(seen.total_count, count);
		assert_int_equal(seen.gap_count,
				 MIN(UDP_GAPS_MAX, room / GAP_BYTES));
		for (unsigned i = 0; i < seen.gap_count; i++) {
			assert_true(seen.gaps[i].first == 3 * i);
			assert_true(seen.gaps[i].count == 1 + i % 2);
		}
	}
}

/* A failure must get through, whatever else there was to say. */
static void status_seal__failure_before_totals(void **state)
{
	static const uint8_t bytes[8 * UDP_TOTALS_MAX];
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status sent = full_status(), seen;

	(void)state;
	sent.totals = bytes;
	sent.total_count = UDP_TOTALS_MAX;
	sent.application = bytes;
	sent.application_bytes = EXCHANGE_APPLICATION_BYTES_MAX;
	seen = through_the_wire(&sent, datagram);
	assert_int_equal(seen.total_count, 0);
	sent.total_count = 0;
	assert_same_fields(&seen, &sent);
	assert_same_tails(&seen, &sent);
}

static void status_seal__beginning_of_a_huge_gap(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status sent = bare_status(), seen;

	(void)state;
	sent.gap_count = 2;
	sent.gaps[0] = (struct arrivals_gap){ 1, UINT32_MAX };
	sent.gaps[1] =
		(struct arrivals_gap){ (uint64_t)1 << 63, (uint64_t)1 << 32 };
	seen = through_the_wire(&sent, datagram);
	assert_true(seen.gaps[0].count == UINT32_MAX);
	assert_true(seen.gaps[1].first == (uint64_t)1 << 63);
	assert_true(seen.gaps[1].count == UINT32_MAX);
}

/* --- STATUS: what is refused --------------------------------------------- */

static void status_open__every_flipped_bit(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status = full_status();
	size_t datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);

	(void)state;
	for (size_t bit = 0; bit < 8 * datagram_bytes; bit++) {
		flip(datagram, bit);
		if (opens(datagram, datagram_bytes))
			fail_msg("bit %zu", bit);
		flip(datagram, bit);
	}
	assert_true(opens(datagram, datagram_bytes));
}

/* Cut or extended, also by a rank that can make the tag right. */
static void status_open__every_other_length(void **state)
{
	static uint8_t longer[UDP_STATUS_BYTES_MAX + GUARD_BYTES];
	struct udp_wire_status status = full_status();
	size_t datagram_bytes = udp_wire_seal_status(&status, &keys, longer);

	(void)state;
	for (size_t length = 0; length <= sizeof(longer); length++) {
		uint8_t *copy = exact_copy(longer, length);
		bool is_right = length == datagram_bytes;

		assert_int_equal(opens(copy, length), is_right);
		if (length >= TAG_BYTES) {
			tag_by_hand(copy, length);
			assert_int_equal(opens(copy, length), is_right);
		}
		free(copy);
	}
}

static void status_open__another_job(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status = full_status();
	size_t datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);

	(void)state;
	for (size_t bit = 0; bit < 8 * UDP_SECRET_BYTES; bit++) {
		uint8_t secret[UDP_SECRET_BYTES];
		struct udp_wire_keys other;
		struct udp_wire_status seen;

		count_up(secret, sizeof(secret), 0);
		flip(secret, bit);
		assert_int_equal(udp_wire_derive_keys(secret, &other), 0);
		assert_false(udp_wire_open_status(datagram, datagram_bytes,
						  &other, &seen));
	}
}

/* Keyed BLAKE2b as everybody calls it is not our tag. */
static void status_open__tag_of_another_purpose(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status = bare_status();
	size_t datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);

	(void)state;
	crypto_generichash(datagram, TAG_BYTES, datagram + TAG_BYTES,
			   datagram_bytes - TAG_BYTES, keys.tag_key,
			   sizeof(keys.tag_key));
	assert_false(opens(datagram, datagram_bytes));
	tag_by_hand(datagram, datagram_bytes);
	assert_true(opens(datagram, datagram_bytes));
}

/* Two bytes of a sealed status changed, then tagged. */
struct spoilt {
	size_t offset;
	uint8_t bytes[2];
	bool good;
};

static void check_spoilt(const struct udp_wire_status *status,
			 const struct spoilt *cases, size_t case_count)
{
	for (size_t i = 0; i < case_count; i++) {
		uint8_t datagram[UDP_STATUS_BYTES_MAX];
		struct udp_wire_status copy = *status;
		size_t datagram_bytes =
			udp_wire_seal_status(&copy, &keys, datagram);

		memcpy(datagram + cases[i].offset, cases[i].bytes, 2);
		tag_by_hand(datagram, datagram_bytes);
		if (opens(datagram, datagram_bytes) != cases[i].good)
			fail_msg("byte %zu: %u %u", cases[i].offset,
				 cases[i].bytes[0], cases[i].bytes[1]);
	}
}

static void status_open__wrong_fields(void **state)
{
	static const struct spoilt cases[] = {
		{ 16, { 0, 2 }, false }, /* version and type */
		{ 16, { 1, 2 }, false },
		{ 16, { 6, 1 }, false },
		{ 16, { 6, 3 }, false },
		{ 16, { 5, 2 }, false },
		{ 16, { 6, 2 }, true },
		{ 18, { 255, 15 }, true }, /* source */
		{ 18, { 0, 16 }, false },
		{ 18, { 0, 255 }, false },
		{ 20, { 255, 15 }, true }, /* destination */
		{ 20, { 0, 16 }, false },
		{ 20, { 0, 255 }, false },
		{ 22, { 0, 0 }, false }, /* port */
		{ 22, { 0, 1 }, true },
		{ 24, { 255, 15 }, true }, /* failure's node */
		{ 24, { 0, 16 }, false },
		{ 26, { EXIT_DONE, 0 }, false }, /* failure's status */
		{ 26, { EXIT_WRONG, 0 }, true },
		{ 26, { EXIT_RESOURCES, 0 }, true },
		{ 26, { EXIT_RESOURCES + 1, 0 }, false },
		{ 26, { EXIT_FILE, 1 }, false },
		{ 28, { 4, 0 }, false }, /* application */
		{ 28, { 6, 0 }, false },
		{ 28, { 5, 1 }, false },
		{ 30, { 2, 0 }, false }, /* totals */
		{ 30, { 4, 0 }, false },
		{ 30, { 3, 1 }, false },
		{ 32, { 8, 0 }, false }, /* text */
		{ 32, { 10, 0 }, false },
		{ 32, { 9, 1 }, false },
		{ 34, { 1, 0 }, false }, /* gaps */
		{ 34, { 3, 0 }, false },
		{ 34, { 2, 1 }, false },
		{ 40, { 0, 0 }, false }, /* flags: a text without failure */
		{ 40, { 7, 0 }, true },
		{ 40, { 12, 0 }, true },
		{ 40, { 20, 0 }, false },
		{ 40, { 4, 1 }, false },
		{ 42, { 1, 0 }, false },
		{ 42, { 0, 128 }, false },
		{ 58, { 5, 0 }, true }, /* delay: 360000 ms is the most */
		{ 58, { 6, 0 }, false },
		{ 58, { 255, 255 }, false },
		{ 60, { 0xe0, 0 }, true }, /* segment: low bytes, high ones */
		{ 60, { 0xdf, 0 }, false },
		{ 60, { 0, 0 }, false },
		{ 60, { 0xc3, 0xff }, true },
		{ 60, { 0xc4, 0xff }, false },
		{ 62, { 1, 0 }, false },
		{ 62, { 255, 255 }, false },
		{ 149, { 'd', 0 }, false }, /* within the text */
	};
	const struct udp_wire_status status = full_status();

	(void)state;
	check_spoilt(&status, cases, ARRAY_LEN(cases));
}

/* Nothing of a failure where there is none. */
static void status_open__failure_without_flag(void **state)
{
	static const struct spoilt cases[] = {
		{ 24, { 1, 0 }, false },
		{ 26, { EXIT_WRONG, 0 }, false },
		{ 40, { UDP_STATUS_FAILED, 0 }, false },
		{ 40, { UDP_STATUS_QUERY, 0 }, true },
		{ 40, { 0, 0 }, true },
	};
	const struct udp_wire_status status = bare_status();

	(void)state;
	check_spoilt(&status, cases, ARRAY_LEN(cases));
}

/* A text is all that there is of one. */
static void status_open__text_without_flag(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status = full_status();
	size_t datagram_bytes;

	(void)state;
	status.failure_node = 0;
	datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);
	datagram[26] = EXIT_DONE;
	datagram[40] = 0;
	tag_by_hand(datagram, datagram_bytes);
	assert_false(opens(datagram, datagram_bytes));
}

/* Each tail within its limit, and all together too long. */
static void status_open__longer_than_any(void **state)
{
	uint8_t datagram[UDP_STATUS_FIXED_BYTES + 2048] = { 0 };
	struct udp_wire_status status = bare_status();

	(void)state;
	udp_wire_seal_status(&status, &keys, datagram);
	datagram[30] = UDP_TOTALS_MAX;
	for (size_t application_bytes = 255; application_bytes < 258;
	     application_bytes++) {
		size_t datagram_bytes = UDP_STATUS_FIXED_BYTES +
					application_bytes + 8 * UDP_TOTALS_MAX;

		datagram[28] = (uint8_t)application_bytes;
		datagram[29] = (uint8_t)(application_bytes >> 8);
		tag_by_hand(datagram, datagram_bytes);
		assert_int_equal(opens(datagram, datagram_bytes),
				 application_bytes <= 256);
	}
}

/* Counts above their limits although the datagram is as long as they say. */
static void status_open__counts_above_limits(void **state)
{
	static const struct {
		size_t offset;
		uint16_t most;
		size_t unit_bytes;
	} cases[] = {
		{ 28, EXCHANGE_APPLICATION_BYTES_MAX, 1 },
		{ 30, UDP_TOTALS_MAX, 8 },
		{ 32, UDP_TEXT_BYTES_MAX, 1 },
		{ 34, UDP_GAPS_MAX, GAP_BYTES },
	};
	struct udp_wire_status status = bare_status();

	(void)state;
	status.flags = UDP_STATUS_FAILED;
	status.failure_status = EXIT_WRONG;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (uint16_t over = 0; over < 2; over++) {
			uint8_t datagram[UDP_STATUS_BYTES_MAX];
			size_t count = (size_t)(cases[i].most + over);
			size_t datagram_bytes =
				udp_wire_seal_status(&status, &keys, datagram);

			/* All ones make good text, and good gaps if each is
			 * farther than the last. */
			memset(datagram + datagram_bytes, 1,
			       sizeof(datagram) - datagram_bytes);
			for (size_t k = 0;
			     cases[i].unit_bytes == GAP_BYTES && k < count; k++)
				datagram[datagram_bytes + k * GAP_BYTES + 5] =
					(uint8_t)k;
			datagram_bytes += count * cases[i].unit_bytes;
			datagram[cases[i].offset] = (uint8_t)count;
			datagram[cases[i].offset + 1] = (uint8_t)(count >> 8);
			tag_by_hand(datagram, datagram_bytes);
			assert_int_equal(opens(datagram, datagram_bytes),
					 !over);
		}
	}
}

static void status_open__gaps_that_cannot_be(void **state)
{
	static const struct {
		uint64_t first;
		uint32_t count;
		bool good;
	} cases[] = {
		{ 0, 0, false },
		{ 0, 1, true },
		{ 7, 0, false },
		{ UINT64_MAX - 1, 1, true },
		{ UINT64_MAX, 1, false },
		{ UINT64_MAX - 9, 10, false },
		{ UINT64_MAX - UINT32_MAX, UINT32_MAX, true },
		{ UINT64_MAX - UINT32_MAX + 1, UINT32_MAX, false },
	};
	struct udp_wire_status status = bare_status();

	(void)state;
	status.gap_count = 1;
	status.gaps[0] = (struct arrivals_gap){ 1, 1 };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t datagram[UDP_STATUS_BYTES_MAX], count[8];
		size_t datagram_bytes =
			udp_wire_seal_status(&status, &keys, datagram);
		uint8_t *last = datagram + datagram_bytes - GAP_BYTES;

		store_le64(last, cases[i].first);
		store_le64(count, cases[i].count);
		memcpy(last + 8, count, 4);
		tag_by_hand(datagram, datagram_bytes);
		if (opens(datagram, datagram_bytes) != cases[i].good)
			fail_msg("case %zu", i);
	}
}

/* They ascend, and between two of them something has arrived. */
static void status_open__gaps_in_disorder(void **state)
{
	static const struct {
		uint64_t first;
		bool good;
	} cases[] = {
		{ 0, false },  { 6, false },
		{ 7, false },  { 9, false },
		{ 10, false }, { 11, true },
		{ 12, true },  { UINT64_MAX - 1, true },
	};
	struct udp_wire_status status = bare_status();

	(void)state;
	status.gap_count = 2;
	status.gaps[0] = (struct arrivals_gap){ 7, 3 };
	status.gaps[1] = (struct arrivals_gap){ 20, 1 };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t datagram[UDP_STATUS_BYTES_MAX];
		size_t datagram_bytes =
			udp_wire_seal_status(&status, &keys, datagram);

		store_le64(datagram + datagram_bytes - GAP_BYTES,
			   cases[i].first);
		tag_by_hand(datagram, datagram_bytes);
		if (opens(datagram, datagram_bytes) != cases[i].good)
			fail_msg("case %zu", i);
	}
}

/* A segment's length belongs to an epoch. */
static void status_open__segments_of_no_epoch(void **state)
{
	uint8_t datagram[UDP_STATUS_BYTES_MAX];
	struct udp_wire_status status = bare_status();
	size_t datagram_bytes;

	(void)state;
	status.epoch = 0;
	status.segment_bytes = 0;
	datagram_bytes = udp_wire_seal_status(&status, &keys, datagram);
	assert_true(opens(datagram, datagram_bytes));
	datagram[61] = 5;
	tag_by_hand(datagram, datagram_bytes);
	assert_false(opens(datagram, datagram_bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_derive__known_answer),
		cmocka_unit_test(keys_derive__of_another_secret),
		cmocka_unit_test(data_seal__known_answer),
		cmocka_unit_test(status_seal__known_answer),
		cmocka_unit_test(data_open__what_was_sealed),
		cmocka_unit_test(data_open__every_flipped_bit),
		cmocka_unit_test(data_open__another_job),
		cmocka_unit_test(data_open__wrong_fields),
		cmocka_unit_test(data_open__end_of_message_overflows),
		cmocka_unit_test(data_is_whole__in_any_parts),
		cmocka_unit_test(data_is_whole__by_any_kernel),
		cmocka_unit_test(data_is_whole__every_other_length),
		cmocka_unit_test(data_is_whole__right_crc32c_of_another_length),
		cmocka_unit_test(status_open__what_was_sealed),
		cmocka_unit_test(status_open__every_choice_of_tails),
		cmocka_unit_test(status_take__what_was_put),
		cmocka_unit_test(status_seal__each_tail_at_its_limit),
		cmocka_unit_test(status_seal__as_many_gaps_as_fit),
		cmocka_unit_test(status_seal__failure_before_totals),
		cmocka_unit_test(status_seal__beginning_of_a_huge_gap),
		cmocka_unit_test(status_open__every_flipped_bit),
		cmocka_unit_test(status_open__every_other_length),
		cmocka_unit_test(status_open__another_job),
		cmocka_unit_test(status_open__tag_of_another_purpose),
		cmocka_unit_test(status_open__wrong_fields),
		cmocka_unit_test(status_open__failure_without_flag),
		cmocka_unit_test(status_open__text_without_flag),
		cmocka_unit_test(status_open__longer_than_any),
		cmocka_unit_test(status_open__counts_above_limits),
		cmocka_unit_test(status_open__gaps_that_cannot_be),
		cmocka_unit_test(status_open__gaps_in_disorder),
		cmocka_unit_test(status_open__segments_of_no_epoch),
	};

	return cmocka_run_group_tests_name("udp_wire", tests, derive_keys,
					   NULL);
}
