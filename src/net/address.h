/*
 * address.h - "10.0.0.1:7300", "[::1]:7300", "node7": where a daemon listens
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_PORT_DEFAULT 7300
#define ADDRESS_TEXT_BYTES 64

struct address {
	union {
		struct sockaddr_storage socket; /* of any family */
		struct sockaddr_in v4;		/* of AF_INET */
		struct sockaddr_in6 v6;		/* of AF_INET6 */
	};
	socklen_t length;
};

/*
 * An IPv4 address in four numbers, an IPv6 address (in brackets if a port
 * follows), or a name to look up (getaddrinfo, which may take seconds).
 * Without a port: ADDRESS_PORT_DEFAULT.  An IPv4 address in IPv6 form is taken
 * for what it is.  Numbers that are not an address, such as 10.1 or 010.0.0.1,
 * are refused, since libraries differ about what they mean.
 *
 * 0, -EINVAL (not of this form), -ENOENT (no such host), -EAGAIN (no name
 * server answers), or -EMFILE, -ENFILE or -ENOMEM: the look-up had no
 * descriptor or no memory.
 */
int address_parse(const char *text, struct address *address);

/* The words for what address_parse() returned; for the last three, strerror()
 * says more. */
const char *address_why(int error);

/*
 * The one canonical text: "1.2.3.4:7300", "[2001:db8::1]:7300".  Goes under the
 * tag as the node's name: client and daemon must come to the same, and so a
 * zone ("%eth0"), which each machine names in its own way, is left out.
 */
char *address_format(const struct address *address,
		     char text[ADDRESS_TEXT_BYTES]);

/* The port, in this machine's byte order; 0 if the address is neither IPv4 nor
 * IPv6. */
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);

/* True for an address of 127.0.0.0/8, and for ::1. */
bool address_is_loopback(const struct address *address);

/* True if both are the same IPv4 address, or the same IPv6 address in the same
 * zone, whatever their ports are. */
bool address_is_same_host(const struct address *a, const struct address *b);
/* A number that is the same of the same host. */
uint32_t address_host_hash(const struct address *address);

#endif /* ADDRESS_H */
