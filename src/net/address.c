/* address.c - "10.0.0.1:7300", "[::1]:7300", "node7": where a daemon listens */
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"

#define HOST_BYTES 256 /* a DNS name has 253 characters at most */

/* A text taken apart. */
struct parts {
	char host[HOST_BYTES];
	bool bracketed;
	uint16_t port;
};

static int parse_port(const char *text, uint16_t *port)
{
	uint64_t value;

	if (parse_u64(text, 1, UINT16_MAX, &value))
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

static int take_host(struct parts *parts, const char *host, size_t length)
{
	if (length == 0 || length >= sizeof(parts->host))
		return -EINVAL;
	memcpy(parts->host, host, length);
	parts->host[length] = '\0';
	return 0;
}

static int take_apart(const char *text, struct parts *parts)
{
	const char *port = strchr(text, ':');
	const char *end = text + strlen(text);

	*parts = (struct parts){ .port = ADDRESS_PORT_DEFAULT };
	if (text[0] == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return -EINVAL;
		parts->bracketed = true;
		port = end[1] == ':' ? end + 1 : NULL;
	} else if (port && strchr(port + 1, ':')) {
		port = NULL; /* an IPv6 address alone */
	} else if (port) {
		end = port;
	}
	if (port && parse_port(port + 1, &parts->port))
		return -EINVAL;
	return take_host(parts, text, (size_t)(end - text));
}

/* Fill *address but for its port. */
static int look_up(const char *host, int family, int flags,
		   struct address *address)
{
	const struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = flags,
	};
	struct addrinfo *found;
	int error;

	errno = 0;
	error = getaddrinfo(host, NULL, &hints, &found);
	if (error == EAI_MEMORY)
		return -ENOMEM;
	/* If there are too many open files, glibc returns EAI_NONAME, musl
	 * EAI_SYSTEM. */
	if (error != 0 && (errno == EMFILE || errno == ENFILE))
		return -errno;
	if (error == EAI_AGAIN)
		return -EAGAIN;
	if (error != 0)
		return -ENOENT;
	memcpy(&address->socket, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int find_host(const struct parts *parts, struct address *address)
{
	if (parts->bracketed || strchr(parts->host, ':'))
		return look_up(parts->host, AF_INET6, AI_NUMERICHOST, address)
			       ? -EINVAL
			       : 0;
	if (inet_pton(AF_INET, parts->host, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->length = sizeof(address->v4);
		return 0;
	}
	if (parts->host[strspn(parts->host, "0123456789.")] == '\0')
		return -EINVAL;
	return look_up(parts->host, AF_UNSPEC, 0, address);
}

/* Turn "::ffff:1.2.3.4" into 1.2.3.4, which is the same host. */
static void unmap(struct address *address)
{
	const struct sockaddr_in6 v6 = address->v6;

	if (v6.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return;
	memset(address, 0, sizeof(*address));
	address->length = sizeof(address->v4);
	address->v4.sin_family = AF_INET;
	address->v4.sin_port = v6.sin6_port;
	memcpy(&address->v4.sin_addr, &v6.sin6_addr.s6_addr[12],
	       sizeof(address->v4.sin_addr));
}

int address_parse(const char *text, struct address *address)
{
	struct parts parts;
	int error = take_apart(text, &parts);

	if (error)
		return error;
	memset(address, 0, sizeof(*address));
	error = find_host(&parts, address);
	if (error)
		return error;
	address_set_port(address, parts.port);
	unmap(address);
	return 0;
}

const char *address_why(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such host";
	case -EAGAIN:
		return "the name server does not answer";
	case -EINVAL:
		return "not an address";
	default:
		return "cannot look it up";
	}
}

char *address_format(const struct address *address,
		     char text[ADDRESS_TEXT_BYTES])
{
	struct address plain = *address;
	char host[INET6_ADDRSTRLEN] = "?";

	unmap(&plain);
	if (plain.socket.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &plain.v6.sin6_addr, host, sizeof(host));
	else if (plain.socket.ss_family == AF_INET)
		inet_ntop(AF_INET, &plain.v4.sin_addr, host, sizeof(host));
	snprintf(text, ADDRESS_TEXT_BYTES,
		 plain.socket.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 (unsigned)ntohs(plain.v4.sin_port));
	return text;
}

/* The port is at the same offset in both families. */
static bool has_port(const struct address *address)
{
	return address->socket.ss_family == AF_INET ||
	       address->socket.ss_family == AF_INET6;
}

uint16_t address_port(const struct address *address)
{
	return has_port(address) ? ntohs(address->v4.sin_port) : 0;
}

void address_set_port(struct address *address, uint16_t port)
{
	if (has_port(address))
		address->v4.sin_port = htons(port);
}

bool address_is_loopback(const struct address *address)
{
	if (address->socket.ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
	return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool address_is_same_host(const struct address *a, const struct address *b)
{
	if (a->socket.ss_family != b->socket.ss_family)
		return false;
	if (a->socket.ss_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr) &&
		       a->v6.sin6_scope_id == b->v6.sin6_scope_id;
	return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

uint32_t address_host_hash(const struct address *address)
{
	uint32_t words[4] = { address->v4.sin_addr.s_addr };
	uint32_t hash = 0;

	if (address->socket.ss_family == AF_INET6)
		memcpy(words, &address->v6.sin6_addr, sizeof(words));
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		hash = (hash ^ words[i]) * 0x9e3779b1; /* Knuth's */
	return hash ^ hash >> 15;
}
