/*
 * What the network may send: no crash, and no way in without the key.
 *
 * The input is a datagram.  First it is opened as it is, by a daemon whose key
 * it cannot know.  Then its tag is made right, so that the checks behind the
 * tag are reached, and what they let through is sealed again: it must come to
 * the same bytes, so nothing in a datagram goes unread.
 */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "shell/command.h"
#include "shell/replay.h"

static const uint8_t key[WIRE_KEY_BYTES] = "the fuzzer guesses no such key.";
static struct replay replay;

static void require(int condition)
{
	if (!condition)
		abort();
}

static void make_tag_right(uint8_t *datagram, size_t size)
{
	static const uint8_t personal[16] = "blink datagram 1";

	crypto_generichash_blake2b_salt_personal(
		datagram, WIRE_TAG_BYTES, datagram + WIRE_TAG_BYTES,
		size - WIRE_TAG_BYTES, key, sizeof(key), NULL, personal);
}

/* What a daemon does first with a good datagram, here after a restart. */
static void use(const struct command *command)
{
	static const uint8_t nonce[16];
	const uint8_t *session;
	bool in_range =
		command->counter > 0 && command->counter <= REPLAY_AHEAD;

	replay_init(&replay);
	require(replay_accept(&replay, command->session, command->counter) ==
		REPLAY_NO_SESSION);
	session = replay_open_session(&replay, nonce);
	require(session && !replay_open_session(&replay, nonce));
	require(replay_accept(&replay, session, command->counter) ==
		(in_range ? REPLAY_ACCEPTED : REPLAY_REFUSED));
	require(replay_accept(&replay, session, command->counter) ==
		REPLAY_REFUSED);
}

static void open_and_seal(const uint8_t *datagram, size_t size)
{
	uint8_t again[WIRE_LONG_BYTES];
	struct command command;

	if (command_open(datagram, size, key, &command) != COMMAND_GOOD)
		return;
	require(command.length_bytes == size);
	require(command.body == datagram + WIRE_HEADER_BYTES);
	require(command.body_bytes <= size - WIRE_HEADER_BYTES);
	use(&command);
	command_seal(&command, key, again);
	require(memcmp(again, datagram, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that the sanitizer sees a byte too far. */
	uint8_t *datagram = malloc(MAX(size, 1));
	struct command command;

	require(command_init() == 0);
	require(datagram != NULL);
	if (size > 0)
		memcpy(datagram, data, size);
	require(command_open(datagram, size, key, &command) != COMMAND_GOOD);
	if (size == WIRE_SHORT_BYTES || size == WIRE_LONG_BYTES) {
		make_tag_right(datagram, size);
		open_and_seal(datagram, size);
	}
	free(datagram);
	return 0;
}
