/*
 * test_bare_exchange.c - the virtual network and its CPUs beside real ones
 *
 * Servers that only send a message to each other one and wait for as many: no
 * STATUS, no loss, no order but "the next one first".  So did those whose times
 * are below: user-level datagrams, two servers on a port of 100 Gbit/s; medians
 * of 200 exchanges each (two series of RAMCloud's MilliSort project).
 *
 * The CPU's two constants are fitted to a part of series A: 20, 60 and 100
 * servers, up to 16 KB.  The links in the middle are what makes the time of 40
 * KB grow with the square of the servers: all of them together move some 2
 * Tbit/s, however many they are, which is what two halves do that 11 links of
 * 50 Gbit/s join.  Neither a random order nor full ports come to that: 0.3 of
 * the time of 180 servers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "simulate/virtual_network.h"

#define STACK_BYTES ((size_t)64 << 10)
#define PACKET_BYTES 8192
#define PORT 1000
#define MIDDLE_LINKS 11
#define BEGIN_NS 1000
/* CPU time of a message and of each KB, for both sides together. */
#define SEND_NS 1440
#define RECEIVE_NS 1760
#define SEND_PS_PER_BYTE 67
#define RECEIVE_PS_PER_BYTE 83
#define WITHIN 1.5

static struct world world;
static struct virtual_network network;
static uint64_t message_bytes;

static void spend_ps(struct host *host, uint64_t ps)
{
	host_spend(host, ps / 1000);
}

/* Take all that has come; its message's own time is spent as its bytes come.
 */
static uint64_t take(struct host *host)
{
	struct virtual_socket *socket = network.sockets[host->number];
	uint64_t taken = 0;

	for (host_settle(host); socket->first; host_settle(host)) {
		uint64_t bytes = socket->first->byte_count;

		virtual_network_drop_first(socket);
		spend_ps(host, bytes * (RECEIVE_PS_PER_BYTE +
					RECEIVE_NS * 1000 / message_bytes));
		taken += bytes;
	}
	return taken;
}

static void send_message(struct host *host, unsigned to)
{
	static const uint8_t zeros[PACKET_BYTES];
	struct address address;
	uint64_t bytes;

	virtual_network_address(to, PORT, &address);
	host_spend(host, SEND_NS);
	for (uint64_t at = 0; at < message_bytes; at += bytes) {
		bytes = MIN(PACKET_BYTES, message_bytes - at);
		spend_ps(host, bytes * SEND_PS_PER_BYTE);
		virtual_network_put(host, 0, &address, zeros, bytes);
	}
}

static void serve(void *argument)
{
	struct host *host = argument;
	unsigned servers = world.host_count;
	uint64_t awaited = (servers - 1) * message_bytes;

	for (unsigned i = 1; i < servers; i++) {
		send_message(host, (host->number + i) % servers);
		awaited -= take(host);
	}
	while ((awaited -= take(host)) > 0)
		host_sleep(host, UINT64_MAX / 2, true);
}

/* The links of each half to the other one: as many, or fewer by rounding. */
static unsigned oversubscription(unsigned leaf_hosts)
{
	return DIV_ROUND_UP(leaf_hosts, MIN(leaf_hosts, MIDDLE_LINKS));
}

/* In us, until the last server has all. */
static double simulate(unsigned servers, uint64_t bytes)
{
	const struct virtual_network_options options = {
		.link_bits_per_s = (uint64_t)50 * 1000000000,
		.link_delay_ns = 200,
		.queue_bytes = INT32_MAX, /* nothing is dropped */
		.mtu_bytes = 9000,
		.leaf_hosts = DIV_ROUND_UP(servers, 2),
		.oversubscription = oversubscription(DIV_ROUND_UP(servers, 2)),
	};
	uint64_t end_ns = 0;

	message_bytes = bytes;
	assert_int_equal(
		world_init(&world, servers, 1, STACK_BYTES, BEGIN_NS, 1), 0);
	assert_int_equal(virtual_network_init(&network, &world, &options, 1),
			 0);
	for (unsigned i = 0; i < servers; i++) {
		struct virtual_socket *socket = network.sockets[i];

		*socket = (struct virtual_socket){ .open = true,
						   .port = PORT,
						   .room_bytes = INT32_MAX,
						   .last = &socket->first };
		world_start(&world.hosts[i], BEGIN_NS, serve, &world.hosts[i]);
	}
	assert_int_equal(world_run(&world), 0);
	assert_int_equal(network.counters.delivered,
			 network.counters.datagrams);
	for (unsigned i = 0; i < servers; i++)
		end_ns = MAX(end_ns, world.hosts[i].now_ns);
	virtual_network_fini(&network);
	world_fini(&world);
	return (double)(end_ns - BEGIN_NS) / 1e3;
}

static const struct {
	char series;
	unsigned servers;
	uint64_t bytes;
	double us;
} measured[] = {
	{ 'A', 20, 1000, 79.61 },     { 'A', 20, 4000, 72.28 },
	{ 'A', 20, 40000, 170.13 },   { 'A', 40, 1000, 157.04 },
	{ 'A', 40, 16000, 227.22 },   { 'A', 40, 40000, 324.92 },
	{ 'A', 80, 1000, 305.80 },    { 'A', 80, 8000, 341.73 },
	{ 'A', 80, 16000, 438.42 },   { 'A', 80, 40000, 1050.28 },
	{ 'A', 100, 1000, 383.87 },   { 'A', 100, 16000, 554.89 },
	{ 'A', 100, 40000, 1526.68 }, { 'A', 140, 8000, 661.75 },
	{ 'A', 140, 16000, 1276.74 }, { 'A', 140, 40000, 3026.32 },
	{ 'A', 200, 1000, 819.49 },   { 'A', 200, 8000, 1262.21 },
	{ 'B', 20, 1000, 70.84 },     { 'B', 20, 40000, 179.23 },
	{ 'B', 40, 16000, 247.82 },   { 'B', 40, 40000, 571.53 },
	{ 'B', 80, 1000, 273.14 },    { 'B', 80, 32000, 1013.02 },
	{ 'B', 100, 8000, 441.68 },   { 'B', 100, 40000, 1894.42 },
	{ 'B', 140, 16000, 1386.67 }, { 'B', 180, 1000, 624.33 },
	{ 'B', 180, 8000, 980.07 },
};

static void bare_exchange__is_as_measured(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(measured); i++) {
		double us = simulate(measured[i].servers, measured[i].bytes);
		double ratio = us / measured[i].us;

		print_message("%c %3u %5u %.2f\n", measured[i].series,
			      measured[i].servers, (unsigned)measured[i].bytes,
			      ratio);
		if (ratio > WITHIN || ratio < 1 / WITHIN)
			fail_msg("%c: %u servers, %u bytes: %.1f us, not %.1f",
				 measured[i].series, measured[i].servers,
				 (unsigned)measured[i].bytes, us,
				 measured[i].us);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_exchange__is_as_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
