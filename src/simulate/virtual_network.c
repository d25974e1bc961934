/*
 * virtual_network.c - carry datagrams from host to host by way of switches
 */
#include "simulate/virtual_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/splitmix.h"

#define IP_BYTES 20
#define UDP_BYTES 8
/* Preamble, header, checksum and gap; and the least that a frame takes. */
#define ETHERNET_BYTES 38
#define FRAME_BYTES_MIN 84
#define PS_PER_S ((unsigned __int128)1000000000000)
/* What a datagram takes of a socket's buffer: it lies in a block of a power of
 * two, beside its headers, and has a struct of the kernel's. */
#define BLOCK_BYTES_MIN 512
#define BLOCK_HEADS_BYTES 384
#define KERNEL_STRUCT_BYTES 256
#define FIRST_ADDRESS 0x0a000001

/* What an event of the digest is. */
enum { NOTE_DELIVERED = 1, NOTE_QUEUE_DROP, NOTE_ROOM_DROP, NOTE_LOST };

static uint64_t ps_of(const struct virtual_network *network, uint64_t bytes)
{
	return (uint64_t)(bytes * 8 * PS_PER_S /
			  network->options.link_bits_per_s);
}

/* --- hosts, sockets and their addresses --------------------------------------
 */

void virtual_network_address(unsigned host, uint16_t port,
			     struct address *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&address->socket;

	*address = (struct address){ .length = sizeof(*in) };
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(FIRST_ADDRESS + host);
	in->sin_port = htons(port);
}

static struct virtual_socket *find_socket(struct virtual_network *network,
					  const struct packet *packet)
{
	for (unsigned i = 0; i < VIRTUAL_SOCKETS; i++) {
		struct virtual_socket *socket =
			&network->sockets[packet->to][i];

		if (socket->open && socket->port == packet->to_port)
			return socket;
	}
	return NULL;
}

static uint32_t room_of(const struct packet *packet)
{
	uint32_t block_bytes = BLOCK_BYTES_MIN;

	while (block_bytes < packet->byte_count + BLOCK_HEADS_BYTES)
		block_bytes *= 2;
	return block_bytes + KERNEL_STRUCT_BYTES;
}

void virtual_network_drop_first(struct virtual_socket *socket)
{
	struct packet *packet = socket->first;

	socket->used_bytes -= room_of(packet);
	socket->first = packet->next;
	if (!socket->first)
		socket->last = &socket->first;
	free(packet);
}

static const struct virtual_socket *socket_of(const struct host *host,
					      unsigned socket)
{
	return &host->world->network->sockets[host->number][socket];
}

bool virtual_network_has_room(const struct host *host, unsigned socket)
{
	const struct virtual_socket *virtual = socket_of(host, socket);

	return virtual->free_ps <= host->now_ns * 1000 + virtual->send_room_ps;
}

uint64_t virtual_network_writable_ns(const struct host *host, unsigned socket)
{
	const struct virtual_socket *virtual = socket_of(host, socket);
	uint64_t half_ps = MIN(virtual->free_ps, virtual->send_room_ps / 2);

	return MAX(host->now_ns,
		   DIV_ROUND_UP(virtual->free_ps - half_ps, 1000));
}

/* --- the end of the way ------------------------------------------------------
 */

static void lose(struct packet *packet, uint64_t *counter, unsigned what)
{
	++*counter;
	world_note(packet->network->world, what,
		   (uint64_t)packet->from << 32 | packet->to);
	free(packet);
}

static void deliver(struct packet *packet)
{
	struct virtual_network *network = packet->network;
	struct virtual_socket *socket = find_socket(network, packet);

	if (!socket) {
		lose(packet, &network->counters.lost, NOTE_LOST);
		return;
	}
	if (socket->used_bytes + room_of(packet) > socket->room_bytes) {
		lose(packet, &network->counters.room_drops, NOTE_ROOM_DROP);
		return;
	}
	network->counters.delivered++;
	world_note(network->world, NOTE_DELIVERED + 4 * packet->byte_count,
		   (uint64_t)packet->from << 32 | packet->to);
	packet->next = NULL;
	*socket->last = packet;
	socket->last = &packet->next;
	socket->used_bytes += room_of(packet);
	world_wake(network->world, packet->to,
		   (uint64_t)1 << (socket - network->sockets[packet->to]));
}

static bool happens(struct virtual_network *network, uint64_t chance)
{
	return chance > 0 &&
	       splitmix_next(&network->random) % VIRTUAL_CHANCE < chance;
}

static bool is_lost(struct virtual_network *network,
		    const struct packet *packet)
{
	bool lost = network->options.long_loss_bytes > 0 &&
		    packet->from == network->options.long_loss_host &&
		    packet->byte_count > network->options.long_loss_bytes;

	for (unsigned i = 0; i < packet->fragments; i++)
		lost |= happens(network, network->options.loss);
	return lost;
}

static void duplicate(struct packet *packet)
{
	size_t bytes = sizeof(*packet) + packet->kept_bytes;
	struct packet *copy = malloc(bytes);

	packet->network->counters.duplicated++;
	if (!copy) {
		packet->network->world->error = -ENOMEM;
		return;
	}
	memcpy(copy, packet, bytes);
	deliver(copy);
}

static void end_way(struct packet *packet)
{
	struct virtual_network *network = packet->network;
	const struct virtual_network_options *options = &network->options;

	if (is_lost(network, packet)) {
		lose(packet, &network->counters.lost, NOTE_LOST);
		return;
	}
	if (packet->kept_bytes > 0 && happens(network, options->corruption)) {
		uint64_t bit = splitmix_next(&network->random) %
			       (8 * (uint64_t)packet->kept_bytes);

		network->counters.corrupted++;
		packet->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	if (happens(network, options->duplication))
		duplicate(packet);
	if (happens(network, options->reordering)) {
		network->counters.reordered++;
		world_add(network->world, &packet->event,
			  network->world->now_ns + options->reordered_ns);
		return;
	}
	deliver(packet);
}

/* --- the way -----------------------------------------------------------------
 */

/* The switch port that the packet comes to next; NULL: it is there. */
static struct virtual_port *next_port(const struct packet *packet)
{
	struct virtual_network *network = packet->network;
	unsigned from = packet->from / network->leaf_hosts;
	unsigned to = packet->to / network->leaf_hosts;
	unsigned hop = packet->hops + (from == to ? 2 : 0);
	uint64_t flow = (uint64_t)packet->from << 48 ^
			(uint64_t)packet->to << 32 ^
			(uint64_t)packet->from_port << 16 ^ packet->to_port;
	unsigned spine =
		(unsigned)(splitmix_next(&flow) % network->spine_count);

	switch (hop) {
	case 0:
		return &network->up[from * network->spine_count + spine];
	case 1:
		return &network->down[to * network->spine_count + spine];
	case 2:
		return &network->to_host[packet->to];
	default:
		return NULL;
	}
}

/* Send the packet behind what the link has to send.  queue_ps: how much that
 * may be.  False: it is more. */
static bool transmit(struct packet *packet, struct virtual_port *port,
		     uint64_t now_ns, uint64_t queue_ps)
{
	struct virtual_network *network = packet->network;
	uint64_t begin_ps = MAX(port->free_ps, now_ns * 1000);
	uint64_t end_ps = begin_ps + ps_of(network, packet->wire_bytes);

	if (end_ps - now_ns * 1000 > queue_ps)
		return false;
	port->free_ps = end_ps;
	packet->out_ns =
		DIV_ROUND_UP(end_ps, 1000) + network->options.link_delay_ns;
	packet->next = NULL;
	if (!port->first)
		world_add(network->world, &port->event, packet->out_ns);
	*port->last = packet;
	port->last = &packet->next;
	return true;
}

static struct packet *take_first(struct virtual_port *port)
{
	struct packet *packet = port->first;

	port->first = packet->next;
	if (!port->first)
		port->last = &port->first;
	return packet;
}

/* Only the first packet of a port has an event: the others follow it. */
static void come_out(struct event *event)
{
	struct virtual_port *port = (struct virtual_port *)event, *next;
	struct virtual_network *network = port->network;
	struct packet *packet = take_first(port);

	if (port->first)
		world_add(network->world, &port->event, port->first->out_ns);
	next = next_port(packet);
	if (!next)
		end_way(packet);
	else if (transmit(packet, next, network->world->now_ns,
			  network->queue_ps))
		packet->hops++;
	else
		lose(packet, &network->counters.queue_drops, NOTE_QUEUE_DROP);
}

static void come_late(struct event *event)
{
	deliver((struct packet *)event);
}

/* Without the zeros at the end. */
static size_t kept_bytes_of(const uint8_t *bytes, size_t byte_count)
{
	while (byte_count >= 8 && load_le64(bytes + byte_count - 8) == 0)
		byte_count -= 8;
	while (byte_count > 0 && bytes[byte_count - 1] == 0)
		byte_count--;
	return byte_count;
}

static struct packet *make_packet(struct host *host, unsigned socket,
				  const struct address *to,
				  const uint8_t *bytes, size_t byte_count)
{
	struct virtual_network *network = host->world->network;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&to->socket;
	size_t kept_bytes = kept_bytes_of(bytes, byte_count);
	struct packet *packet = malloc(sizeof(*packet) + kept_bytes);
	uint32_t fragments = (uint32_t)DIV_ROUND_UP(
		byte_count + UDP_BYTES, network->options.mtu_bytes - IP_BYTES);

	if (!packet)
		return NULL;
	*packet = (struct packet){
		.event = { .occur = come_late },
		.network = network,
		.from = host->number,
		.to = ntohl(in->sin_addr.s_addr) - FIRST_ADDRESS,
		.from_port = network->sockets[host->number][socket].port,
		.to_port = ntohs(in->sin_port),
		.byte_count = (uint32_t)byte_count,
		.fragments = fragments,
		.wire_bytes =
			MAX((uint32_t)byte_count + UDP_BYTES +
				    fragments * (IP_BYTES + ETHERNET_BYTES),
			    FRAME_BYTES_MIN),
		.kept_bytes = (uint32_t)kept_bytes,
	};
	memcpy(packet->bytes, bytes, kept_bytes);
	return packet;
}

void virtual_network_put(struct host *host, unsigned socket,
			 const struct address *to, const uint8_t *bytes,
			 size_t byte_count)
{
	struct virtual_network *network = host->world->network;
	struct virtual_socket
		*virtual = &network->sockets[host->number][socket];
	struct packet *packet =
		make_packet(host, socket, to, bytes, byte_count);

	if (!packet) {
		host->world->error = -ENOMEM;
		return;
	}
	network->counters.datagrams++;
	network->counters.bytes += packet->wire_bytes;
	virtual->free_ps = MAX(virtual->free_ps, host->now_ns * 1000) +
			   ps_of(network, packet->wire_bytes);
	if (packet->to >= host->world->host_count)
		lose(packet, &network->counters.lost, NOTE_LOST);
	else
		transmit(packet, &network->from_host[host->number],
			 host->now_ns, UINT64_MAX);
}

/* --- making it --------------------------------------------------------------
 */

int virtual_network_init(struct virtual_network *network, struct world *world,
			 const struct virtual_network_options *options,
			 uint64_t seed)
{
	unsigned hosts = world->host_count;
	size_t links;

	*network = (struct virtual_network){
		.world = world,
		.options = *options,
		.random = seed,
		.leaf_hosts = options->leaf_hosts ? options->leaf_hosts : hosts,
	};
	network->leaf_count = DIV_ROUND_UP(hosts, network->leaf_hosts);
	network->spine_count = DIV_ROUND_UP(network->leaf_hosts,
					    MAX(1, options->oversubscription));
	network->queue_ps = ps_of(network, options->queue_bytes);
	links = (size_t)network->leaf_count * network->spine_count;
	network->port_count = 2 * hosts + 2 * links;
	network->ports = calloc(network->port_count, sizeof(*network->ports));
	network->sockets = calloc(hosts, sizeof(*network->sockets));
	world->network = network;
	if (!network->ports || !network->sockets)
		return -ENOMEM;
	network->from_host = network->ports;
	network->to_host = network->from_host + hosts;
	network->up = network->to_host + hosts;
	network->down = network->up + links;
	virtual_network_clear(network);
	return 0;
}

/* What comes late is in no port, but in the queue of events. */
static void drop_events(struct virtual_network *network)
{
	struct event_queue *queue = &network->world->queue;

	while (event_queue_next_ns(queue) != UINT64_MAX) {
		struct event *event = event_queue_take(queue);

		if (event->occur == come_late)
			free(event);
	}
}

void virtual_network_clear(struct virtual_network *network)
{
	drop_events(network);
	for (size_t i = 0; i < network->port_count; i++) {
		struct virtual_port *port = &network->ports[i];

		while (port->first)
			free(take_first(port));
		*port = (struct virtual_port){
			.event = { .occur = come_out },
			.network = network,
			.last = &port->first,
		};
	}
	for (unsigned i = 0; i < network->world->host_count; i++)
		for (unsigned k = 0; k < VIRTUAL_SOCKETS; k++) {
			network->sockets[i][k].open = false;
			while (network->sockets[i][k].first)
				virtual_network_drop_first(
					&network->sockets[i][k]);
		}
}

void virtual_network_fini(struct virtual_network *network)
{
	if (network->from_host)
		virtual_network_clear(network);
	free(network->ports);
	free(network->sockets);
}
