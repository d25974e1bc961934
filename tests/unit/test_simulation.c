/*
 * test_simulation.c - ranks in simulated time: one seed gives one run, all
 * bytes arrive whatever the network does, and what takes time takes it
 */
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "simulate/simulation.h"

#define MS ((uint64_t)1000000)
#define NODES 12
#define MANY 256
/* All have ended after the deadline and this. */
#define END_NS_MAX (6000 * MS)

static struct simulation_figures figures;
static struct failure failure;

static struct simulation_options usual(void)
{
	struct simulation_options options = simulation_usual();

	options.node_count = NODES;
	options.message_bytes = 5000;
	options.schedule = EXCHANGE_ALL_AT_ONCE;
	options.deadline_ns = 1000 * MS;
	return options;
}

static void run(const struct simulation_options *options)
{
	assert_int_equal(simulation_run(options, &figures, &failure), 0);
	assert_true(figures.compared);
	assert_true(figures.max_ns > 0 && figures.median_ns <= figures.max_ns);
}

static void run_to_fail(const struct simulation_options *options,
			enum exit_status status, const char *what,
			const char *why)
{
	assert_true(simulation_run(options, &figures, &failure) < 0);
	assert_int_equal(failure.status, status);
	if (!strstr(failure.why, what) || !strstr(failure.why, why))
		fail_msg("not '%s' and '%s': %s", what, why, failure.why);
}

/* --- events ------------------------------------------------------------------
 */

static void never(struct event *event)
{
	(void)event;
	fail();
}

static void events__come_in_order(void **state)
{
	static const uint64_t times[] = { 5, 3, 9, 3, 1, 7, 5, 5, 0, 2, 8 };
	struct event events[ARRAY_LEN(times)];
	struct event_queue queue = { 0 };
	uint64_t last_ns = 0;
	const struct event *last = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		events[i] = (struct event){ .occur = never };
		event_queue_add(&queue, &events[i], times[i]);
	}
	/* Later, and then the last of its time. */
	event_queue_add(&queue, &events[1], 5);
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		uint64_t at_ns = event_queue_next_ns(&queue);
		const struct event *event = event_queue_take(&queue);

		assert_true(at_ns >= last_ns);
		assert_int_equal(
			at_ns, event == &events[1] ? 5 : times[event - events]);
		if (last && at_ns == last_ns)
			assert_true(event > last || event == &events[1]);
		last_ns = at_ns;
		last = event;
	}
	assert_int_equal(event_queue_next_ns(&queue), UINT64_MAX);
	event_queue_fini(&queue);
}

/* --- one seed, one run
 * --------------------------------------------------------
 */

static void simulation__a_seed_is_a_run(void **state)
{
	struct simulation_options options = usual();
	uint64_t digest;

	(void)state;
	options.network.loss = VIRTUAL_CHANCE / 100;
	options.noise[0] =
		(struct interruption){ .gap_ns = MS / 10, .length_ns = 3000 };
	options.noise_count = 1;
	run(&options);
	digest = figures.digest;
	run(&options);
	assert_int_equal(figures.digest, digest);
	options.seed = 2;
	run(&options);
	assert_int_not_equal(figures.digest, digest);
}

/* All threads of a rank are CPUs of the world. */
static void simulation__threads_share_the_bytes(void **state)
{
	struct simulation_options options = usual();
	uint64_t alone_ns, digest;

	(void)state;
	options.message_bytes = 300000;
	options.network.link_bits_per_s = (uint64_t)100 * 1000000000;
	options.network.queue_bytes = MIB;
	run(&options);
	alone_ns = figures.max_ns;
	options.thread_count = 4;
	run(&options);
	digest = figures.digest;
	assert_in_range(figures.max_ns, alone_ns / 4, alone_ns / 2);
	run(&options);
	assert_int_equal(figures.digest, digest);
	/* A rank that dies does so with all its threads. */
	options.deaths[0] = (struct simulation_event){ 3, MS / 10, 0 };
	options.death_count = 1;
	run_to_fail(&options, EXIT_PEER, "rank 3 ", "");
}

/* A timeline is no part of the run. */
static void simulation__a_timeline_changes_nothing(void **state)
{
	struct simulation_options options = usual();
	uint64_t digest;

	(void)state;
	run(&options);
	digest = figures.digest;
	options.trace_path = "/dev/null";
	run_to_fail(&options, EXIT_FILE, "", "");
	options.trace_path = "test_simulation.trace";
	run(&options);
	assert_int_equal(figures.digest, digest);
	assert_int_equal(remove(options.trace_path), 0);
}

/* --- what the network does
 * ----------------------------------------------------
 */

static void simulation__all_bytes_arrive(void **state)
{
	static const enum exchange_schedule schedules[] = {
		EXCHANGE_ROUNDS, EXCHANGE_ALL_AT_ONCE, EXCHANGE_GRID
	};
	struct simulation_options options = usual();

	(void)state;
	options.network.loss = VIRTUAL_CHANCE / 50;
	options.network.duplication = VIRTUAL_CHANCE / 50;
	options.network.reordering = VIRTUAL_CHANCE / 50;
	options.network.corruption = VIRTUAL_CHANCE / 50;
	options.says_hello = true;
	for (size_t i = 0; i < ARRAY_LEN(schedules); i++)
		for (unsigned plain = 0; plain < 2; plain++) {
			options.schedule = schedules[i];
			options.plain = plain;
			options.seed = 10 + i;
			run(&options);
			assert_true(figures.network.lost > 0 &&
				    figures.network.duplicated > 0 &&
				    figures.network.reordered > 0 &&
				    figures.network.corrupted > 0);
			assert_true(figures.ranks.resent_datagrams > 0 &&
				    figures.ranks.damaged_datagrams > 0 &&
				    figures.ranks.duplicate_datagrams > 0);
			assert_true(figures.ranks.received_bytes >=
				    NODES * (NODES - 1) *
					    options.message_bytes);
		}
}

/* One rank sends to one other; half as fast a link takes nearly twice as long.
 */
static void simulation__a_link_takes_its_time(void **state)
{
	struct simulation_options options = usual();
	uint64_t fast_ns, bits = 8 * 1000000;

	(void)state;
	options.node_count = 2;
	options.message_bytes = 1000000;
	run(&options);
	fast_ns = figures.max_ns;
	options.network.link_bits_per_s = 1000000000;
	run(&options);
	assert_true(figures.max_ns > bits && figures.max_ns < 2 * bits);
	assert_true(fast_ns < figures.max_ns);
	assert_int_equal(figures.network.queue_drops, 0);
}

/* A full data socket leaves the one for STATUS its room: rounds on a link that
 * is slower than the CPU do not wait for timers. */
static void simulation__sockets_have_room_of_their_own(void **state)
{
	struct simulation_options options = usual();
	uint64_t bits = (uint64_t)8 * 390000 * (NODES - 1);

	(void)state;
	options.message_bytes = 390000;
	options.schedule = EXCHANGE_ROUNDS;
	options.network.send = (struct virtual_cost){ 800, 200, 33 };
	options.network.receive = (struct virtual_cost){ 700, 290, 140 };
	run(&options);
	assert_in_range(figures.max_ns, bits / 10, bits / 10 * 3 / 2);
}

static void simulation__fragments_are_packets(void **state)
{
	struct simulation_options options = usual();
	uint64_t bytes;

	(void)state;
	options.message_bytes = 100000;
	options.node_count = 2;
	options.network.mtu_bytes = 9000;
	run(&options);
	bytes = figures.network.bytes;
	options.network.mtu_bytes = 1500;
	options.network.datagram_bytes = 8972;
	run(&options);
	assert_in_range(figures.network.bytes, bytes + bytes / 50,
			bytes + bytes / 10);
	options.network.loss = VIRTUAL_CHANCE / 50;
	run(&options);
	assert_true(figures.ranks.resent_datagrams > 0);
}

/* What a narrow middle delays, short queues drop. */
static void simulation__switches_drop(void **state)
{
	struct simulation_options options = usual();
	uint64_t fast_ns;

	(void)state;
	options.message_bytes = 20000;
	options.network.link_bits_per_s = 1000000000;
	options.network.queue_bytes = 4 * MIB;
	run(&options);
	fast_ns = figures.max_ns;
	assert_int_equal(figures.network.queue_drops, 0);
	options.network.leaf_hosts = 4;
	options.network.oversubscription = 4;
	run(&options);
	assert_true(figures.max_ns > 2 * fast_ns);
	assert_int_equal(figures.network.queue_drops, 0);
	options.network.queue_bytes = 16 * KIB;
	run(&options);
	assert_true(figures.network.queue_drops > 0 &&
		    figures.ranks.resent_datagrams > 0);
}

static void simulation__sockets_drop(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.message_bytes = 20000;
	options.network.queue_bytes = 4 * MIB;
	options.network.receive_room_max = 4 * KIB;
	run(&options);
	assert_true(figures.network.room_drops > 0 &&
		    figures.ranks.resent_datagrams > 0);
}

/* A rank that waits for all others asks them all, and its socket has no room
 * for the answers if they come together: not the same ones are dropped each
 * time, or it would give a rank up that answers. */
static void simulation__sockets_do_not_drop_the_same_answers(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.node_count = 32;
	options.message_bytes = 528;
	options.lengths = SIMULATION_SKEWED;
	options.times = 6;
	options.plain = true;
	options.skew_ns = 100 * MS;
	options.deadline_ns = 3000 * MS;
	options.network.link_bits_per_s = (uint64_t)100 * 1000000000;
	options.network.link_delay_ns = 50000;
	options.network.queue_bytes = 7096;
	options.network.receive_room_max = 7096;
	for (options.seed = 308109; options.seed < 308119; options.seed++)
		run(&options);
}

/* --- what a socket takes -----------------------------------------------------
 */

#define SEGMENTS 10
#define SEGMENT_BYTES 1000
/* Of the buffer: 24.4 segments, of 1066 bytes on the wire. */
#define ROOM_BYTES 26000

static bool sends_singly;
static int taken_at_last, taken_later;
static short writable_with_room, writable_when_empty;

static int send_segments(struct datagram_socket *socket, unsigned count)
{
	static uint8_t bytes[SEGMENTS][SEGMENT_BYTES];
	struct iovec parts[SEGMENTS];
	struct address to;

	virtual_network_address(0, 1, &to);
	for (unsigned i = 0; i < count; i++)
		parts[i] = (struct iovec){ bytes[i], SEGMENT_BYTES };
	return datagram_send(socket, &to, parts, count, SEGMENT_BYTES,
			     (size_t)count * SEGMENT_BYTES);
}

static short poll_to_write(const struct datagram_socket *socket)
{
	struct pollfd fd = { .fd = socket->fd, .events = POLLOUT };
	const struct timespec glance = { 0 };

	ppoll(&fd, 1, &glance, NULL);
	return fd.revents;
}

/* Fill the socket's buffer, let the link send 6250 bytes of it, and fill it
 * again. */
static void fill_socket(void *argument)
{
	/* The kernel doubles it. */
	const struct datagram_options options = {
		.plain = sends_singly,
		.send_room_bytes = ROOM_BYTES / 2,
	};
	struct host *host = argument;
	struct datagram_socket socket;
	struct address local;

	virtual_network_address(host->number, 0, &local);
	datagram_open(&socket, &local, &options, &failure);
	do
		taken_at_last = send_segments(&socket, SEGMENTS);
	while (taken_at_last == SEGMENTS);
	host_sleep(host, host->now_ns + 50 * MS, false);
	writable_with_room = poll_to_write(&socket);
	taken_later = send_segments(&socket, SEGMENTS);
	host_sleep(host, host->now_ns + 1000 * MS, false);
	writable_when_empty = poll_to_write(&socket);
	datagram_close(&socket);
}

static void fill_a_socket(bool singly)
{
	const struct virtual_network_options options = {
		.link_bits_per_s = 1000000,
		.mtu_bytes = 1500,
	};
	struct virtual_network network;
	struct world world;

	sends_singly = singly;
	assert_int_equal(world_init(&world, 1, 1, (size_t)256 << 10, MS, 1), 0);
	assert_int_equal(virtual_network_init(&network, &world, &options, 1),
			 0);
	world_start(&world.hosts[0], MS, fill_socket, &world.hosts[0]);
	assert_int_equal(world_run(&world), 0);
	virtual_network_fini(&network);
	world_fini(&world);
	/* poll() tells of room when half of the buffer is free. */
	assert_int_equal(writable_with_room, 0);
	assert_int_equal(writable_when_empty, POLLOUT);
}

/* As the kernel does: a batch is one message, which is taken wholly while the
 * buffer has any room, and not at all if it has none. */
static void simulation__a_socket_takes_batches_wholly(void **state)
{
	(void)state;
	fill_a_socket(false);
	assert_int_equal(taken_at_last, 0);
	assert_int_equal(taken_later, SEGMENTS);
}

/* Single segments are a message each: those are taken that find room. */
static void simulation__a_socket_takes_segments_singly(void **state)
{
	(void)state;
	fill_a_socket(true);
	assert_int_equal(taken_at_last, 5);
	assert_int_equal(taken_later, 6);
}

/* --- what a rank does
 * ---------------------------------------------------------
 */

static void simulation__cpus_take_time(void **state)
{
	struct simulation_options options = usual();
	uint64_t usual_ns;

	(void)state;
	run(&options);
	usual_ns = figures.max_ns;
	options.slow[0] =
		(struct simulation_event){ .rank = 3, .length_ns = 20 };
	options.slow_count = 1;
	run(&options);
	assert_true(figures.max_ns > 2 * usual_ns);
	options.slow_count = 0;
	options.pauses[0] = (struct simulation_event){ .rank = 3,
						       .at_ns = 1,
						       .length_ns = 100 * MS };
	options.pause_count = 1;
	run(&options);
	assert_in_range(figures.max_ns, 100 * MS, 300 * MS);
}

/* STATUS of a collective with messages of so many bytes, at most: beside two
 * hellos for each pair, a barrier, and what all say to leave. */
static uint64_t status_of(uint64_t message_bytes)
{
	struct simulation_options options = usual();
	const uint64_t others = NODES - 1;

	options.says_hello = true;
	options.message_bytes = message_bytes;
	run(&options);
	assert_int_equal(figures.ranks.resent_datagrams, 0);
	return figures.ranks.status_datagrams - 2 * NODES * others -
	       2 * others - 3 * others;
}

/* An announcement for each pair; and only half of the messages that fit into a
 * first window have to be acknowledged by a STATUS, as the others meet DATA. */
static void simulation__short_messages_need_few_status(void **state)
{
	const uint64_t pairs = NODES * (NODES - 1);

	(void)state;
	assert_true(status_of(0) <= pairs);
	assert_true(status_of(1000) <= pairs + pairs / 2 + NODES);
}

/* So many ranks are told one by one, each by the thread that it belongs to. */
static void simulation__threads_announce_once(void **state)
{
	struct simulation_options options = usual();
	uint64_t by_one;

	(void)state;
	options.node_count = EXCHANGE_KNOWN_MAX + 2;
	options.message_bytes = 0;
	run(&options);
	by_one = figures.ranks.status_datagrams;
	options.thread_count = 3;
	run(&options);
	assert_true(figures.ranks.status_datagrams <= by_one);
}

static void simulation__a_dead_rank_is_named(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.deaths[0] =
		(struct simulation_event){ .rank = 3, .at_ns = 20000 };
	options.death_count = 1;
	run_to_fail(&options, EXIT_PEER, "rank 3 (10.0.0.4:7300): has ",
		    "1.0 s");
	assert_in_range(figures.end_ns, options.deadline_ns, END_NS_MAX);
}

/* All ranks are stopped for longer than the deadline, as virtual machines may
 * be, and go on one after the other: whenever that happens, each finds that it
 * was away itself, and gives no other one up. */
static void simulation__a_rank_that_was_away_gives_none_up(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.node_count = 2;
	options.skew_ns = 0;
	options.pause_count = 2;
	for (uint64_t at_ns = 0; at_ns < MS / 10; at_ns += 100) {
		for (unsigned rank = 0; rank < 2; rank++)
			options.pauses[rank] = (struct simulation_event){
				.rank = rank,
				.at_ns = at_ns,
				.length_ns = (5000 + 100 * rank) * MS,
			};
		if (simulation_run(&options, &figures, &failure) < 0)
			fail_msg("stopped after %" PRIu64 " ns: %s", at_ns,
				 failure.why);
	}
}

static void simulation__a_path_that_loses_long_ones(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.network.long_loss_host = 3;
	options.network.long_loss_bytes = 1000;
	run_to_fail(&options, EXIT_PEER, "rank 3 (10.0.0.4:7300): ",
		    "nothing that it sent has arrived for 1.0 s, though it");
	assert_in_range(figures.end_ns, options.deadline_ns, END_NS_MAX);
}

/* Messages of many ranks are zeros; their lengths are checked all the same. */
static void simulation__many_ranks(void **state)
{
	struct simulation_options options = usual();

	(void)state;
	options.node_count = 130;
	options.message_bytes = 16000;
	options.schedule = EXCHANGE_GRID;
	options.network.corruption = VIRTUAL_CHANCE / 1000;
	assert_int_equal(simulation_run(&options, &figures, &failure), 0);
	assert_false(figures.compared);
	assert_true(figures.ranks.damaged_datagrams > 0);
}

/* --- hundreds of ranks -------------------------------------------------------
 */

static struct simulation_options many(void)
{
	struct simulation_options options = usual();

	options.node_count = MANY;
	options.message_bytes = 100;
	options.schedule = EXCHANGE_GRID;
	options.deadline_ns = 200 * MS;
	options.network.receive_room_max = 208 * KIB;
	return options;
}

/* Rank 0's socket has no room for what all say that leave at once. */
static void simulation__many_ranks_leave(void **state)
{
	struct simulation_options options = many();

	(void)state;
	options.deadline_ns = 5000 * MS;
	for (unsigned percent = 0; percent < 2; percent++) {
		options.network.loss = percent * VIRTUAL_CHANCE / 100;
		run(&options);
		assert_true(figures.end_ns < figures.max_ns + 50 * MS);
	}
}

/* All ranks that live name the dead one, whatever its place is among those that
 * pass it on.  Each pair queries and answers; if all told all besides, it would
 * be five STATUS for each pair. */
static void simulation__a_failure_among_many(void **state)
{
	static const unsigned dead[] = { 0, 3, 128 };
	static struct simulation_outcome outcomes[MANY];
	struct simulation_options options = many();
	uint64_t pairs = options.node_count * (options.node_count - 1);

	(void)state;
	options.outcomes = outcomes;
	options.death_count = 1;
	options.network.loss = VIRTUAL_CHANCE / 20;
	for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
		char name[32];

		options.deaths[0].rank = dead[i];
		snprintf(name, sizeof(name), "rank %u (", dead[i]);
		run_to_fail(&options, EXIT_PEER, name, "0.2 s");
		for (unsigned node = 0; node < options.node_count; node++)
			assert_true(node == dead[i] ||
				    (outcomes[node].has_ended &&
				     outcomes[node].blamed == dead[i]));
		assert_true(figures.end_ns < 2 * options.deadline_ns);
		assert_true(figures.ranks.status_datagrams < 3 * pairs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events__come_in_order),
		cmocka_unit_test(simulation__a_seed_is_a_run),
		cmocka_unit_test(simulation__threads_share_the_bytes),
		cmocka_unit_test(simulation__a_timeline_changes_nothing),
		cmocka_unit_test(simulation__all_bytes_arrive),
		cmocka_unit_test(simulation__a_link_takes_its_time),
		cmocka_unit_test(simulation__sockets_have_room_of_their_own),
		cmocka_unit_test(simulation__fragments_are_packets),
		cmocka_unit_test(simulation__switches_drop),
		cmocka_unit_test(simulation__sockets_drop),
		cmocka_unit_test(
			simulation__sockets_do_not_drop_the_same_answers),
		cmocka_unit_test(simulation__a_socket_takes_batches_wholly),
		cmocka_unit_test(simulation__a_socket_takes_segments_singly),
		cmocka_unit_test(simulation__cpus_take_time),
		cmocka_unit_test(simulation__short_messages_need_few_status),
		cmocka_unit_test(simulation__threads_announce_once),
		cmocka_unit_test(simulation__a_dead_rank_is_named),
		cmocka_unit_test(
			simulation__a_rank_that_was_away_gives_none_up),
		cmocka_unit_test(simulation__a_path_that_loses_long_ones),
		cmocka_unit_test(simulation__many_ranks),
		cmocka_unit_test(simulation__many_ranks_leave),
		cmocka_unit_test(simulation__a_failure_among_many),
	};

	return cmocka_run_group_tests_name("simulation", tests, NULL, NULL);
}
