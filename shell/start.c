/*
 * start.c - take the body of a START apart, and put the node into its
 * arguments
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/template.h"
#include "shell/command.h"
#include "shell/start.h"

/* are_texts() has checked that there are count texts, each ended by a NUL. */
static int put_arguments(struct start *start, const char *texts, uint32_t count)
{
	const struct template_values values = {
		.rank = start->rank,
		.node_count = start->node_count,
		.host = start->host,
	};
	size_t at = 0;

	if (count > START_ARGUMENTS_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < count; i++) {
		size_t room = START_TEXT_BYTES - at;
		size_t bytes =
			template_fill(start->text + at, room, texts, &values);

		if (bytes >= room)
			return -E2BIG;
		start->arguments[i] = start->text + at;
		at += bytes + 1;
		texts += strlen(texts) + 1;
	}
	start->arguments[count] = NULL;
	return 0;
}

/* True if these bytes hold exactly count texts, the last of them ended. */
static bool are_texts(const char *bytes, size_t length, uint32_t count)
{
	uint32_t ends = 0;

	for (size_t i = 0; i < length; i++)
		ends += bytes[i] == '\0';
	return count > 0 && ends == count && bytes[length - 1] == '\0';
}

static bool take_host(struct start *start, const char *host, size_t length)
{
	if (length == 0 || length > START_HOST_BYTES_MAX ||
	    memchr(host, '\0', length))
		return false;
	memcpy(start->host, host, length);
	start->host[length] = '\0';
	return true;
}

/* The list may have names and ranges of names.  It must not have a blank, an
 * exclusion or a file: a program that reads the list should open no file. */
static bool take_hosts(struct start *start, const char *hosts, size_t length)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_:%[],";

	if (length > START_HOSTS_BYTES_MAX)
		return false;
	memcpy(start->hosts, hosts, length);
	start->hosts[length] = '\0';
	return strspn(start->hosts, allowed) == length;
}

int start_parse(const uint8_t *body, size_t body_bytes, struct start *start)
{
	struct wire_start head;
	const char *texts = (const char *)body + sizeof(head);
	const char *hosts;
	uint64_t hosts_bytes, host_bytes, texts_bytes;
	uint32_t count;

	if (body_bytes < sizeof(head))
		return -EINVAL;
	memcpy(&head, body, sizeof(head));
	count = le32_load(head.argument_count);
	hosts_bytes = le32_load(head.hosts_bytes);
	host_bytes = le32_load(head.host_bytes);
	if (hosts_bytes + host_bytes > body_bytes - sizeof(head))
		return -EINVAL;
	texts_bytes = body_bytes - sizeof(head) - hosts_bytes - host_bytes;
	hosts = texts + texts_bytes;
	if (!are_texts(texts, texts_bytes, count) ||
	    !take_hosts(start, hosts, hosts_bytes) ||
	    !take_host(start, hosts + hosts_bytes, host_bytes))
		return -EINVAL;

	start->job = body;
	start->rank = le32_load(head.rank);
	start->node_count = le32_load(head.node_count);
	start->lease_ms = le32_load(head.lease_ms);
	start->timeout_ms = le32_load(head.timeout_ms);
	if (start->rank >= start->node_count)
		return -EINVAL;
	return put_arguments(start, texts, count);
}
