/*
 * command.h - make a datagram, and take one apart
 *
 * command_open() is the only way in for bytes from outside.  Until the tag has
 * proved right, it reads nothing but the length.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include "base/base.h"
#include "shell/wire.h"

struct command {
	enum wire_type type;
	uint8_t node[WIRE_NODE_BYTES];
	uint8_t session[WIRE_SESSION_BYTES];
	uint64_t counter;
	size_t length_bytes; /* of the datagram: a reply may have as many */
	const uint8_t *body; /* in the datagram */
	size_t body_bytes;
};

enum command_verdict {
	COMMAND_GOOD,
	COMMAND_BAD_LENGTH,
	COMMAND_BAD_TAG,
	COMMAND_BAD_FIELDS, /* version, type, size of the body, padding */
};

/* Finds the fastest code for this CPU.  Call it once, before all others.  0 or
 * -errno. */
int command_init(void);

/*
 * Checks a datagram by a key of WIRE_KEY_BYTES, and fills *command if it is
 * good: then body_bytes is at least the size of the type's structure, and
 * exactly that if nothing may follow the structure.  The caller checks whether
 * the type is a request or a reply (wire_is_request()), and checks node,
 * session and counter.
 */
enum command_verdict command_open(const uint8_t *datagram, size_t length_bytes,
				  const uint8_t *key, struct command *command);

/*
 * Fills the datagram, which has room for length_bytes, from *command and writes
 * its tag.  The body is copied, unless it lies at its place in the datagram
 * already. length_bytes must be WIRE_SHORT_BYTES or WIRE_LONG_BYTES and hold
 * the body, and command_open() must accept the body: both are asserted, since
 * the bytes are our own.
 */
void command_seal(const struct command *command, const uint8_t *key,
		  uint8_t *datagram);

/* Computes the name of a node under the tag: a BLAKE2b hash of its
 * "address:port", as address_format() writes it. */
void command_node(const char *text, uint8_t node[WIRE_NODE_BYTES]);

/* Computes the secret of a job.  Every holder of the key knows it; it is never
 * sent. */
void command_job_secret(const uint8_t *key, const uint8_t job[WIRE_JOB_BYTES],
			uint8_t secret[WIRE_SECRET_BYTES]);

static inline uint32_t le32_load(struct le32 v)
{
	return load_le32(v.bytes);
}

static inline struct le32 le32_store(uint32_t value)
{
	struct le32 v;

	store_le32(v.bytes, value);
	return v;
}

static inline uint64_t le64_load(struct le64 v)
{
	return load_le64(v.bytes);
}

static inline struct le64 le64_store(uint64_t value)
{
	struct le64 v;

	store_le64(v.bytes, value);
	return v;
}

#endif /* COMMAND_H */
