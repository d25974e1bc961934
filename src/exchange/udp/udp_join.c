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
/* A few messages of the benchmark's size, and some STATUS of each of
 * RANK_NODES_MAX ranks; the kernel may grant less. */
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

/* --- hosts -------------------------------------------------------------------
 */

/* A slot for each node; what the ranks of a host share is in the slot of the
 * first of them. */
struct udp_host {
	unsigned first;
	unsigned rank_count;	       /* counted so far */
	size_t payload_bytes;	       /* 0: not known */
	size_t loopback_payload_bytes; /* in slot 0: to all loopback addresses
					*/
};

/* Which ranks have one host: by a hash table, since thousands of ranks have
 * millions of pairs.  NULL: there is no memory. */
static struct udp_host *find_hosts(const struct udp *x)
{
	const struct address *addresses = x->base.rank->addresses;
	unsigned count = udp_node_count(x);
	struct udp_host *hosts = calloc(count, sizeof(*hosts));
	unsigned *table = calloc(2 * (size_t)count, sizeof(*table));

	for (unsigned node = 0; hosts && table && node < count; node++) {
		unsigned at = address_host_hash(&addresses[node]) % (2 * count);

		/* An entry is the number of a node and 1; 0: it is free. */
		while (table[at] &&
		       !address_is_same_host(&addresses[table[at] - 1],
					     &addresses[node]))
			at = (at + 1) % (2 * count);
		if (table[at] == 0)
			table[at] = node + 1;
		hosts[node].first = table[at] - 1;
	}
	if (!table) {
		free(hosts);
		hosts = NULL;
	}
	free(table);
	return hosts;
}

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
static int guess_ports(struct udp *x, struct udp_host *hosts,
		       struct failure *failure)
{
	unsigned first = first_port(x), ranks = 1, last;

	for (unsigned node = 0; node < udp_node_count(x); node++) {
		struct udp_host *host = &hosts[hosts[node].first];

		udp_status_guess(x, node, (uint16_t)(first + host->rank_count));
		host->rank_count++;
		ranks = MAX(ranks, host->rank_count);
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
	struct datagram_options options = {
		.plain = true,
		.receive_room_bytes = RECEIVE_ROOM_BYTES,
	};
	struct address local = bound_address(x);
	uint16_t port = x->control_ports[udp_own(x)];
	int error = -EADDRINUSE;
	struct failure tried; /* forgotten if the next port is free */

	for (unsigned i = 0; i < UDP_PORT_TRIES && error == -EADDRINUSE; i++) {
		address_set_port(&local, (uint16_t)(port + i * x->port_step));
		error = datagram_open(&x->movers[0].control, &local, &options,
				      &tried);
	}
	if (error) {
		*failure = tried;
		return error;
	}
	address_set_port(&local, 0);
	for (unsigned i = 1; i < x->mover_count && error == 0; i++)
		error = datagram_open(&x->movers[i].control, &local, &options,
				      failure);
	options.plain = x->options.plain;
	options.send_room_bytes = address_is_loopback(&local)
					  ? SEND_ROOM_LOOPBACK_BYTES
					  : SEND_ROOM_BYTES;
	for (unsigned i = 0; i < x->mover_count && error == 0; i++)
		error = datagram_open(&x->movers[i].data, &local, &options,
				      failure);
	return error;
}

/* --- how long datagrams may be ----------------------------------------------
 */

/* Asking the kernel takes four calls: paths that must be alike are asked for
 * once. */
static size_t payload_bytes_to(const struct udp *x, struct udp_host *hosts,
			       unsigned node)
{
	const struct address *address = &x->base.rank->addresses[node];
	size_t *known = address_is_loopback(address)
				? &hosts[0].loopback_payload_bytes
				: &hosts[hosts[node].first].payload_bytes;

	if (*known == 0)
		*known = datagram_payload_bytes(&x->movers[0].data.local,
						address);
	return *known;
}

/* Returns the bytes, or -errno. */
static int find_payload(struct udp *x, struct udp_host *hosts, unsigned node,
			struct failure *failure)
{
	size_t bytes;

	errno = 0;
	bytes = payload_bytes_to(x, hosts, node);
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

static int find_payloads(struct udp *x, struct udp_host *hosts,
			 struct failure *failure)
{
	unsigned count = udp_node_count(x), own = udp_own(x);
	uint64_t room_bytes = x->movers[0].data.receive_room_bytes / ROOM_PART;
	int largest = 0;

	for (unsigned node = 0; node < count; node++) {
		int bytes;

		if (node == own)
			continue;
		bytes = find_payload(x, hosts, node, failure);
		if (bytes < 0)
			return bytes;
		x->segment_bytes[node] =
			(uint32_t)bytes - UDP_DATA_HEADER_BYTES;
		largest = MAX(largest, bytes);
	}
	x->base.payload_bytes = x->segment_bytes[own + 1 < count ? own + 1 : 0];
	x->window_bytes =
		x->options.window_bytes ? x->options.window_bytes : room_bytes;
	x->window_bytes = MAX(x->window_bytes, 2 * (uint64_t)largest);
	x->first_window_bytes =
		MIN(x->window_bytes, room_bytes) / MAX(1, count - 1);
	return 0;
}

/* --- opening and closing ----------------------------------------------------
 */

static int open_with(struct udp *x, struct udp_host *hosts,
		     struct failure *failure)
{
	int error = guess_ports(x, hosts, failure);

	if (error == 0)
		error = open_sockets(x, failure);
	return error ? error : find_payloads(x, hosts, failure);
}

int udp_join_open(struct udp *x, struct failure *failure)
{
	int error = udp_wire_derive_keys(x->base.rank->secret, &x->keys);
	struct udp_host *hosts = find_hosts(x);

	x->opened_ns = clock_now_ns();
	x->segment_bytes = calloc(udp_node_count(x), sizeof(*x->segment_bytes));
	if (error || !hosts || !x->segment_bytes || udp_status_open(x) < 0)
		error = failure_no_memory(failure);
	else
		error = udp_mover_open(x, failure);
	if (error == 0)
		error = open_with(x, hosts, failure);
	free(hosts);
	return error;
}

void udp_join_close(struct udp *x)
{
	udp_mover_close(x);
	udp_page_close(x->page);
	udp_status_close(x);
	free(x->segment_bytes);
}
