/*
 * simulation.c - ranks that exchange messages in a simulated world
 */
#include "simulate/simulation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/splitmix.h"
#include "cluster/agreement/cluster_schedule.h"
#include "exchange/exchange_grid.h"
#include "exchange/udp/udp.h"
#include "io/output/outfile.h"
#include "sort/sort_trace.h"

/* Not 0: of a STATUS's clock that means none. */
#define BEGIN_NS NS_PER_S
#define LIMIT_NS (3600 * NS_PER_S)
/* Clocks of hosts differ by up to this. */
#define CLOCK_OFFSET_NS_MAX (1000 * NS_PER_S)
/* A rank's functions need some 50 KiB, and with a sanitizer a few times that.
 */
#define STACK_BYTES ((size_t)512 << 10)
/* Messages of more bytes in all are zeros, which take no memory. */
#define COMPARED_BYTES_MAX ((uint64_t)256 << 20)
/* What messages are cut from. */
#define PATTERN_BYTES 65537
#define SPANS_MAX 65536 /* of a rank's timeline */

const char *const simulation_lengths_names[SIMULATION_LENGTHS] = {
	[SIMULATION_EQUAL] = "equal",
	[SIMULATION_SKEWED] = "skewed",
	[SIMULATION_SOME] = "some",
	[SIMULATION_ONE] = "one",
};

struct simulated_rank {
	struct simulation *simulation;
	struct host *host;
	struct rank rank;
	struct trace_lane *lane;   /* or NULL */
	struct exchange *exchange; /* NULL: not open */
	uint8_t *received;	   /* [source] messages; NULL: zeros, nowhere */
	uint64_t dies_ns;	   /* or UINT64_MAX */
	unsigned time;		   /* exchanges before this one */
	uint64_t begun_ns, received_ns, ended_ns;
	struct exchange_counters counters;
	bool has_failed, has_come, has_other_bytes;
	uint64_t failed_ns;
	struct failure failure;
	char what[FAILURE_WHY_BYTES];
};

struct simulation {
	const struct simulation_options *options;
	struct cluster_schedule schedule;
	struct world world;
	struct virtual_network network;
	struct simulated_rank *ranks; /* [node]; owned */
	struct address *addresses;    /* [node]; owned */
	char **names;		      /* [node]; owned */
	uint64_t *send_bytes; /* [source][node]; if equal of all: [node]; owned
			       */
	uint8_t *pattern;     /* [PATTERN_BYTES]; NULL: zeros; owned */
	uint8_t *zeros;	      /* a message of them; owned */
	struct trace_lane *lanes; /* [node], or NULL; owned */
};

/* --- messages ---------------------------------------------------------------
 */

/* A number of the message from source to destination: ranks have 12 bits. */
static uint64_t number_of(unsigned time, unsigned source, unsigned destination)
{
	return (uint64_t)source << 32 | time << 12 | destination;
}

static uint64_t length_between(const struct simulated_rank *self,
			       unsigned source, unsigned destination)
{
	const struct simulation_options *options = self->simulation->options;
	uint64_t max_bytes = options->message_bytes;
	uint64_t random = number_of(self->time, source, destination) ^
			  options->seed << 48;
	uint64_t drawn = splitmix_next(&random);

	switch (options->lengths) {
	case SIMULATION_SKEWED:
		return splitmix_next(&random) % ((max_bytes >> drawn % 8) + 1);
	case SIMULATION_SOME:
		return drawn % 2 ? max_bytes : 0;
	case SIMULATION_ONE:
		return destination == self->time % options->node_count
			       ? max_bytes
			       : 0;
	default:
		return max_bytes;
	}
}

/* Copy the bytes of the message from source to destination. */
static void make_bytes(const struct simulated_rank *self, unsigned source,
		       unsigned destination, uint64_t offset, uint8_t *target,
		       size_t byte_count)
{
	const struct simulation *simulation = self->simulation;
	uint64_t random = number_of(self->time, source, destination);
	size_t at = (splitmix_next(&random) + offset) % PATTERN_BYTES;

	if (!simulation->pattern) {
		memset(target, 0, byte_count);
		return;
	}
	while (byte_count > 0) {
		size_t length = MIN(byte_count, PATTERN_BYTES - at);

		memcpy(target, simulation->pattern + at, length);
		target += length;
		byte_count -= length;
		at = 0;
	}
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *target, size_t byte_count)
{
	const struct simulated_rank *self = context;

	make_bytes(self, self->rank.rank, node, offset, target, byte_count);
}

static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	return (struct exchange_length){
		.head_bytes = length_between(context, source, destination),
		.unit_bytes = 1,
	};
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct simulated_rank *self = context;
	const struct simulation_options *options = self->simulation->options;

	(void)receive_bytes;
	if (!self->simulation->pattern)
		return 0;
	free(self->received);
	self->received =
		calloc(options->node_count, MAX(1, options->message_bytes));
	return self->received ? 0 : failure_no_memory(failure);
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct simulated_rank *self = context;
	uint64_t bytes = self->simulation->options->message_bytes;

	*room = length_between(self, node, self->rank.rank) - offset;
	return self->received ? self->received + node * bytes + offset
			      : self->simulation->zeros + offset;
}

static void compare(struct simulated_rank *self)
{
	const struct simulation_options *options = self->simulation->options;
	unsigned own = self->rank.rank;
	uint8_t part[4096];

	for (unsigned node = 0; node < options->node_count; node++) {
		const uint8_t *received =
			self->received + node * options->message_bytes;
		uint64_t bytes =
			node == own ? 0 : length_between(self, node, own);

		for (uint64_t at = 0; at < bytes; at += sizeof(part)) {
			size_t length = MIN(sizeof(part), bytes - at);

			make_bytes(self, node, own, at, part, length);
			self->has_other_bytes |=
				memcmp(part, received + at, length) != 0;
		}
	}
}

/* --- a rank ------------------------------------------------------------------
 */

/* Ranks whose messages are equal share their lengths: thousands of ranks would
 * have many. */
static const uint64_t *fill_lengths(struct simulated_rank *self)
{
	const struct simulation_options *options = self->simulation->options;
	unsigned own = self->rank.rank;
	uint64_t *send_bytes = self->simulation->send_bytes;

	if (options->lengths != SIMULATION_EQUAL)
		send_bytes += (size_t)own * options->node_count;
	for (unsigned node = 0; node < options->node_count; node++)
		send_bytes[node] = length_between(self, own, node);
	return send_bytes;
}

static int exchange_messages(struct simulated_rank *self,
			     struct exchange *exchange)
{
	const struct exchange_collective collective = {
		.context = self,
		.send_bytes = fill_lengths(self),
		.read = read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
	};
	struct failure *failure = &self->failure;
	int error = exchange_begin(exchange, &collective, failure);

	if (error == 0)
		error = exchange_receive(exchange, failure);
	self->received_ns = self->host->now_ns;
	if (error == 0 && self->received)
		compare(self);
	return error ? error : exchange_finish(exchange, failure);
}

static int take_part(struct simulated_rank *self, struct exchange *exchange)
{
	const struct cluster_schedule *schedule = &self->simulation->schedule;
	unsigned times = self->simulation->options->times;
	struct failure *failure = &self->failure;
	int error = exchange_join(exchange, failure);

	if (error == 0 && schedule->kind == EXCHANGE_GRID)
		error = exchange_grid_set(exchange, schedule->rows,
					  schedule->columns, failure);
	self->begun_ns = self->host->now_ns;
	for (; error == 0 && self->time < times; self->time++)
		error = exchange_messages(self, exchange);
	self->has_come = error == 0;
	if (error == 0)
		error = exchange_barrier(exchange, 1, NULL, 0, failure);
	if (error == 0)
		exchange_leave(exchange);
	return error;
}

static void note_failure(struct simulated_rank *self)
{
	self->has_failed = true;
	self->failed_ns = self->host->now_ns;
	if (self->failure.what)
		snprintf(self->what, sizeof(self->what), "%s",
			 self->failure.what);
}

static void close_exchange(void *argument)
{
	struct simulated_rank *self = argument;

	exchange_close(self->exchange);
	self->exchange = NULL;
}

static void be_rank(void *argument)
{
	struct simulated_rank *self = argument;
	const struct simulation_options *options = self->simulation->options;
	const struct exchange_options exchange_options = {
		.rank = &self->rank,
		.schedule = self->simulation->schedule.kind == EXCHANGE_ROUNDS
				    ? EXCHANGE_ROUNDS
				    : EXCHANGE_ALL_AT_ONCE,
		.spins = true,
		.deadline_ns = options->deadline_ns,
		.skips_hello = !options->says_hello,
		.lane = self->lane,
	};
	const struct udp_options udp_options = {
		.kernel = cpu_level_detect(),
		.plain = options->plain,
		.crc32c = true,
		.thread_count = options->thread_count,
	};

	self->exchange =
		udp_open(&exchange_options, &udp_options, &self->failure);
	/* Not earlier: nobody else could close the exchange. */
	for (unsigned cpu = 0; cpu < options->thread_count; cpu++)
		world_cpu(&self->simulation->world, self->rank.rank, cpu)
			->dies_ns = self->dies_ns;
	if (!self->exchange || take_part(self, self->exchange) < 0)
		note_failure(self);
	if (self->exchange && self->has_failed)
		exchange_fail(self->exchange, &self->failure);
	self->ended_ns = self->host->now_ns;
	if (self->exchange)
		self->counters = *exchange_counters(self->exchange);
	close_exchange(self);
}

/* --- the world ---------------------------------------------------------------
 */

static void disturb(struct simulation *simulation, struct host *host,
		    uint64_t *dies_ns)
{
	const struct simulation_options *options = simulation->options;

	for (unsigned i = 0; i < options->noise_count; i++) {
		struct interruption *noise =
			&host->interruptions[host->interruption_count++];

		*noise = options->noise[i];
		noise->next_ns = BEGIN_NS + splitmix_next(&host->random) %
						    (2 * noise->gap_ns);
	}
	for (unsigned i = 0; i < options->pause_count; i++)
		if (options->pauses[i].rank == host->number)
			host->interruptions[host->interruption_count++] =
				(struct interruption){
					.next_ns = BEGIN_NS +
						   options->pauses[i].at_ns,
					.length_ns =
						options->pauses[i].length_ns,
				};
	for (unsigned i = 0; i < options->death_count; i++)
		if (options->deaths[i].rank == host->number)
			*dies_ns = BEGIN_NS + options->deaths[i].at_ns;
	for (unsigned i = 0; i < options->slow_count; i++)
		if (options->slow[i].rank == host->number)
			host->slowness = (unsigned)options->slow[i].length_ns;
}

static int make_rank(struct simulation *simulation, unsigned node)
{
	const struct simulation_options *options = simulation->options;
	struct host *host = &simulation->world.hosts[node];
	char text[ADDRESS_TEXT_BYTES];
	uint64_t start_ns = BEGIN_NS;

	virtual_network_address(node, ADDRESS_PORT_DEFAULT,
				&simulation->addresses[node]);
	simulation->names[node] =
		strdup(address_format(&simulation->addresses[node], text));
	simulation->ranks[node] = (struct simulated_rank){
		.simulation = simulation,
		.host = host,
		.rank = { .rank = node,
			  .node_count = options->node_count,
			  .addresses = simulation->addresses,
			  .names = simulation->names,
			  .machine_count = 1,
			  .source = "options" },
		.lane = simulation->lanes ? &simulation->lanes[node] : NULL,
		.dies_ns = UINT64_MAX,
	};
	for (unsigned cpu = 0; cpu < options->thread_count; cpu++)
		disturb(simulation, world_cpu(&simulation->world, node, cpu),
			&simulation->ranks[node].dies_ns);
	host->clock_offset_ns =
		splitmix_next(&host->random) % CLOCK_OFFSET_NS_MAX;
	start_ns += splitmix_next(&host->random) % (options->skew_ns + 1);
	world_start(host, start_ns, be_rank, &simulation->ranks[node]);
	return simulation->names[node] ? 0 : -ENOMEM;
}

static bool make_pattern(struct simulation *simulation)
{
	const struct simulation_options *options = simulation->options;
	uint64_t pairs = (uint64_t)options->node_count * options->node_count;
	uint64_t random = options->seed;

	simulation->zeros = calloc(1, options->message_bytes + 1);
	if (options->message_bytes > COMPARED_BYTES_MAX / pairs)
		return simulation->zeros != NULL;
	simulation->pattern = malloc(PATTERN_BYTES);
	for (unsigned i = 0; simulation->pattern && i < PATTERN_BYTES; i++)
		simulation->pattern[i] = (uint8_t)splitmix_next(&random);
	return simulation->zeros && simulation->pattern;
}

static int make_lanes(struct simulation *simulation)
{
	unsigned count = simulation->options->node_count;
	int error = 0;

	if (!simulation->options->trace_path)
		return 0;
	simulation->lanes = alloc_apart(count, sizeof(*simulation->lanes));
	for (unsigned i = 0; simulation->lanes && i < count && error == 0; i++)
		error = trace_lane_init(&simulation->lanes[i], SPANS_MAX);
	return simulation->lanes ? error : -ENOMEM;
}

static int make_all(struct simulation *simulation)
{
	const struct simulation_options *options = simulation->options;
	unsigned count = options->node_count;
	unsigned rows = options->lengths == SIMULATION_EQUAL ? 1 : count;
	int error;

	simulation->ranks = calloc(count, sizeof(*simulation->ranks));
	simulation->addresses = calloc(count, sizeof(*simulation->addresses));
	simulation->names = calloc(count, sizeof(*simulation->names));
	simulation->send_bytes =
		calloc((size_t)rows * count, sizeof(*simulation->send_bytes));
	if (!simulation->ranks || !simulation->addresses ||
	    !simulation->names || !simulation->send_bytes ||
	    !make_pattern(simulation) || make_lanes(simulation) < 0 ||
	    world_init(&simulation->world, count, options->thread_count,
		       STACK_BYTES, BEGIN_NS, options->seed) < 0)
		return -ENOMEM;
	error = virtual_network_init(&simulation->network, &simulation->world,
				     &options->network, ~options->seed);
	simulation->world.end_ns = BEGIN_NS + options->limit_ns;
	for (unsigned node = 0; node < count && error == 0; node++)
		error = make_rank(simulation, node);
	return error;
}

/* Ranks that died, or never ended, have theirs still. */
static void close_exchanges(struct simulation *simulation)
{
	struct world *world = &simulation->world;

	world_stop(world);
	for (unsigned i = 0; i < world->host_count; i++)
		if (simulation->ranks[i].exchange)
			world_start(&world->hosts[i], world->now_ns,
				    close_exchange, &simulation->ranks[i]);
	world_run(world);
}

static void free_all(struct simulation *simulation)
{
	unsigned count = simulation->options->node_count;

	if (simulation->world.hosts)
		close_exchanges(simulation);
	if (simulation->world.network)
		virtual_network_fini(&simulation->network);
	world_fini(&simulation->world);
	for (unsigned i = 0; simulation->lanes && i < count; i++)
		trace_lane_fini(&simulation->lanes[i]);
	for (unsigned i = 0; simulation->names && i < count; i++)
		free(simulation->names[i]);
	for (unsigned i = 0; simulation->ranks && i < count; i++)
		free(simulation->ranks[i].received);
	free(simulation->lanes);
	free(simulation->pattern);
	free(simulation->zeros);
	free(simulation->send_bytes);
	free(simulation->names);
	free(simulation->addresses);
	free(simulation->ranks);
}

/* --- what came of it ---------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* All counters are u64. */
static void add_counters(struct exchange_counters *sum,
			 const struct exchange_counters *counters)
{
	const uint64_t *from = (const uint64_t *)counters;
	uint64_t *to = (uint64_t *)sum;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

static int count_up(const struct simulation *simulation,
		    struct simulation_figures *figures)
{
	unsigned count = simulation->options->node_count;
	uint64_t *times_ns = calloc(count, sizeof(*times_ns));
	uint64_t begin_ns = UINT64_MAX;

	if (!times_ns)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		begin_ns = MIN(begin_ns, simulation->ranks[i].begun_ns);
	for (unsigned i = 0; i < count; i++) {
		const struct simulated_rank *rank = &simulation->ranks[i];

		times_ns[i] =
			rank->received_ns - MIN(begin_ns, rank->received_ns);
		figures->end_ns =
			MAX(figures->end_ns,
			    rank->ended_ns - MIN(begin_ns, rank->ended_ns));
		add_counters(&figures->ranks, &rank->counters);
	}
	qsort(times_ns, count, sizeof(*times_ns), by_size);
	figures->median_ns = times_ns[count / 2];
	figures->max_ns = times_ns[count - 1];
	free(times_ns);
	figures->schedule = simulation->schedule.kind;
	figures->network = simulation->network.counters;
	figures->event_count = simulation->world.event_count;
	figures->digest = simulation->world.digest;
	figures->compared = simulation->pattern != NULL;
	return 0;
}

static void tell_outcomes(const struct simulation *simulation)
{
	const struct simulation_options *options = simulation->options;

	for (unsigned i = 0; options->outcomes && i < options->node_count;
	     i++) {
		const struct simulated_rank *rank = &simulation->ranks[i];
		struct simulation_outcome *outcome = &options->outcomes[i];

		*outcome = (struct simulation_outcome){
			.has_ended = rank->ended_ns != 0,
			.has_come = rank->has_come,
			.has_other_bytes = rank->has_other_bytes,
			.ended_ns =
				rank->ended_ns - MIN(BEGIN_NS, rank->ended_ns),
			.failure = rank->failure,
			.blamed = i,
		};
		outcome->failure.what = NULL;
		if (rank->has_failed)
			sscanf(rank->what, "rank %u", &outcome->blamed);
		else
			outcome->failure.status = EXIT_DONE;
	}
}

/* The first failure, which others are told of. */
static int find_failure(const struct simulation *simulation, int error,
			struct failure *failure)
{
	const struct simulated_rank *first = NULL;

	for (unsigned i = 0; i < simulation->options->node_count; i++) {
		const struct simulated_rank *rank = &simulation->ranks[i];

		if (rank->has_failed &&
		    (!first || rank->failed_ns < first->failed_ns))
			first = rank;
	}
	if (first)
		return failure_set(failure, first->failure.status, NULL, 0,
				   "%s%s%.140s", first->what,
				   first->what[0] ? ": " : "",
				   first->failure.why);
	for (unsigned i = 0; i < simulation->options->node_count; i++) {
		if (simulation->ranks[i].has_other_bytes)
			return failure_set(failure, EXIT_WRONG, NULL, 0,
					   "rank %u has got other bytes than "
					   "were sent to it",
					   i);
		if (simulation->ranks[i].ended_ns == 0)
			return failure_set(
				failure, EXIT_PEER, NULL, 0,
				error == -ETIME ? "rank %u has not ended "
						  "within %" PRIu64 " s"
						: "rank %u died before it "
						  "ended",
				i, simulation->options->limit_ns / NS_PER_S);
	}
	return 0;
}

static int write_trace(const struct simulation *simulation,
		       struct sort_trace *trace, struct failure *failure)
{
	unsigned count = simulation->options->node_count;
	struct trace_process *processes = calloc(count, sizeof(*processes));
	int error;

	if (!processes)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < count; i++)
		processes[i] = (struct trace_process){
			.name = simulation->names[i],
			.origin_ns = BEGIN_NS +
				     simulation->world.hosts[i].clock_offset_ns,
			.lanes = &simulation->lanes[i],
			.lane_count = 1,
		};
	error = sort_trace_write(trace, processes, count, failure);
	free(processes);
	return error ? error : outfile_commit(&trace->file, false, failure);
}

static int run(struct simulation *simulation,
	       struct simulation_figures *figures, struct failure *failure)
{
	int error = make_all(simulation);

	if (error == 0)
		error = world_run(&simulation->world);
	tell_outcomes(simulation);
	if (error == -ENOMEM || count_up(simulation, figures) < 0)
		return failure_no_memory(failure);
	return find_failure(simulation, error, failure);
}

/* CPU times are those of exchange_model.c, of virtual machines: a call with one
 * datagram takes 2 us to send and as long to take, and with many each of them
 * 0.5 us and 1 us at an MTU of 1500. */
struct simulation_options simulation_usual(void)
{
	return (struct simulation_options){
		.message_bytes = 250,
		.times = 1,
		.thread_count = 1,
		.schedule = EXCHANGE_AUTO,
		.deadline_ns = 5 * NS_PER_S,
		.limit_ns = LIMIT_NS,
		.seed = 1,
		.skew_ns = 10000,
		.network = {
			.link_bits_per_s = (uint64_t)10 * 1000000000,
			.link_delay_ns = 500,
			.queue_bytes = 128 * KIB,
			.mtu_bytes = 1500,
			.receive_room_max = 16 * MIB,
			.oversubscription = 1,
			.reordered_ns = 100000,
			.send = { 1600, 400, 67 },
			.receive = { 1400, 580, 280 },
			.poll_ns = 300,
			.wakeup_ns = 3000,
		},
	};
}

int simulation_run(const struct simulation_options *options,
		   struct simulation_figures *figures, struct failure *failure)
{
	const struct cluster_traffic traffic = {
		.node_count = options->node_count,
		.byte_count = options->message_bytes * options->node_count *
			      options->node_count,
		.thread_count = options->thread_count,
	};
	struct simulation simulation = {
		.options = options,
		.schedule.kind = options->schedule,
	};
	struct sort_trace trace = { .path = options->trace_path };
	int error = cluster_schedule_choose(
		&simulation.schedule,
		&(struct cluster_schedule){ .kind = options->schedule },
		&traffic, failure);

	/* Memory that nobody writes must not become pages of 2 MiB. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	*figures = (struct simulation_figures){ 0 };
	if (error == 0 && trace.path)
		error = outfile_open(&trace.file, trace.path, NULL, failure);
	if (error == 0)
		error = run(&simulation, figures, failure);
	/* A run that has failed has a timeline, too; then that failure is told.
	 */
	if (trace.path && simulation.world.event_count > 0) {
		struct failure other;
		int written = write_trace(&simulation, &trace,
					  error ? &other : failure);

		error = error ? error : written;
	}
	free_all(&simulation);
	sort_trace_close(&trace);
	return error;
}
