/*
 * simulate_verb.c - read the options of a simulation, and print its figures
 */
#include "programs/blinkprobe/simulate_verb.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/stdout.h"
#include "base/version.h"
#include "simulate/simulation.h"

#define RECORD_BYTES 100
#define LINK_BITS_MAX ((uint64_t)1000000000000)
#define TIME_NS_MAX ((uint64_t)1000000000)
/* A stack and the page below it are two of the 65530 mappings that the kernel
 * lets a process have (vm.max_map_count). */
#define STACKS_MAX 32000
#define LIMIT_SECONDS_MAX 3600
/* An hour in ms; and whatever else is told in numbers with colons. */
#define NUMBER_MAX 3600000

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkprobe simulate --nodes=N [OPTION]...\n"
"Simulate exchanges of N ranks over UDP, by the code that blinksort runs.\n"
"\n"
"  --nodes=N         simulate N ranks, 2 to 4096\n"
"  --message=BYTES   let each rank send BYTES to each other one (250)\n"
"  --records=N       or its share of N records of 100 bytes\n"
"  --lengths=KIND    make messages equal, skewed (most are far shorter), some\n"
"                    (half are empty) or one (one rank gets all) (equal)\n"
"  --times=N         exchange N times, one after the other (1)\n"
"  --schedule=KIND   send in rounds, all-at-once, by a grid, or auto (auto)\n"
"  --join            let all ranks say hello to all others first\n"
"  --plain           make one system call for each datagram\n"
"  --deadline=SECONDS\n"
"                    give a rank up that is silent for longer (5)\n"
"  --limit=SECONDS   end after SECONDS of the ranks' time (3600)\n"
"  --skew=NS         let ranks begin within NS of each other (10000)\n"
"  --seed=N          draw all chances from N (1)\n"
"  --trace=FILE      write a timeline of the ranks to FILE\n"
"  --json            print one JSON document\n"
"the network\n"
"  --link=RATE       give each link RATE bits a second (10G)\n"
"  --delay=NS        let a bit take NS for each link (500)\n"
"  --queue=SIZE      let a port of a switch hold SIZE (128K)\n"
"  --mtu=BYTES       let a packet have up to BYTES (1500)\n"
"  --datagram=BYTES  send up to BYTES in a datagram, in fragments if need be\n"
"  --receive-room=SIZE\n"
"                    let a socket hold up to twice SIZE (16M)\n"
"  --leaf=N          attach N ranks to a leaf switch (all)\n"
"  --oversubscription=N\n"
"                    give a leaf a link to a spine for each N ranks (1)\n"
"  --loss=P --duplicates=P --reordering=P --corruption=P\n"
"                    treat a packet so with chance P, such as 0.01 (0)\n"
"  --lose-long=RANK:BYTES\n"
"                    lose all datagrams of RANK that are longer than BYTES\n"
"the CPUs\n"
"  --threads=N       move bytes by N threads of each rank, each with a CPU (1)\n"
"  --send-cost=CALL:DATAGRAM:BYTE, --receive-cost=CALL:DATAGRAM:BYTE\n"
"                    let a call take CALL ns and DATAGRAM ns and BYTE ps for\n"
"                    each (1600:400:67, 1400:580:280)\n"
"  --noise=COUNT:NS,...\n"
"                    interrupt a CPU COUNT times a second for NS\n"
"  --slow=RANK:TIMES\n"
"                    let RANK take TIMES as long\n"
"  --pause=RANK:MS:MS\n"
"                    stop RANK after MS for MS\n"
"  --kill=RANK:MS    end RANK after MS\n"
"  -h, --help        print this text\n"
"  -V, --version     print the version\n"
"\n"
"Statuses: 0 done, 1 other bytes came than were sent, 2 usage, 3 file, 4 a rank\n"
"failed, 5 memory.  See blinkprobe(1).\n";
/* clang-format on */

enum {
	OPTION_NODES = OPTIONS_OWN,
	OPTION_MESSAGE,
	OPTION_RECORDS,
	OPTION_LENGTHS,
	OPTION_TIMES,
	OPTION_SCHEDULE,
	OPTION_JOIN,
	OPTION_PLAIN,
	OPTION_DEADLINE,
	OPTION_LIMIT,
	OPTION_SKEW,
	OPTION_SEED,
	OPTION_TRACE,
	OPTION_JSON,
	OPTION_LINK,
	OPTION_DELAY,
	OPTION_QUEUE,
	OPTION_MTU,
	OPTION_DATAGRAM,
	OPTION_RECEIVE_ROOM,
	OPTION_LEAF,
	OPTION_OVERSUBSCRIPTION,
	OPTION_LOSS,
	OPTION_DUPLICATES,
	OPTION_REORDERING,
	OPTION_CORRUPTION,
	OPTION_LOSE_LONG,
	OPTION_THREADS,
	OPTION_SEND_COST,
	OPTION_RECEIVE_COST,
	OPTION_NOISE,
	OPTION_SLOW,
	OPTION_PAUSE,
	OPTION_KILL,
};

static const struct options_entry entries[] = {
	{ OPTION_NODES, "nodes", 0, OPTIONS_VALUE, "N" },
	{ OPTION_MESSAGE, "message", 0, OPTIONS_VALUE, "BYTES" },
	{ OPTION_RECORDS, "records", 0, OPTIONS_VALUE, "N" },
	{ OPTION_LENGTHS, "lengths", 0, OPTIONS_VALUE, "KIND" },
	{ OPTION_TIMES, "times", 0, OPTIONS_VALUE, "N" },
	{ OPTION_SCHEDULE, "schedule", 0, OPTIONS_VALUE, "KIND" },
	{ OPTION_JOIN, "join", 0, OPTIONS_FLAG, NULL },
	{ OPTION_PLAIN, "plain", 0, OPTIONS_FLAG, NULL },
	{ OPTION_DEADLINE, "deadline", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_LIMIT, "limit", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_SKEW, "skew", 0, OPTIONS_VALUE, "NS" },
	{ OPTION_SEED, "seed", 0, OPTIONS_VALUE, "N" },
	{ OPTION_TRACE, "trace", 0, OPTIONS_FILE, "FILE" },
	{ OPTION_JSON, "json", 0, OPTIONS_FLAG, NULL },
	{ OPTION_LINK, "link", 0, OPTIONS_VALUE, "RATE" },
	{ OPTION_DELAY, "delay", 0, OPTIONS_VALUE, "NS" },
	{ OPTION_QUEUE, "queue", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_MTU, "mtu", 0, OPTIONS_VALUE, "BYTES" },
	{ OPTION_DATAGRAM, "datagram", 0, OPTIONS_VALUE, "BYTES" },
	{ OPTION_RECEIVE_ROOM, "receive-room", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_LEAF, "leaf", 0, OPTIONS_VALUE, "N" },
	{ OPTION_OVERSUBSCRIPTION, "oversubscription", 0, OPTIONS_VALUE, "N" },
	{ OPTION_LOSS, "loss", 0, OPTIONS_VALUE, "P" },
	{ OPTION_DUPLICATES, "duplicates", 0, OPTIONS_VALUE, "P" },
	{ OPTION_REORDERING, "reordering", 0, OPTIONS_VALUE, "P" },
	{ OPTION_CORRUPTION, "corruption", 0, OPTIONS_VALUE, "P" },
	{ OPTION_LOSE_LONG, "lose-long", 0, OPTIONS_VALUE, "RANK:BYTES" },
	{ OPTION_THREADS, "threads", 0, OPTIONS_VALUE, "N" },
	{ OPTION_SEND_COST, "send-cost", 0, OPTIONS_VALUE,
	  "CALL:DATAGRAM:BYTE" },
	{ OPTION_RECEIVE_COST, "receive-cost", 0, OPTIONS_VALUE,
	  "CALL:DATAGRAM:BYTE" },
	{ OPTION_NOISE, "noise", 0, OPTIONS_VALUE, "COUNT:NS,..." },
	{ OPTION_SLOW, "slow", 0, OPTIONS_VALUES, "RANK:TIMES" },
	{ OPTION_PAUSE, "pause", 0, OPTIONS_VALUES, "RANK:MS:MS" },
	{ OPTION_KILL, "kill", 0, OPTIONS_VALUES, "RANK:MS" },
	OPTIONS_COMMON,
};

#define FIELD(name) OPTIONS_FIELD(struct simulation_options, name)
static const struct options_row number_rows[] = {
	{ OPTION_NODES, 2, RANK_NODES_MAX, FIELD(node_count) },
	{ OPTION_MESSAGE, 0, (uint64_t)1 << 40, FIELD(message_bytes),
	  OPTIONS_SIZE },
	{ OPTION_TIMES, 1, SIMULATION_TIMES_MAX, FIELD(times) },
	{ OPTION_DEADLINE, 1, 3600, FIELD(deadline_ns), OPTIONS_SECONDS },
	{ OPTION_LIMIT, 1, LIMIT_SECONDS_MAX, FIELD(limit_ns),
	  OPTIONS_SECONDS },
	{ OPTION_SKEW, 0, TIME_NS_MAX, FIELD(skew_ns) },
	{ OPTION_SEED, 0, UINT64_MAX, FIELD(seed) },
	{ OPTION_DELAY, 0, TIME_NS_MAX, FIELD(network.link_delay_ns) },
	{ OPTION_QUEUE, 2 * KIB, INT32_MAX, FIELD(network.queue_bytes),
	  OPTIONS_SIZE },
	{ OPTION_MTU, 576, UINT16_MAX, FIELD(network.mtu_bytes) },
	{ OPTION_DATAGRAM, 256, DATAGRAM_BATCH_BYTES_MAX,
	  FIELD(network.datagram_bytes) },
	{ OPTION_RECEIVE_ROOM, 4 * KIB, INT32_MAX,
	  FIELD(network.receive_room_max), OPTIONS_SIZE },
	{ OPTION_LEAF, 1, RANK_NODES_MAX, FIELD(network.leaf_hosts) },
	{ OPTION_OVERSUBSCRIPTION, 1, RANK_NODES_MAX,
	  FIELD(network.oversubscription) },
	{ OPTION_THREADS, 1, UDP_THREADS_MAX, FIELD(thread_count) },
};

struct simulate_options {
	struct options_reader reader;
	struct simulation_options simulation;
	uint64_t records;  /* 0: a message's bytes are given */
	unsigned rank_max; /* that an option names */
};

/* --- values ------------------------------------------------------------------
 */

/* A number up to max, which may have decimals if unit, a power of ten, is more
 * than 1: in parts of which so many are 1.  Exactly, whatever a decimal
 * fraction is in binary.  *text is then what follows.  False: it is not that.
 */
static bool take_decimal(const char **text, uint64_t max, uint64_t unit,
			 uint64_t *number)
{
	char digits[24] = "";
	size_t length = strspn(*text, "0123456789");
	uint64_t part = unit;

	if (length >= sizeof(digits))
		return false;
	memcpy(digits, *text, length);
	*text += length;
	if (parse_u64(digits, 0, max, number) < 0)
		return false;
	*number *= unit;
	if (**text == '.' && unit > 1)
		while (*++*text >= '0' && **text <= '9' && part > 1)
			*number += (uint64_t)(**text - '0') * (part /= 10);
	return *number <= max * unit;
}

/* Numbers up to max with colons between them, up to a comma or the end.  *text
 * is then what follows.  False: they are not that. */
static bool take_numbers(const char **text, uint64_t max, uint64_t *numbers,
			 unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if ((i > 0 && *(*text)++ != ':') ||
		    !take_decimal(text, max, 1, &numbers[i]))
			return false;
	return **text == '\0' || **text == ',';
}

/* count numbers, and no more; form: how they are written. */
static int take_all(struct simulate_options *options, uint64_t *numbers,
		    unsigned count, const char *form, struct failure *failure)
{
	const char *text = options->reader.value;

	if (take_numbers(&text, NUMBER_MAX, numbers, count) && *text == '\0')
		return 0;
	return options_refuse(&options->reader, failure,
			      "not of the form %s, in whole numbers up to %d",
			      form, NUMBER_MAX);
}

static int take_cost(struct simulate_options *options,
		     struct virtual_cost *cost, struct failure *failure)
{
	uint64_t numbers[3] = { 0 };
	int error =
		take_all(options, numbers, 3, "CALL:DATAGRAM:BYTE", failure);

	if (error == 0)
		*cost = (struct virtual_cost){ (uint32_t)numbers[0],
					       (uint32_t)numbers[1],
					       (uint32_t)numbers[2] };
	return error;
}

static int take_chance(struct simulate_options *options, uint64_t *chance,
		       struct failure *failure)
{
	const char *text = options->reader.value;

	if (take_decimal(&text, 1, VIRTUAL_CHANCE, chance) && *text == '\0')
		return 0;
	return options_refuse(&options->reader, failure,
			      "not from 0 to 1, with 9 decimals at most");
}

static int take_noise(struct simulate_options *options, struct failure *failure)
{
	struct simulation_options *simulation = &options->simulation;
	const char *text = options->reader.value;
	uint64_t numbers[2] = { 0 }, taken_ns = 0;

	for (;;) {
		if (!take_numbers(&text, TIME_NS_MAX, numbers, 2) ||
		    numbers[0] == 0 ||
		    simulation->noise_count == ARRAY_LEN(simulation->noise))
			return options_refuse(&options->reader, failure,
					      "not COUNT:NS, up to %zu times",
					      ARRAY_LEN(simulation->noise));
		simulation->noise[simulation->noise_count++] =
			(struct interruption){
				.gap_ns = TIME_NS_MAX / numbers[0],
				.length_ns = numbers[1],
			};
		/* Or nothing that a rank computes would end. */
		taken_ns += numbers[0] * numbers[1];
		if (taken_ns >= TIME_NS_MAX)
			return options_refuse(&options->reader, failure,
					      "leaves a CPU no time");
		if (*text == '\0')
			return 0;
		text++;
	}
}

static int add_event(struct simulate_options *options,
		     const struct simulation_event *event,
		     struct simulation_event *events, unsigned max,
		     unsigned *count, struct failure *failure)
{
	if (*count == max)
		return options_refuse(&options->reader, failure,
				      "given more than %u times", max);
	options->rank_max = MAX(options->rank_max, event->rank);
	events[(*count)++] = *event;
	return 0;
}

static int take_slow(struct simulate_options *options, struct failure *failure)
{
	struct simulation_options *simulation = &options->simulation;
	uint64_t numbers[2] = { 0 };
	int error = take_all(options, numbers, 2, "RANK:TIMES", failure);
	struct simulation_event event = { .rank = (unsigned)numbers[0],
					  .length_ns = numbers[1] };

	if (error)
		return error;
	return add_event(options, &event, simulation->slow,
			 ARRAY_LEN(simulation->slow), &simulation->slow_count,
			 failure);
}

/* RANK:MS, or if the event has a length RANK:MS:MS. */
static int take_event(struct simulate_options *options, bool has_length,
		      struct simulation_event *events, unsigned max,
		      unsigned *count, struct failure *failure)
{
	const char *text = options->reader.value;
	uint64_t rank, at_ns, length_ns = 0;
	struct simulation_event event;

	if (!take_decimal(&text, NUMBER_MAX, 1, &rank) || *text++ != ':' ||
	    !take_decimal(&text, NUMBER_MAX, NS_PER_MS, &at_ns) ||
	    (has_length &&
	     (*text++ != ':' ||
	      !take_decimal(&text, NUMBER_MAX, NS_PER_MS, &length_ns))) ||
	    *text != '\0')
		return options_refuse(&options->reader, failure,
				      "not of the form %s, in numbers up to %d "
				      "with 6 decimals at most",
				      has_length ? "RANK:MS:MS" : "RANK:MS",
				      NUMBER_MAX);
	event = (struct simulation_event){ (unsigned)rank, at_ns, length_ns };
	return add_event(options, &event, events, max, count, failure);
}

static int take_long_loss(struct simulate_options *options,
			  struct failure *failure)
{
	uint64_t numbers[2] = { 0 };
	int error = take_all(options, numbers, 2, "RANK:BYTES", failure);

	if (error)
		return error;
	options->rank_max = MAX(options->rank_max, (unsigned)numbers[0]);
	options->simulation.network.long_loss_host = (unsigned)numbers[0];
	/* 0 would be no loss; and none has a single byte. */
	options->simulation.network.long_loss_bytes =
		(uint32_t)MAX(1, numbers[1]);
	return 0;
}

static int take_link(struct simulate_options *options, struct failure *failure)
{
	if (parse_bits(options->reader.value, LINK_BITS_MAX,
		       &options->simulation.network.link_bits_per_s) == 0)
		return 0;
	return options_refuse(&options->reader, failure,
			      "not bits a second up to 1T, such as 25G");
}

static int take_records(struct simulate_options *options,
			struct failure *failure)
{
	if (parse_count(options->reader.value, (uint64_t)1 << 40,
			&options->records) == 0)
		return 0;
	return options_refuse(&options->reader, failure,
			      "not records from 1 to 1T, such as 10M");
}

static int take_option(void *context, int id, struct failure *failure)
{
	struct simulate_options *options = context;
	struct simulation_options *simulation = &options->simulation;
	struct virtual_network_options *network = &simulation->network;
	struct options_reader *reader = &options->reader;

	switch (id) {
	case OPTION_RECORDS:
		return take_records(options, failure);
	case OPTION_LENGTHS:
		return options_choice(reader, simulation_lengths_names,
				      SIMULATION_LENGTHS, &simulation->lengths,
				      failure);
	case OPTION_SCHEDULE:
		return options_choice(reader, exchange_schedule_names,
				      EXCHANGE_SCHEDULES, &simulation->schedule,
				      failure);
	case OPTION_LINK:
		return take_link(options, failure);
	case OPTION_LOSS:
		return take_chance(options, &network->loss, failure);
	case OPTION_DUPLICATES:
		return take_chance(options, &network->duplication, failure);
	case OPTION_REORDERING:
		return take_chance(options, &network->reordering, failure);
	case OPTION_CORRUPTION:
		return take_chance(options, &network->corruption, failure);
	case OPTION_LOSE_LONG:
		return take_long_loss(options, failure);
	case OPTION_SEND_COST:
		return take_cost(options, &network->send, failure);
	case OPTION_RECEIVE_COST:
		return take_cost(options, &network->receive, failure);
	case OPTION_NOISE:
		return take_noise(options, failure);
	case OPTION_SLOW:
		return take_slow(options, failure);
	case OPTION_PAUSE:
		return take_event(options, true, simulation->pauses,
				  ARRAY_LEN(simulation->pauses),
				  &simulation->pause_count, failure);
	case OPTION_KILL:
		return take_event(options, false, simulation->deaths,
				  ARRAY_LEN(simulation->deaths),
				  &simulation->death_count, failure);
	default:
		return options_take_row(reader, id, number_rows,
					ARRAY_LEN(number_rows), simulation,
					failure);
	}
}

static int complete(struct simulate_options *options, struct failure *failure)
{
	struct simulation_options *simulation = &options->simulation;
	uint64_t pairs =
		(uint64_t)simulation->node_count * simulation->node_count;

	if (options->reader.operand_count > 0)
		return failure_set(failure, EXIT_USAGE,
				   options->reader.operands[0], 0,
				   "one word too many for simulate");
	if (simulation->node_count == 0)
		return failure_set(failure, EXIT_USAGE, "--nodes", 0,
				   "is missing");
	if (options->rank_max >= simulation->node_count)
		return failure_set(failure, EXIT_USAGE, "--nodes", 0,
				   "there is no rank %u", options->rank_max);
	if (simulation->node_count * simulation->thread_count > STACKS_MAX)
		return failure_set(failure, EXIT_USAGE, "--threads", 0,
				   "%u of each of %u ranks need more than %d "
				   "stacks",
				   simulation->thread_count,
				   simulation->node_count, STACKS_MAX);
	for (unsigned i = 0; i < simulation->slow_count; i++)
		if (simulation->slow[i].length_ns == 0)
			return failure_set(failure, EXIT_USAGE, "--slow", 0,
					   "no CPU computes in no time");
	if (options->records > 0 &&
	    options_given(&options->reader, OPTION_MESSAGE))
		return failure_set(failure, EXIT_USAGE, "--records", 0,
				   "not with --message");
	if (options->records > 0)
		simulation->message_bytes =
			options->records * RECORD_BYTES / pairs;
	simulation->says_hello = options_given(&options->reader, OPTION_JOIN);
	simulation->plain = options_given(&options->reader, OPTION_PLAIN);
	simulation->trace_path = options_value(&options->reader, OPTION_TRACE);
	return 0;
}

/* --- what is printed ---------------------------------------------------------
 */

static void print_text(const struct simulation_options *options,
		       const struct simulation_figures *figures)
{
	const struct virtual_counters *network = &figures->network;

	printf("%u ranks, %s%" PRIu64 " bytes to each, %s", options->node_count,
	       options->lengths == SIMULATION_EQUAL ? "" : "up to ",
	       options->message_bytes,
	       exchange_schedule_names[figures->schedule]);
	if (options->times > 1)
		printf(", %u times", options->times);
	putchar('\n');
	printf("all messages came within %s (median), %s (last rank); all "
	       "ended within %s\n",
	       FORMAT_DURATION(figures->median_ns),
	       FORMAT_DURATION(figures->max_ns),
	       FORMAT_DURATION(figures->end_ns));
	printf("%" PRIu64 " datagrams: %" PRIu64 " of messages, %" PRIu64
	       " sent again, %" PRIu64 " of status; %s on links\n",
	       network->datagrams, figures->ranks.sent_datagrams,
	       figures->ranks.resent_datagrams, figures->ranks.status_datagrams,
	       FORMAT_SIZE(network->bytes));
	printf("dropped: %" PRIu64 " by switches, %" PRIu64
	       " by full sockets, %" PRIu64 " by chance or unknown sockets\n",
	       network->queue_drops, network->room_drops, network->lost);
	printf("%" PRIu64 " events, digest %016" PRIx64 "%s\n",
	       figures->event_count, figures->digest,
	       figures->compared ? "" : "; messages were zeros");
}

static void print_json(const struct simulation_options *options,
		       const struct simulation_figures *figures)
{
	const struct exchange_counters *ranks = &figures->ranks;
	const struct virtual_counters *network = &figures->network;
	char digest[17];

	json_begin("blinkprobe-simulate-1");
	json_text("program", "blinkprobe");
	json_text("version", blinksort_version);
	json_text("probe", "simulate");
	json_number("nodes", options->node_count);
	json_number("message_bytes", options->message_bytes);
	json_text("schedule", exchange_schedule_names[figures->schedule]);
	json_number("seed", options->seed);
	json_number("link_bits_per_s", options->network.link_bits_per_s);
	json_number("median_ns", figures->median_ns);
	json_number("max_ns", figures->max_ns);
	json_number("end_ns", figures->end_ns);
	json_number("sent_bytes", ranks->sent_bytes);
	json_number("sent_datagrams", ranks->sent_datagrams);
	json_number("resent_datagrams", ranks->resent_datagrams);
	json_number("duplicate_datagrams", ranks->duplicate_datagrams);
	json_number("damaged_datagrams", ranks->damaged_datagrams);
	json_number("stray_datagrams", ranks->stray_datagrams);
	json_number("status_datagrams", ranks->status_datagrams);
	json_number("datagrams", network->datagrams);
	json_number("link_bytes", network->bytes);
	json_number("switch_drops", network->queue_drops);
	json_number("socket_drops", network->room_drops);
	json_number("lost", network->lost);
	json_number("duplicated", network->duplicated);
	json_number("reordered", network->reordered);
	json_number("corrupted", network->corrupted);
	json_number("events", figures->event_count);
	snprintf(digest, sizeof(digest), "%016" PRIx64, figures->digest);
	json_bool("compared", figures->compared);
	json_text("digest", digest);
	json_end();
}

int simulate_verb_run(char **words)
{
	static struct simulate_options options;
	struct simulation_figures figures = { 0 };
	struct failure failure = { .status = EXIT_DONE };
	int ret;

	options.simulation = simulation_usual();
	options_begin(&options.reader, entries, ARRAY_LEN(entries), words);
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkprobe", help);
	if (ret == 0)
		ret = complete(&options, &failure);
	stdout_reserve();
	if (ret == 0)
		ret = simulation_run(&options.simulation, &figures, &failure);
	if (ret < 0)
		return log_failure(&failure);
	if (options_given(&options.reader, OPTION_JSON))
		print_json(&options.simulation, &figures);
	else
		print_text(&options.simulation, &figures);
	return stdout_finish();
}
