/*
 * udp_join.c - find the ports, open the sockets, and learn what paths take
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "base/clock.h"
#include "exchange/udp/udp_state.h"

/* Ports below the ones that the system draws, unless there are some hundred
 * ranks on an address; of RANK_NODES_MAX they end with 46622. */
#define PORT_FIRST 10240
#define PORT_COUNT 20000
/* A few messages of the benchmark's size; the kernel may grant less. */
#define RECEIVE_ROOM_BYTES ((uint32_t)16 << 20)
/* The kernel counts what lies in a socket with its overhead: up to this many
 * times the payload. */
#define ROOM_PART 3
/* What was sent on loopback occupies the sender's buffer until it is received:
 * room for a message, or two processes would take turns. */
#define SEND_ROOM_LOOPBACK_BYTES ((uint32_t)4 << 20)
/* Elsewhere what a card sends in 0.2 ms at 10 Gbit/s, so that a STATUS about a
 * message leaves soon after the message. */
#define SEND_ROOM_BYTES ((uint32_t)256 << 10)

/* --- addresses and sockets --------------------------------------------------
 */

/* The address to bind to: our own; or any, if our own is a loopback address,
 * as names resolve to on some machines, and other ranks are elsewhere. */
static struct address bound_address(const struct udp *x)
{
	struct address address = x->base.rank->addresses[udp_own(x)];
	bool all = true;

	for (unsigned node = 0; node < udp_node_count(x); node++)
		all &= address_is_loopback(&x->base.rank->addresses[node]);
	if (all || !address_is_loopback(&address))
		return address;
	if (address.socket.ss_family == AF_INET)
		((struct sockaddr_in *)&address.socket)->sin_addr.s_addr =
			htonl(INADDR_ANY);
	else
		((struct sockaddr_in6 *)&address.socket)->sin6_addr =
			in6addr_any;
	return address;
}

/* The port of rank 0, and of all ranks that share their address with none. */
static uint16_t first_port(const struct udp *x)
{
	if (x->options.port)
		return x->options.port;
	return (uint16_t)(PORT_FIRST + x->keys.token % PORT_COUNT);
}

/* Returns 0, or -EINVAL with *failure filled. */
static int guess_ports(struct udp *x, struct failure *failure)
{
	const struct address *addresses = x->base.rank->addresses;
	unsigned first = first_port(x), ranks = 1, last;

	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct address address = addresses[node];
		unsigned lower_count = 0;

		for (unsigned lower = 0; lower < node; lower++)
			lower_count += address_is_same_host(&addresses[lower],
							    &addresses[node]);
		ranks = MAX(ranks, lower_count + 1);
		address_set_port(&address, (uint16_t)(first + lower_count));
		udp_status_guess(x, node, &address);
	}
	x->port_step = MAX(UDP_PORT_STEP_MIN, ranks);
	last = first + ranks - 1 + (UDP_PORT_TRIES - 1) * x->port_step;
	if (last > UINT16_MAX)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "--port=%u: ranks need ports up to %u, and "
				   "65535 is the last one",
				   first, last);
	return 0;
}

static int open_sockets(struct udp *x, struct failure *failure)
{
	struct datagram_options options = { .plain = true };
	struct address local = bound_address(x);
	uint16_t port = address_port(&x->peers[udp_own(x)].control);
	int error = -EADDRINUSE;
	struct failure tried; /* forgotten if the next port is free */

	for (unsigned i = 0; i < UDP_PORT_TRIES && error == -EADDRINUSE; i++) {
		address_set_port(&local, (uint16_t)(port + i * x->port_step));
		error = datagram_open(&x->control, &local, &options, &tried);
	}
	if (error) {
		*failure = tried;
		return error;
	}
	address_set_port(&local, 0);
	options.plain = x->options.plain;
	options.receive_room_bytes = RECEIVE_ROOM_BYTES;
	options.send_room_bytes = address_is_loopback(&local)
					  ? SEND_ROOM_LOOPBACK_BYTES
					  : SEND_ROOM_BYTES;
	return datagram_open(&x->data, &local, &options, failure);
}

/* --- how long datagrams may be ----------------------------------------------
 */

/* Asking the kernel takes four calls: paths that must be alike are asked for
 * once. */
static size_t payload_bytes_to(const struct udp *x, unsigned node)
{
	const struct udp_peer *peer = &x->peers[node];

	for (unsigned lower = 0; lower < node; lower++) {
		const struct udp_peer *known = &x->peers[lower];
		bool alike =
			address_is_same_host(&known->control, &peer->control) ||
			(address_is_loopback(&known->control) &&
			 address_is_loopback(&peer->control));

		if (lower != udp_own(x) && alike)
			return known->segment_bytes + UDP_DATA_HEADER_BYTES;
	}
	return datagram_payload_bytes(&x->data.local, &peer->control);
}

/* Returns the bytes, or -errno. */
static int find_payload(struct udp *x, unsigned node, struct failure *failure)
{
	size_t bytes;

	errno = 0;
	bytes = payload_bytes_to(x, node);
	if (bytes == 0) {
		exchange_note_failure(
			&x->base, node, failure_status(errno, EXIT_PEER),
			errno ? strerror(errno) : "there is no route to it");
		return exchange_give_failure(&x->base, failure);
	}
	if (bytes < UDP_PAYLOAD_BYTES_MIN)
		return exchange_blame(&x->base, node, failure,
				      "a datagram to it may have %zu bytes, "
				      "and %d are needed",
				      bytes, UDP_PAYLOAD_BYTES_MIN);
	if (x->options.payload_bytes)
		bytes = MIN(bytes, x->options.payload_bytes);
	return (int)bytes;
}

static int find_payloads(struct udp *x, struct failure *failure)
{
	int largest = 0;

	for (unsigned node = 0; node < udp_node_count(x); node++) {
		int bytes;

		if (node == udp_own(x))
			continue;
		bytes = find_payload(x, node, failure);
		if (bytes < 0)
			return bytes;
		x->peers[node].segment_bytes =
			(uint32_t)bytes - UDP_DATA_HEADER_BYTES;
		largest = MAX(largest, bytes);
	}
	x->window_bytes = x->options.window_bytes
				  ? x->options.window_bytes
				  : x->data.receive_room_bytes / ROOM_PART;
	x->window_bytes = MAX(x->window_bytes, 2 * (uint64_t)largest);
	return 0;
}

/* --- opening and closing ----------------------------------------------------
 */

void udp_join_init(struct udp *x)
{
	x->control.fd = x->data.fd = -1;
}

int udp_join_open(struct udp *x, struct failure *failure)
{
	int error = udp_wire_derive_keys(x->base.rank->secret, &x->keys);

	x->opened_ns = clock_now_ns();
	x->peers = calloc(udp_node_count(x), sizeof(*x->peers));
	if (error || !x->peers)
		return failure_no_memory(failure);
	error = guess_ports(x, failure);
	if (error == 0)
		error = open_sockets(x, failure);
	return error ? error : find_payloads(x, failure);
}

void udp_join_close(struct udp *x)
{
	datagram_close(&x->control);
	datagram_close(&x->data);
	udp_page_close(x->page);
	for (unsigned node = 0; x->peers && node < udp_node_count(x); node++)
		arrivals_fini(&x->peers[node].in.arrivals);
	free(x->peers);
}
