/*
 * test_cluster_paths.c - ranks whose network loses, or of which one goes away,
 * in simulated time
 *
 * A network that loses, damages, doubles and delays some datagrams changes no
 * byte of the output.  If one rank is cut off, or a path between two of them,
 * or if a path takes short datagrams only, or if a rank says where it stands
 * and sends no record, then all others end with status 4, within the deadline
 * and five seconds, and leave nothing.
 *
 * check_cluster_netns.sh does some of it with processes and a kernel's network.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster_commands.h"

#define HOSTS 32
#define RANKS 4
#define SEEDS 100
#define SEEDS_BEYOND 3
/* What the message may be about, and the job's end, in a while. */
#define END_WITHIN_NS ((DEADLINE_S + 5) * SECOND_NS)
#define MOMENT_NS (SECOND_NS / 25)
#define NONE UINT_MAX
#define ANY (UINT_MAX - 1)
#define PATHS_MAX 2

/* --- a network that changes in the middle of a job --------------------------
 */

/* Datagrams from one rank to another are lost if they are longer than so many
 * bytes, and unless is_of_data, also those of the other socket. */
struct lost_path {
	unsigned from, to;
	size_t longer_than;
	bool is_of_data;
};

static struct lost_path paths[PATHS_MAX];
static unsigned path_count;
static unsigned stopped_rank; /* or NONE */
static unsigned stops;
static uint64_t stop_ns;
/* All that begins when so many datagrams have been sent: then it is now. */
static uint64_t sent_datagrams, begins_at_datagram;
static bool has_begun;
static uint64_t starts_ns[HOSTS]; /* of each rank */
static uint64_t begun_ns;

static bool is_lost(unsigned from, unsigned to, unsigned socket,
		    size_t byte_count)
{
	for (unsigned i = 0; i < path_count; i++) {
		const struct lost_path *path = &paths[i];

		if ((path->from == ANY || path->from == from) &&
		    (path->to == ANY || path->to == to) &&
		    (!path->is_of_data || socket == DATA) &&
		    byte_count > path->longer_than)
			return true;
	}
	return false;
}

/* The host does nothing for so long, and then once more after a moment. */
static void stop(struct host *host, unsigned times, uint64_t length_ns)
{
	uint64_t next_ns = host->now_ns;

	host->interruption_count = times;
	for (unsigned i = 0; i < times; i++) {
		host->interruptions[i] = (struct interruption){
			.next_ns = next_ns,
			.length_ns = length_ns,
		};
		next_ns += length_ns + MOMENT_NS;
	}
}

static void begin_fault(uint64_t now_ns)
{
	has_begun = true;
	begun_ns = now_ns;
	if (stopped_rank != NONE)
		stop(&world.hosts[stopped_rank], stops, stop_ns);
}

static void tap(struct host *host, unsigned socket, const struct address *to,
		const uint8_t *bytes, size_t byte_count)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&to->socket;
	unsigned target = (ntohl(in->sin_addr.s_addr) & 0xff) - 1;

	if (!has_begun && sent_datagrams >= begins_at_datagram)
		begin_fault(host->now_ns);
	/* Beyond memory it depends on the machine how often ranks tell where
	 * they stand. */
	sent_datagrams += socket == DATA || record_count == RECORDS;
	if (!has_begun || !is_lost(host->number, target, socket, byte_count))
		virtual_network_put(host, socket, to, bytes, byte_count);
}

static void use_network(const struct virtual_network_options *options)
{
	virtual_network_fini(&network);
	assert_int_equal(virtual_network_init(&network, &world, options, 0), 0);
	network.tap = tap;
}

/* Set what is wrong from that datagram on. */
static void set_fault(uint64_t at_datagram, unsigned stopped, unsigned count,
		      const struct lost_path *lost)
{
	begins_at_datagram = at_datagram;
	stopped_rank = stopped;
	stops = 1;
	stop_ns = 10 * DEADLINE_S * SECOND_NS;
	path_count = count;
	for (unsigned i = 0; i < count; i++)
		paths[i] = lost[i];
}

static void run_job(const char *options, unsigned absent)
{
	sent_datagrams = 0;
	has_begun = false;
	begun_ns = BEGIN_NS;
	command_ranks(options);
	for (unsigned i = 0; i < rank_count; i++) {
		world.hosts[i].interruption_count = 0;
		if (i != absent)
			world_start_rank(i, starts_ns[i]);
	}
	if (world_run_job() < 0)
		fail_msg("%s: a rank waits without end", options);
	world_free_job();
}

/* --- what must be so --------------------------------------------------------
 */

/* The datagrams of a job in which nothing is wrong. */
static uint64_t count_datagrams(const char *options)
{
	set_fault(UINT64_MAX, NONE, 0, NULL);
	run_job(options, NONE);
	expect_sorted(options);
	clean_up();
	return sent_datagrams;
}

static void expect_peer_failure(unsigned rank, unsigned named)
{
	const struct simulated_rank *self = &ranks[rank];
	char text[2 * FAILURE_WHY_BYTES], name[32];

	snprintf(name, sizeof(name), "rank %u (", named);
	snprintf(text, sizeof(text), "%s: %s",
		 self->failure.what ? self->failure.what : "",
		 self->failure.why);
	if (!self->error || self->failure.status != EXIT_PEER ||
	    !strstr(text, named == ANY ? "rank " : name))
		fail_msg("rank %u: status %d, '%s', not '%s', at datagram %lu",
			 rank, self->failure.status, text, name,
			 (unsigned long)begins_at_datagram);
	assert_int_equal(access(commands[rank].output, F_OK), -1);
	if (record_count == RECORDS &&
	    self->ended_ns + BEGIN_NS > begun_ns + END_WITHIN_NS)
		fail_msg("rank %u: has ended after %.1f s: '%s'", rank,
			 (double)(self->ended_ns + BEGIN_NS - begun_ns) / 1e9,
			 text);
}

/* All ranks but the victim name it, or any if it is ANY. */
static void expect_blamed(unsigned victim)
{
	for (unsigned i = 0; i < rank_count; i++)
		if (i != victim)
			expect_peer_failure(i, victim);
	clean_up();
}

/* --- networks that lose some ------------------------------------------------
 */

static void draw_options(uint64_t chance, uint32_t mtu_bytes)
{
	struct virtual_network_options *options = &network.options;

	options->loss = chance;
	options->duplication = options->reordering = chance / 2;
	options->reordered_ns = 200000;
	options->mtu_bytes = mtu_bytes;
}

/* Bits that change are bytes that the CRC-32C or the tag must find. */
static void outputs_are_exact(void **state)
{
	static const char *const ways[] = { "--schedule=rounds",
					    "--schedule=all-at-once",
					    "--schedule=grid --plain",
					    "--compress=lz4" };
	static const unsigned percents[] = { 0, 1, 5, 20 };

	(void)state;
	for (size_t way = 0; way < ARRAY_LEN(ways); way++)
		for (size_t i = 0; i < ARRAY_LEN(percents); i++)
			for (unsigned mtu = 1500; mtu <= 9000; mtu += 7500) {
				draw_options(VIRTUAL_CHANCE / 100 * percents[i],
					     mtu);
				network.options.corruption =
					VIRTUAL_CHANCE / 20;
				count_datagrams(ways[way]);
			}
	assert_true(network.counters.lost > 0 &&
		    network.counters.corrupted > 0);
}

/* Each has something for each of the others. */
static void many_ranks(void **state)
{
	(void)state;
	rank_count = HOSTS;
	draw_options(VIRTUAL_CHANCE / 100, 1500);
	count_datagrams("");
	count_datagrams("--schedule=grid");
}

static void exact_beyond_memory(void **state)
{
	(void)state;
	draw_options(VIRTUAL_CHANCE / 100, 1500);
	count_datagrams(BEYOND);
}

/* --- one that goes away -----------------------------------------------------
 */

enum way { CUT_OFF, MUTE, DEAF, STOPPED, WAYS };

static void set_way(enum way way, unsigned victim, uint64_t at_datagram)
{
	const struct lost_path lost[PATHS_MAX] = {
		{ .from = way == DEAF ? ANY : victim,
		  .to = way == DEAF ? victim : ANY },
		{ .from = ANY, .to = victim },
	};
	static const unsigned counts[WAYS] = { 2, 1, 1, 0 };

	set_fault(at_datagram, way == STOPPED ? victim : NONE, counts[way],
		  lost);
}

/* Before the middle of the job. */
static void go_away(const char *options, unsigned seeds)
{
	uint64_t all = count_datagrams(options), random = 1;

	for (unsigned seed = 0; seed < seeds; seed++)
		for (enum way way = 0; way < WAYS; way++) {
			unsigned victim =
				(unsigned)(splitmix_next(&random) % rank_count);

			set_way(way, victim,
				splitmix_next(&random) % (all / 2));
			run_job(options, NONE);
			/* A rank that hears nobody blames others, and these
			 * hear it. */
			expect_blamed(way == DEAF ? ANY : victim);
		}
}

static void ranks_that_go_are_named(void **state)
{
	(void)state;
	go_away("", SEEDS);
	go_away("--splitters=sampled", SEEDS / 4);
}

static void ranks_that_go_are_named_beyond_memory(void **state)
{
	(void)state;
	go_away(BEYOND, SEEDS_BEYOND);
	go_away(BEYOND "--roles=keep:0-1", SEEDS_BEYOND);
	go_away(BEYOND "--shared-input", SEEDS_BEYOND);
}

/* Nobody knows then which end it is of a path between two. */
static void paths_that_end(void **state)
{
	uint64_t all = count_datagrams(""), random = 2;

	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		unsigned from = (unsigned)(splitmix_next(&random) % rank_count);
		unsigned to = (from + 1 +
			       (unsigned)(splitmix_next(&random) %
					  (rank_count - 1))) %
			      rank_count;
		const struct lost_path lost[PATHS_MAX] = {
			{ .from = from, .to = to }, { .from = to, .to = from }
		};

		/* Its ranks exchange records and no more. */
		set_fault(splitmix_next(&random) % (all / 4), NONE,
			  1 + seed % 2, lost);
		run_job("", NONE);
		expect_blamed(ANY);
	}
}

/* It may be too late, but there is no output that is not whole. */
static void at_any_moment(void **state)
{
	uint64_t all = count_datagrams(""), random = 3;
	unsigned too_late = 0;

	(void)state;
	for (unsigned seed = 0; seed < SEEDS * WAYS; seed++) {
		unsigned victim =
			(unsigned)(splitmix_next(&random) % rank_count);

		set_way(seed % WAYS, victim, splitmix_next(&random) % all);
		run_job("", NONE);
		for (unsigned i = 0; i < rank_count; i++) {
			if (ranks[i].error)
				assert_int_equal(ranks[i].failure.status,
						 EXIT_PEER);
			assert_int_equal(access(commands[i].output, F_OK),
					 ranks[i].error ? -1 : 0);
			too_late += !ranks[i].error;
		}
		clean_up();
	}
	assert_true(too_late > 0);
}

static void absent_ranks_are_named(void **state)
{
	(void)state;
	for (unsigned victim = 0; victim < rank_count; victim++) {
		set_fault(UINT64_MAX, NONE, 0, NULL);
		run_job("", victim);
		expect_blamed(victim);
	}
}

/* A rank that cannot go on tells all others why, long before the deadline. */
static void failures_are_told(void **state)
{
	uint64_t random = 5;

	(void)state;
	count_datagrams("");
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		unsigned victim =
			(unsigned)(splitmix_next(&random) % rank_count);
		off_t length =
			(off_t)(record_count / rank_count) * RECORD_BYTES;

		for (unsigned i = 0; i < rank_count; i++)
			starts_ns[i] = splitmix_next(&random) %
				       (seed % 2 ? 10000000 : 100000);
		/* Not a whole number of records */
		assert_int_equal(truncate(commands[victim].input, length + 1),
				 0);
		run_job("", NONE);
		assert_int_equal(truncate(commands[victim].input, length), 0);
		assert_int_equal(ranks[victim].failure.status, EXIT_FILE);
		for (unsigned i = 0; i < rank_count; i++)
			if (ranks[i].ended_ns > SECOND_NS)
				fail_msg("rank %u ended after %.3f s", i,
					 (double)ranks[i].ended_ns / 1e9);
		expect_blamed(victim);
	}
}

/* --- paths that take some of it ---------------------------------------------
 */

/* How one of the ranks tells that. */
static void expect_answers(void)
{
	bool answers = false;

	for (unsigned i = 0; i < rank_count; i++)
		answers |= strstr(ranks[i].failure.why, "though it answers") !=
			   NULL;
	assert_true(answers);
}

/* A path whose MTU is smaller than that of its ends takes short datagrams. */
static void black_holes(void **state)
{
	(void)state;
	for (unsigned victim = 0; victim < rank_count; victim++) {
		const struct lost_path to = { ANY, victim, 1300, false };
		const struct lost_path from = { victim, ANY, 1300, false };
		const struct lost_path one = { victim,
					       (victim + 1) % rank_count, 1300,
					       false };

		set_fault(0, NONE, 1, &from);
		run_job("", NONE);
		expect_answers();
		expect_blamed(victim);
		set_fault(0, NONE, 1, &to);
		run_job("", NONE);
		expect_answers();
		expect_blamed(ANY);
		set_fault(0, NONE, 1, &one);
		run_job("", NONE);
		expect_answers();
		expect_blamed(ANY);
	}
}

/* A rank that lets its STATUS pass, and keeps its records. */
static void records_that_do_not_come(void **state)
{
	uint64_t all = count_datagrams(""), random = 4;

	(void)state;
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		const struct lost_path lost = {
			.from = (unsigned)(splitmix_next(&random) % rank_count),
			.to = ANY,
			.is_of_data = true,
		};

		set_fault(splitmix_next(&random) % (all / 8), NONE, 1, &lost);
		run_job(seed % 2 ? "" : "--schedule=all-at-once", NONE);
		expect_answers();
		expect_blamed(lost.from);
	}
}

/* --- one that is slow -------------------------------------------------------
 */

/* It stands still for a part of the deadline again and again, as one whose CPUs
 * others use: for less than that after which it counts as away, and for more.
 */
static void slow_ranks_get_on(void **state)
{
	struct virtual_network_options slow = world_network_options;

	(void)state;
	slow.link_bits_per_s = 1000000;
	use_network(&slow);
	for (unsigned percent = 20; percent <= 40; percent += 20) {
		set_fault(0, 2, 0, NULL);
		stops = WORLD_INTERRUPTIONS_MAX;
		stop_ns = percent * DEADLINE_S * SECOND_NS / 100;
		run_job("", NONE);
		assert_true(ranks[2].ended_ns > 2 * stop_ns);
		expect_sorted("a slow rank");
		clean_up();
	}
}

/* --- what all cases need ----------------------------------------------------
 */

static int set_up(void **state)
{
	(void)state;
	remove_outputs();
	use_network(&world_network_options);
	memset(starts_ns, 0, sizeof(starts_ns));
	rank_count = RANKS;
	record_count = RECORDS;
	return 0;
}

static int set_up_beyond(void **state)
{
	set_up(state);
	record_count = RECORDS_BEYOND;
	return 0;
}

static int set_up_all(void **state)
{
	(void)state;
	set_up_commands("test_cluster_paths", HOSTS);
	return 0;
}

static int tear_down_all(void **state)
{
	(void)state;
	return tear_down_commands();
}

#define IN_MEMORY(test) cmocka_unit_test_setup(test, set_up)
#define BEYOND_MEMORY(test) cmocka_unit_test_setup(test, set_up_beyond)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_MEMORY(outputs_are_exact),
		IN_MEMORY(many_ranks),
		BEYOND_MEMORY(exact_beyond_memory),
		IN_MEMORY(ranks_that_go_are_named),
		BEYOND_MEMORY(ranks_that_go_are_named_beyond_memory),
		IN_MEMORY(paths_that_end),
		IN_MEMORY(at_any_moment),
		IN_MEMORY(absent_ranks_are_named),
		IN_MEMORY(failures_are_told),
		IN_MEMORY(black_holes),
		IN_MEMORY(records_that_do_not_come),
		IN_MEMORY(slow_ranks_get_on),
	};

	return cmocka_run_group_tests_name("cluster_paths", tests, set_up_all,
					   tear_down_all);
}
