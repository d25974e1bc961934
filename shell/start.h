/*
 * start.h - take the body of a START apart, and put the node into its arguments
 *
 * The tag of the datagram is right, but the body may still hold any bytes.
 */
#ifndef START_H
#define START_H

#include <stddef.h>
#include <stdint.h>

#include "shell/wire.h"

#define START_ARGUMENTS_MAX 256
#define START_HOST_BYTES_MAX 255
#define START_HOSTS_BYTES_MAX WIRE_LONG_BODY_BYTES
/* Limit for all arguments, with their NULs, after %r, %n and %h have been
 * replaced. */
#define START_TEXT_BYTES 16384

struct start {
	const uint8_t *job; /* in the body */
	uint32_t rank, node_count, lease_ms, timeout_ms;
	char host[START_HOST_BYTES_MAX + 1];
	char hosts[START_HOSTS_BYTES_MAX + 1]; /* a list of all; "": unknown */
	const char *arguments[START_ARGUMENTS_MAX + 1]; /* in text; NULL */
	char text[START_TEXT_BYTES];
};

/*
 * Fills *start from the body.  Returns 0; -EINVAL if this is no START: numbers
 * do not agree, bytes are left over, there is no argument, the host is missing
 * or has a NUL, or the list of hosts has bytes that no list has; or -E2BIG if
 * it is a START whose arguments are too many or too long: then job, rank ...
 * host are filled.
 */
int start_parse(const uint8_t *body, size_t body_bytes, struct start *start);

#endif /* START_H */
