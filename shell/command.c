/* command.c - make a datagram, and take one apart */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/base.h"
#include "shell/command.h"

static_assert(WIRE_KEY_BYTES >= crypto_generichash_blake2b_KEYBYTES_MIN &&
		      WIRE_KEY_BYTES <= crypto_generichash_blake2b_KEYBYTES_MAX,
	      "a BLAKE2b key");
static_assert(WIRE_TAG_BYTES <= crypto_generichash_blake2b_BYTES_MAX,
	      "a BLAKE2b hash");

/* One key serves several purposes.  BLAKE2b's personalization makes a separate
 * hash function for each, so that no tag is ever the secret of a job. */
struct purpose {
	uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES];
};

static const struct purpose purpose_tag = { "blink datagram 1" };
static const struct purpose purpose_node = { "blink node 1" };
static const struct purpose purpose_secret = { "blink secret 1" };

/* The bodies that a type may have. */
struct body_shape {
	bool known; /* there is such a type */
	bool exact; /* nothing may follow the structure */
	size_t structure_bytes;
};

static const struct body_shape body_shapes[] = {
	[WIRE_HELLO] = { true, true, sizeof(struct wire_hello) },
	[WIRE_SESSION] = { true, true, sizeof(struct wire_session) },
	[WIRE_START] = { true, false, sizeof(struct wire_start) },
	[WIRE_JOB] = { true, false, sizeof(struct wire_job) },
	[WIRE_RENEW] = { true, true, sizeof(struct wire_job_request) },
	[WIRE_CANCEL] = { true, true, sizeof(struct wire_job_request) },
	[WIRE_OUTPUT] = { true, true, sizeof(struct wire_output) },
	[WIRE_OUTPUT_PART] = { true, false, sizeof(struct wire_output) },
	[WIRE_STATUS] = { true, true, 0 },
	[WIRE_NODE] = { true, true, sizeof(struct wire_node_status) },
	[WIRE_NO_SESSION] = { true, true, 0 },
};

static void hash(const struct purpose *purpose, const uint8_t *key,
		 const void *bytes, size_t length_bytes, uint8_t *digest,
		 size_t digest_bytes)
{
	int error = crypto_generichash_blake2b_salt_personal(
		digest, digest_bytes, bytes, length_bytes, key,
		key ? WIRE_KEY_BYTES : 0, NULL, purpose->personal);

	/* The hash fails only for wrong sizes, and ours are constants. */
	assert(error == 0);
	(void)error;
}

static void make_tag(const uint8_t *datagram, size_t length_bytes,
		     const uint8_t *key, uint8_t tag[WIRE_TAG_BYTES])
{
	hash(&purpose_tag, key, datagram + WIRE_TAG_BYTES,
	     length_bytes - WIRE_TAG_BYTES, tag, WIRE_TAG_BYTES);
}

static bool length_is_ours(size_t length_bytes)
{
	return length_bytes == WIRE_SHORT_BYTES ||
	       length_bytes == WIRE_LONG_BYTES;
}

static bool body_has_shape(unsigned type, size_t body_bytes)
{
	const struct body_shape *shape;

	if (type >= ARRAY_LEN(body_shapes))
		return false;
	shape = &body_shapes[type];
	if (!shape->known)
		return false;
	return shape->exact ? body_bytes == shape->structure_bytes
			    : body_bytes >= shape->structure_bytes;
}

static bool header_is_good(const struct wire_header *header,
			   size_t length_bytes)
{
	size_t body_bytes = le32_load(header->body_bytes);

	if (header->version != WIRE_VERSION || header->flags != 0 ||
	    header->zero != 0)
		return false;
	if (body_bytes > length_bytes - WIRE_HEADER_BYTES ||
	    !body_has_shape(header->type, body_bytes))
		return false;
	return header->type != WIRE_HELLO ||
	       sodium_is_zero(header->session, sizeof(header->session));
}

int command_init(void)
{
	return sodium_init() < 0 ? -ENOSYS : 0;
}

enum command_verdict command_open(const uint8_t *datagram, size_t length_bytes,
				  const uint8_t *key, struct command *command)
{
	uint8_t tag[WIRE_TAG_BYTES];
	struct wire_header header;
	size_t body_bytes;

	if (!length_is_ours(length_bytes))
		return COMMAND_BAD_LENGTH;
	make_tag(datagram, length_bytes, key, tag);
	if (sodium_memcmp(tag, datagram, sizeof(tag)) != 0)
		return COMMAND_BAD_TAG;

	/* The sender of these bytes holds the key. */
	memcpy(&header, datagram, sizeof(header));
	if (!header_is_good(&header, length_bytes))
		return COMMAND_BAD_FIELDS;
	body_bytes = le32_load(header.body_bytes);
	if (!sodium_is_zero(datagram + WIRE_HEADER_BYTES + body_bytes,
			    length_bytes - WIRE_HEADER_BYTES - body_bytes))
		return COMMAND_BAD_FIELDS;

	*command = (struct command){
		.type = (enum wire_type)header.type,
		.counter = le64_load(header.counter),
		.length_bytes = length_bytes,
		.body = datagram + WIRE_HEADER_BYTES,
		.body_bytes = body_bytes,
	};
	memcpy(command->node, header.node, sizeof(command->node));
	memcpy(command->session, header.session, sizeof(command->session));
	return COMMAND_GOOD;
}

void command_seal(const struct command *command, const uint8_t *key,
		  uint8_t *datagram)
{
	struct wire_header header = {
		.version = WIRE_VERSION,
		.type = (uint8_t)command->type,
		.body_bytes = le32_store((uint32_t)command->body_bytes),
		.counter = le64_store(command->counter),
	};
	uint8_t *body = datagram + WIRE_HEADER_BYTES;
	size_t room = command->length_bytes - WIRE_HEADER_BYTES;

	assert(length_is_ours(command->length_bytes));
	assert(command->body_bytes <= room);
	memcpy(header.node, command->node, sizeof(header.node));
	memcpy(header.session, command->session, sizeof(header.session));
	assert(header_is_good(&header, command->length_bytes));

	/* The body is moved first: it may lie in the datagram already. */
	if (command->body_bytes > 0)
		memmove(body, command->body, command->body_bytes);
	memset(body + command->body_bytes, 0, room - command->body_bytes);
	memcpy(datagram, &header, sizeof(header));
	make_tag(datagram, command->length_bytes, key, datagram);
}

void command_node(const char *text, uint8_t node[WIRE_NODE_BYTES])
{
	hash(&purpose_node, NULL, text, strlen(text), node, WIRE_NODE_BYTES);
}

void command_job_secret(const uint8_t *key, const uint8_t job[WIRE_JOB_BYTES],
			uint8_t secret[WIRE_SECRET_BYTES])
{
	hash(&purpose_secret, key, job, WIRE_JOB_BYTES, secret,
	     WIRE_SECRET_BYTES);
}
