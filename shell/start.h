/*
 * start.h - take the body of a START apart, and put the node into its arguments
 *
 * The bytes have the right tag by now, but may still be anything.
 */
#ifndef START_H
#define START_H

#include <stddef.h>
#include <stdint.h>

#include "shell/wire.h"

#define START_ARGUMENTS_MAX 256
#define START_HOST_BYTES_MAX 255
#define START_HOSTS_BYTES_MAX WIRE_LONG_BODY_BYTES
/* Of all arguments, with their NULs, after %r, %n and %h were replaced. */
#define START_TEXT_BYTES 16384

struct start {
	const uint8_t *job; /* in the body */
	uint32_t rank, node_count, lease_ms, timeout_ms;
	char host[START_HOST_BYTES_MAX + 1];
	char hosts[START_HOSTS_BYTES_MAX + 1]; /* a list of all; "": not told */
	const char *arguments[START_ARGUMENTS_MAX + 1]; /* in text; NULL */
	char text[START_TEXT_BYTES];
};

/*
 * 0; -EINVAL: not a START: numbers that do not agree, bytes left over, no
 * argument, no host or one with a NUL, hosts that are no names; -E2BIG: it is
 * one, but its arguments are too many or too long: job, rank ... host are
 * filled.
 */
int start_parse(const uint8_t *body, size_t body_bytes, struct start *start);

#endif /* START_H */
