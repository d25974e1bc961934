#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "shell/command.h"

#define GUARD_BYTES 64

static const size_t lengths[] = { WIRE_SHORT_BYTES, WIRE_LONG_BYTES };
static uint8_t key[WIRE_KEY_BYTES]; /* 0, 1, 2, ... */

static void count_up(uint8_t *bytes, size_t length, unsigned first)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(first + i);
}

/* A CANCEL with a pattern in each field. */
static struct command cancel(size_t length_bytes)
{
	static uint8_t job[WIRE_JOB_BYTES];
	struct command command = {
		.type = WIRE_CANCEL,
		.counter = 0x0102030405060708,
		.length_bytes = length_bytes,
		.body = job,
		.body_bytes = sizeof(job),
	};

	count_up(job, sizeof(job), 0x40);
	count_up(command.session, sizeof(command.session), 0x80);
	command_node("10.0.0.1:7300", command.node);
	return command;
}

/* What it looks like on the wire; a test may then do it wrong. */
static void seal_by_hand(uint8_t *datagram, size_t length_bytes)
{
	static const uint8_t personal[16] = "blink datagram 1";

	crypto_generichash_blake2b_salt_personal(
		datagram, WIRE_TAG_BYTES, datagram + WIRE_TAG_BYTES,
		length_bytes - WIRE_TAG_BYTES, key, sizeof(key), NULL,
		personal);
}

static enum command_verdict open_it(const uint8_t *datagram,
				    size_t length_bytes)
{
	struct command command;

	return command_open(datagram, length_bytes, key, &command);
}

/* --- the layout ---------------------------------------------------------- */

/* The bytes that another implementation of the same layout makes: Python's
 *	hashlib.blake2b(key=, person=b"blink datagram 1", digest_size=32)
 */
static void command_seal__known_answer(void **state)
{
	static const char *const tags[] = {
		"5b455682ed1c302a639021fe23205c8f"
		"0d6d6c767a633c823bc1374d6c89b301",
		"5d8e41e2524375da2297ac6dcdb0a1b9"
		"c582111143ce2dda015c12bea48ad957",
	};
	static const char rest[] =
		"02050000"			    /* version, type */
		"10000000"			    /* body_bytes */
		"2395a2e4f31d3a3402742af6c104a4db"  /* node */
		"808182838485868788898a8b8c8d8e8f"  /* session */
		"0807060504030201"		    /* counter */
		"404142434445464748494a4b4c4d4e4f"; /* body: the job */

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		uint8_t datagram[WIRE_LONG_BYTES];
		char hex[2 * WIRE_LONG_BYTES + 1];
		struct command command = cancel(lengths[i]);

		command.type = WIRE_RENEW;
		memset(datagram, 0xee, sizeof(datagram));
		command_seal(&command, key, datagram);
		sodium_bin2hex(hex, sizeof(hex), datagram, 32);
		assert_string_equal(hex, tags[i]);
		sodium_bin2hex(hex, sizeof(hex), datagram + 32, 64);
		assert_string_equal(hex, rest);
		assert_true(sodium_is_zero(datagram + 96, lengths[i] - 96));
	}
}

static void command_node__known_answer(void **state)
{
	uint8_t node[WIRE_NODE_BYTES];
	char hex[2 * WIRE_NODE_BYTES + 1];

	(void)state;
	command_node("10.0.0.1:7300", node);
	sodium_bin2hex(hex, sizeof(hex), node, sizeof(node));
	assert_string_equal(hex, "2395a2e4f31d3a3402742af6c104a4db");
}

static void command_job_secret__known_answer(void **state)
{
	uint8_t job[WIRE_JOB_BYTES], secret[WIRE_SECRET_BYTES];
	char hex[2 * WIRE_SECRET_BYTES + 1];

	(void)state;
	count_up(job, sizeof(job), 0x40);
	command_job_secret(key, job, secret);
	sodium_bin2hex(hex, sizeof(hex), secret, sizeof(secret));
	assert_string_equal(hex, "0dd94e7e87bc3eeeec56104d9a36f7c7"
				 "9fec9ec0f89e6a3f51a52e32d2ab57d5");
}

static void command_job_secret__differs(void **state)
{
	uint8_t job[WIRE_JOB_BYTES] = { 0 }, other_key[WIRE_KEY_BYTES] = { 0 };
	uint8_t a[WIRE_SECRET_BYTES], b[WIRE_SECRET_BYTES];

	(void)state;
	command_job_secret(key, job, a);
	command_job_secret(other_key, job, b);
	assert_memory_not_equal(a, b, sizeof(a));
	job[15] = 1;
	command_job_secret(key, job, b);
	assert_memory_not_equal(a, b, sizeof(a));
}

/* --- there and back ------------------------------------------------------ */

static void command_open__what_was_sealed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		uint8_t datagram[WIRE_LONG_BYTES];
		struct command sent = cancel(lengths[i]), seen;

		command_seal(&sent, key, datagram);
		assert_int_equal(command_open(datagram, lengths[i], key, &seen),
				 COMMAND_GOOD);
		assert_int_equal(seen.type, sent.type);
		assert_memory_equal(seen.node, sent.node, sizeof(seen.node));
		assert_memory_equal(seen.session, sent.session,
				    sizeof(seen.session));
		assert_true(seen.counter == sent.counter);
		assert_int_equal(seen.length_bytes, lengths[i]);
		assert_ptr_equal(seen.body, datagram + WIRE_HEADER_BYTES);
		assert_int_equal(seen.body_bytes, sent.body_bytes);
		assert_memory_equal(seen.body, sent.body, sent.body_bytes);
	}
}

static void command_seal__full_body_and_nothing_beside(void **state)
{
	static uint8_t body[WIRE_LONG_BODY_BYTES];

	(void)state;
	count_up(body, sizeof(body), 7);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		/* On the heap, so that the sanitizer sees a write beside it. */
		uint8_t *datagram = malloc(lengths[i]);
		struct command sent = cancel(lengths[i]), seen;

		assert_non_null(datagram);
		sent.type = WIRE_START;
		sent.body = body;
		sent.body_bytes = lengths[i] - WIRE_HEADER_BYTES;
		command_seal(&sent, key, datagram);
		assert_int_equal(command_open(datagram, lengths[i], key, &seen),
				 COMMAND_GOOD);
		assert_int_equal(seen.body_bytes, sent.body_bytes);
		assert_memory_equal(seen.body, body, sent.body_bytes);
		free(datagram);
	}
}

static void command_seal__body_in_its_place(void **state)
{
	uint8_t apart[WIRE_SHORT_BYTES], in_place[WIRE_SHORT_BYTES];
	struct command command = cancel(WIRE_SHORT_BYTES);

	(void)state;
	command_seal(&command, key, apart);
	memset(in_place, 0xee, sizeof(in_place));
	memcpy(in_place + WIRE_HEADER_BYTES, command.body, command.body_bytes);
	command.body = in_place + WIRE_HEADER_BYTES;
	command_seal(&command, key, in_place);
	assert_memory_equal(apart, in_place, sizeof(apart));
}

/* --- what is refused ----------------------------------------------------- */

static void command_open__every_flipped_bit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		uint8_t datagram[WIRE_LONG_BYTES];
		struct command command = cancel(lengths[i]);

		command_seal(&command, key, datagram);
		for (size_t bit = 0; bit < 8 * lengths[i]; bit++) {
			datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
			if (open_it(datagram, lengths[i]) != COMMAND_BAD_TAG)
				fail_msg("bit %zu of %zu bytes", bit,
					 lengths[i]);
			datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_int_equal(open_it(datagram, lengths[i]), COMMAND_GOOD);
	}
}

static void command_open__every_other_length(void **state)
{
	static const size_t more[] = { 1500, 9000, 65507, SIZE_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct command command = cancel(lengths[i]);
		uint8_t datagram[WIRE_LONG_BYTES + GUARD_BYTES] = { 0 };
		size_t length = 0;

		command_seal(&command, key, datagram);
		for (; length <= sizeof(datagram); length++) {
			enum command_verdict want = COMMAND_BAD_LENGTH;
			/* Exactly so large, for the sanitizer. */
			uint8_t *copy = malloc(MAX(length, 1));

			assert_non_null(copy);
			memcpy(copy, datagram, length);
			if (length == lengths[i])
				want = COMMAND_GOOD;
			else if (length == lengths[0] || length == lengths[1])
				want = COMMAND_BAD_TAG;
			if (open_it(copy, length) != want)
				fail_msg("%zu bytes cut to %zu", lengths[i],
					 length);
			free(copy);
		}
		for (size_t j = 0; j < ARRAY_LEN(more); j++)
			assert_int_equal(open_it(datagram, more[j]),
					 COMMAND_BAD_LENGTH);
	}
}

static void command_open__every_wrong_key_bit(void **state)
{
	uint8_t datagram[WIRE_LONG_BYTES];
	struct command command = cancel(WIRE_LONG_BYTES), seen;

	(void)state;
	command_seal(&command, key, datagram);
	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		uint8_t wrong[WIRE_KEY_BYTES];

		memcpy(wrong, key, sizeof(wrong));
		wrong[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(
			command_open(datagram, sizeof(datagram), wrong, &seen),
			COMMAND_BAD_TAG);
	}
}

/* Keyed BLAKE2b as everybody calls it is not our tag, nor is a job's secret. */
static void command_open__tag_of_another_purpose(void **state)
{
	static const uint8_t personal[16] = "blink secret 1";
	uint8_t datagram[WIRE_SHORT_BYTES];
	struct command command = cancel(WIRE_SHORT_BYTES);

	(void)state;
	command_seal(&command, key, datagram);
	crypto_generichash(datagram, 32, datagram + 32, sizeof(datagram) - 32,
			   key, sizeof(key));
	assert_int_equal(open_it(datagram, sizeof(datagram)), COMMAND_BAD_TAG);
	crypto_generichash_blake2b_salt_personal(datagram, 32, datagram + 32,
						 sizeof(datagram) - 32, key,
						 sizeof(key), NULL, personal);
	assert_int_equal(open_it(datagram, sizeof(datagram)), COMMAND_BAD_TAG);
	seal_by_hand(datagram, sizeof(datagram));
	assert_int_equal(open_it(datagram, sizeof(datagram)), COMMAND_GOOD);
}

static void command_open__wrong_leaves_command_alone(void **state)
{
	uint8_t datagram[WIRE_SHORT_BYTES] = { 0 };
	struct command command, before;

	(void)state;
	memset(&command, 0x5a, sizeof(command));
	before = command;
	command_open(datagram, sizeof(datagram), key, &command);
	command_open(datagram, 7, key, &command);
	seal_by_hand(datagram, sizeof(datagram));
	command_open(datagram, sizeof(datagram), key, &command);
	assert_memory_equal(&command, &before, sizeof(command));
}

/* What a key's holder gets wrong: one byte changed, then tagged. */
static void command_open__wrong_fields(void **state)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} cases[] = {
		{ 32, 0 },   { 32, 1 },		 { 32, 255 }, /* version */
		{ 33, 0 },   { 33, 6 },		 { 33, 8 },
		{ 33, 13 },			 /* type */
		{ 33, 255 }, { 33, WIRE_HELLO }, /* which has no session */
		{ 34, 1 },   { 34, 0x80 },	 /* flags */
		{ 35, 1 },			 /* zero */
		{ 36, 0 },   { 36, 15 },	 { 36, 17 }, /* body_bytes */
		{ 37, 1 },   { 38, 1 },		 { 39, 0x80 },
		{ 96, 1 },   { 255, 1 }, /* behind the body */
	};
	struct command command = cancel(WIRE_SHORT_BYTES);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t datagram[WIRE_SHORT_BYTES];

		command_seal(&command, key, datagram);
		datagram[cases[i].offset] = cases[i].value;
		seal_by_hand(datagram, sizeof(datagram));
		if (open_it(datagram, sizeof(datagram)) != COMMAND_BAD_FIELDS)
			fail_msg("byte %zu: %u", cases[i].offset,
				 cases[i].value);
	}
}

/* Every type with every size that its body may say it has. */
static void command_open__body_sizes(void **state)
{
	static const struct {
		enum wire_type type;
		size_t least, most;
	} cases[] = {
		{ WIRE_HELLO, 16, 16 },
		{ WIRE_SESSION, 48, 48 },
		{ WIRE_START, 44, WIRE_SHORT_BODY_BYTES },
		{ WIRE_JOB, 80, WIRE_SHORT_BODY_BYTES },
		{ WIRE_RENEW, 16, 16 },
		{ WIRE_CANCEL, 16, 16 },
		{ WIRE_OUTPUT, 32, 32 },
		{ WIRE_OUTPUT_PART, 32, WIRE_SHORT_BODY_BYTES },
		{ WIRE_STATUS, 0, 0 },
		{ WIRE_NODE, 64, 64 },
		{ WIRE_NO_SESSION, 0, 0 },
	};
	struct wire_header header = { .version = WIRE_VERSION };
	uint8_t datagram[WIRE_SHORT_BYTES] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		header.type = (uint8_t)cases[i].type;
		for (uint32_t size = 0; size < 300; size++) {
			bool fits =
				size >= cases[i].least && size <= cases[i].most;

			header.body_bytes = le32_store(size);
			memcpy(datagram, &header, sizeof(header));
			seal_by_hand(datagram, sizeof(datagram));
			if ((open_it(datagram, sizeof(datagram)) ==
			     COMMAND_GOOD) != fits)
				fail_msg("type %d, %u bytes", cases[i].type,
					 size);
		}
	}
}

/* --- another node, another direction ------------------------------------- */

static void command_open__shows_for_whom(void **state)
{
	uint8_t datagram[WIRE_SHORT_BYTES], other[WIRE_NODE_BYTES];
	struct command command = cancel(WIRE_SHORT_BYTES), seen;

	(void)state;
	command_seal(&command, key, datagram);
	command_open(datagram, sizeof(datagram), key, &seen);
	command_node("10.0.0.1:7301", other);
	assert_memory_not_equal(seen.node, other, sizeof(other));
	/* And only a holder of the key can put another name there. */
	memcpy(datagram + 40, other, sizeof(other));
	assert_int_equal(open_it(datagram, sizeof(datagram)), COMMAND_BAD_TAG);
}

static void wire_is_request__by_type(void **state)
{
	static const enum wire_type requests[] = { WIRE_HELLO,	WIRE_START,
						   WIRE_RENEW,	WIRE_CANCEL,
						   WIRE_OUTPUT, WIRE_STATUS };
	static const enum wire_type replies[] = { WIRE_SESSION, WIRE_JOB,
						  WIRE_OUTPUT_PART, WIRE_NODE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		assert_true(wire_is_request(requests[i]));
	for (size_t i = 0; i < ARRAY_LEN(replies); i++)
		assert_false(wire_is_request(replies[i]));
}

static void le__bytes(void **state)
{
	static const uint8_t bytes[8] = { 0xf8, 7, 6, 5, 4, 3, 2, 0xf1 };
	struct le32 small = le32_store(0xf5060708);
	struct le64 large = le64_store(0xf1020304050607f8);

	(void)state;
	assert_memory_equal(large.bytes, bytes, 8);
	assert_true(le64_load(large) == 0xf1020304050607f8);
	assert_int_equal(small.bytes[0], 8);
	assert_int_equal(small.bytes[3], 0xf5);
	assert_true(le32_load(small) == 0xf5060708);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_seal__known_answer),
		cmocka_unit_test(command_node__known_answer),
		cmocka_unit_test(command_job_secret__known_answer),
		cmocka_unit_test(command_job_secret__differs),
		cmocka_unit_test(command_open__what_was_sealed),
		cmocka_unit_test(command_seal__full_body_and_nothing_beside),
		cmocka_unit_test(command_seal__body_in_its_place),
		cmocka_unit_test(command_open__every_flipped_bit),
		cmocka_unit_test(command_open__every_other_length),
		cmocka_unit_test(command_open__every_wrong_key_bit),
		cmocka_unit_test(command_open__tag_of_another_purpose),
		cmocka_unit_test(command_open__wrong_leaves_command_alone),
		cmocka_unit_test(command_open__wrong_fields),
		cmocka_unit_test(command_open__body_sizes),
		cmocka_unit_test(command_open__shows_for_whom),
		cmocka_unit_test(wire_is_request__by_type),
		cmocka_unit_test(le__bytes),
	};

	if (command_init() < 0)
		return 1;
	count_up(key, sizeof(key), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
