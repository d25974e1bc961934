/*
 * bench_auth.c - what the authentication costs: ns to seal a datagram and to
 * open it, as one side of a command does
 *
 * USAGE: bench_auth
 *
 * Prints a line for each length: bytes, then the median and the least of
 * ROUNDS rounds, each the mean of BATCH datagrams, for sealing, for opening,
 * and for opening one of a stranger.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "shell/command.h"

#define ROUNDS 501
#define BATCH 64

enum action { SEAL, OPEN, OPEN_STRANGER };

struct figures {
	double median_ns, least_ns;
};

static uint8_t key[WIRE_KEY_BYTES], stranger[WIRE_KEY_BYTES];
static uint8_t body[WIRE_LONG_BODY_BYTES];

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void act(enum action action, struct command *command, uint8_t *datagram)
{
	enum command_verdict want = COMMAND_GOOD, seen = COMMAND_GOOD;
	struct command opened;

	switch (action) {
	case SEAL:
		command->counter++;
		command_seal(command, key, datagram);
		break;
	case OPEN:
		seen = command_open(datagram, command->length_bytes, key,
				    &opened);
		break;
	case OPEN_STRANGER:
		want = COMMAND_BAD_TAG;
		seen = command_open(datagram, command->length_bytes, stranger,
				    &opened);
		break;
	}
	if (seen != want)
		abort();
}

static struct figures measure(enum action action, size_t length_bytes)
{
	struct command command = {
		.type = WIRE_START,
		.length_bytes = length_bytes,
		.body = body,
		.body_bytes = length_bytes - WIRE_HEADER_BYTES,
	};
	uint8_t datagram[WIRE_LONG_BYTES];
	uint64_t elapsed_ns[ROUNDS], median_ns;

	command_seal(&command, key, datagram);
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin_ns = clock_now_ns();

		for (int i = 0; i < BATCH; i++)
			act(action, &command, datagram);
		elapsed_ns[round] = clock_now_ns() - begin_ns;
	}
	qsort(elapsed_ns, ROUNDS, sizeof(elapsed_ns[0]), compare);
	median_ns = elapsed_ns[ROUNDS / 2];
	return (struct figures){
		.median_ns = (double)median_ns / BATCH,
		.least_ns = (double)elapsed_ns[0] / BATCH,
	};
}

int main(void)
{
	static const size_t lengths[] = { WIRE_SHORT_BYTES, WIRE_LONG_BYTES };

	if (command_init() < 0)
		return 1;
	memset(key, 0x5a, sizeof(key));
	memset(body, 0xa5, sizeof(body));
	puts("ns: median (least)    seal          open        stranger");
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		printf("%4zu bytes        ", lengths[i]);
		for (int action = SEAL; action <= OPEN_STRANGER; action++) {
			struct figures figures =
				measure((enum action)action, lengths[i]);

			printf("%6.0f (%.0f) ", figures.median_ns,
			       figures.least_ns);
		}
		putchar('\n');
	}
	return 0;
}
