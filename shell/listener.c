/* listener.c - the socket of a daemon, bound to the one address clients use */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shell/listener.h"

static bool is_wildcard(const struct address *address)
{
	const struct sockaddr_in *v4 = (const void *)&address->socket;
	const struct sockaddr_in6 *v6 = (const void *)&address->socket;

	if (address->socket.ss_family == AF_INET)
		return v4->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Returns 0, or an errno value. */
static int bind_socket(int socket, struct address *address)
{
	struct sockaddr *name = (struct sockaddr *)&address->socket;

	if (bind(socket, name, address->length) < 0 ||
	    getsockname(socket, name, &address->length) < 0)
		return errno;
	return 0;
}

int listener_open(struct address *address, struct failure *failure)
{
	char text[ADDRESS_TEXT_BYTES];
	int fd, error;

	address_format(address, text);
	if (is_wildcard(address))
		return failure_set(
			failure, EXIT_USAGE, "--listen", 0,
			"%s: stands for many addresses; expected the "
			"one that clients use",
			text);
	fd = socket(address->socket.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return failure_set(failure, EXIT_PEER, "--listen", errno,
				   "%s: no socket", text);
	error = bind_socket(fd, address);
	if (error == 0)
		return fd;
	close(fd);
	if (error == EADDRINUSE)
		return failure_set(failure, EXIT_PEER, "--listen", 0,
				   "%s: another program, maybe blinkd, listens "
				   "there",
				   text);
	if (error == EADDRNOTAVAIL)
		return failure_set(failure, EXIT_PEER, "--listen", 0,
				   "%s: not an address of this machine", text);
	return failure_set(failure, EXIT_PEER, "--listen", error, "%s", text);
}
