/*
 * blinkprobe - what the parts of a machine take: memory, a start, the network
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "base.h"
#include "exchange_wire.h"
#include "failure.h"
#include "format.h"
#include "log.h"
#include "memory_probe.h"
#include "network_probe.h"
#include "parse.h"
#include "rank.h"
#include "spawn_probe.h"
#include "usage.h"
#include "version.h"

#define ROUNDS_MAX 1000000
#define DEADLINE_SECONDS_MAX 3600
/* A round of memory moves so much: 10 ms and more. */
#define ROUND_BYTES_DEFAULT ((uint64_t)256 << 20)
/* A chase goes to so many lines a round: a line takes up to 100 ns. */
#define CHASE_LINES 262144
/* Above those of the exchange. */
#define PORT_DEFAULT 32000

static const char usage[] =
	"usage: blinkprobe memory [OPTION]...\n"
	"       blinkprobe spawn [OPTION]... [-- PROGRAM [ARGUMENT]...]\n"
	"       blinkprobe network [OPTION]...\n"
	"       blinkprobe nothing\n"
	"\n"
	"Measure one thing, repeatedly, and print all samples as JSON.\n"
	"\n"
	"memory: go over memory\n"
	"  --pattern=KIND   read, write, copy: in order; random: blocks in "
	"any\n"
	"                   order; chase: one line after the other (read)\n"
	"  --area=SIZE      of each thread, a power of two (64M)\n"
	"  --block=SIZE     a power of two, 64 or more (4K; random: 64)\n"
	"  --bytes=SIZE     moved in a round (256M; chase: 16M)\n"
	"  --threads=N      (1)\n"
	"spawn: start a program and wait for its end (blinkprobe nothing)\n"
	"network: as rank of a job that blinksh started; rank 0 measures "
	"round\n"
	"trips and throughput to each other rank\n"
	"  --bytes=SIZE     sent to each (64M; 0: round trips only)\n"
	"  --payload=BYTES  of a ping (64)\n"
	"  --port=P         of rank 0; rank R takes P + R (32000)\n"
	"  --deadline=S     a silent rank is given up (5)\n"
	"  --nodes=HOSTS --rank=R --key-file=FILE --job=NAME: as of blinksort\n"
	"all:\n"
	"  --rounds=N       samples (memory 7, spawn 1000, network 200)\n"
	"  --help, --version\n"
	"\n"
	"Statuses: 0 done, 1 failed, 2 usage, 3 file, 4 another rank or the\n"
	"network, 5 memory or threads.  See blinkprobe(1).\n";

struct options {
	struct memory_probe memory;
	struct network_probe network;
	struct rank_options rank;
	uint64_t rounds, bytes;
	bool has_bytes;
};

enum {
	OPTION_PATTERN = 256,
	OPTION_AREA,
	OPTION_BLOCK,
	OPTION_BYTES,
	OPTION_THREADS,
	OPTION_PAYLOAD,
	OPTION_PORT,
	OPTION_DEADLINE,
	OPTION_NODES,
	OPTION_RANK,
	OPTION_KEY_FILE,
	OPTION_JOB,
	OPTION_ROUNDS,
};

static const char *const patterns[] = { "read", "write", "copy", "random",
					"chase" };

static uint64_t size_option(const char *name, uint64_t min)
{
	uint64_t bytes;

	if (parse_size(optarg, min, (uint64_t)1 << 40, &bytes) < 0)
		usage_error("--%s=%.64s: not a size from %" PRIu64 " to 1T",
			    name, optarg, min);
	return bytes;
}

static uint64_t power_option(const char *name)
{
	uint64_t bytes = size_option(name, MEMORY_PROBE_LINE_BYTES);

	if (bytes & (bytes - 1))
		usage_error("--%s=%.64s: not a power of two", name, optarg);
	return bytes;
}

static enum memory_pattern pattern_option(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(patterns); i++)
		if (strcmp(optarg, patterns[i]) == 0)
			return (enum memory_pattern)i;
	usage_error("--pattern=%.64s: not read, write, copy, random or chase",
		    optarg);
}

static void set_memory_option(struct options *options, int option)
{
	struct memory_probe *memory = &options->memory;

	switch (option) {
	case OPTION_PATTERN:
		memory->pattern = pattern_option();
		break;
	case OPTION_AREA:
		memory->area_bytes = power_option("area");
		break;
	case OPTION_BLOCK:
		memory->block_bytes = power_option("block");
		break;
	case OPTION_THREADS:
		memory->threads = (unsigned)usage_number(
			"threads", optarg, 1, MEMORY_PROBE_THREADS_MAX);
		break;
	default: /* getopt_long() has said what is wrong */
		exit(EXIT_USAGE);
	}
}

static void set_option(struct options *options, int option)
{
	struct network_probe *network = &options->network;

	switch (option) {
	case OPTION_BYTES:
		options->bytes = size_option("bytes", 0);
		options->has_bytes = true;
		break;
	case OPTION_PAYLOAD:
		network->ping_bytes =
			(uint32_t)usage_number("payload", optarg, 16, 65000);
		break;
	case OPTION_PORT:
		network->port = (uint16_t)usage_number("port", optarg, 1,
						       65535 - RANK_NODES_MAX);
		break;
	case OPTION_DEADLINE:
		network->deadline_ns =
			1000000000 * usage_number("deadline", optarg, 1,
						  DEADLINE_SECONDS_MAX);
		break;
	case OPTION_NODES:
		options->rank.nodes = optarg;
		break;
	case OPTION_RANK:
		options->rank.rank = optarg;
		break;
	case OPTION_KEY_FILE:
		options->rank.key_path = optarg;
		break;
	case OPTION_JOB:
		options->rank.job = optarg;
		break;
	case OPTION_ROUNDS:
		options->rounds = usage_number("rounds", optarg, 1, ROUNDS_MAX);
		break;
	default:
		set_memory_option(options, option);
	}
}

static void parse_options(struct options *options, int argc, char **argv)
{
	static const struct option table[] = {
		{ "pattern", required_argument, NULL, OPTION_PATTERN },
		{ "area", required_argument, NULL, OPTION_AREA },
		{ "block", required_argument, NULL, OPTION_BLOCK },
		{ "bytes", required_argument, NULL, OPTION_BYTES },
		{ "threads", required_argument, NULL, OPTION_THREADS },
		{ "payload", required_argument, NULL, OPTION_PAYLOAD },
		{ "port", required_argument, NULL, OPTION_PORT },
		{ "deadline", required_argument, NULL, OPTION_DEADLINE },
		{ "nodes", required_argument, NULL, OPTION_NODES },
		{ "rank", required_argument, NULL, OPTION_RANK },
		{ "key-file", required_argument, NULL, OPTION_KEY_FILE },
		{ "job", required_argument, NULL, OPTION_JOB },
		{ "rounds", required_argument, NULL, OPTION_ROUNDS },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	*options = (struct options){
		.memory = { .area_bytes = (uint64_t)64 << 20, .threads = 1 },
		.network = { .port = PORT_DEFAULT,
			     .ping_bytes = 64,
			     .deadline_ns = (uint64_t)5 * 1000000000 },
	};
	while ((option = getopt_long(argc, argv, "+", table, NULL)) >= 0)
		set_option(options, option);
}

/* --- what is printed ------------------------------------------------------ */

static void print_head(const char *probe)
{
	printf("{\"program\": \"blinkprobe\", \"version\": ");
	format_json_string(stdout, blinksort_version);
	printf(", \"probe\": \"%s\"", probe);
}

static void print_samples(const char *key, const uint64_t *samples_ns,
			  uint64_t count)
{
	printf(", \"%s\": [", key);
	for (uint64_t i = 0; i < count; i++)
		printf("%s%" PRIu64, i == 0 ? "" : ", ", samples_ns[i]);
	printf("]");
}

static uint64_t *take_samples(uint64_t count)
{
	uint64_t *samples_ns = calloc(count, sizeof(*samples_ns));
	struct failure failure;

	if (samples_ns)
		return samples_ns;
	failure_set(&failure, EXIT_RESOURCES, NULL, ENOMEM, "samples");
	exit(log_failure(&failure));
}

/* --- the probes ----------------------------------------------------------- */

static void complete_memory_probe(struct options *options)
{
	struct memory_probe *memory = &options->memory;
	bool chases = memory->pattern == MEMORY_CHASE;

	if (memory->block_bytes == 0)
		memory->block_bytes =
			chases || memory->pattern == MEMORY_RANDOM
				? MEMORY_PROBE_LINE_BYTES
				: MAX(MEMORY_PROBE_LINE_BYTES,
				      MIN(4 * KIB, memory->area_bytes / 2));
	if (chases && memory->block_bytes != MEMORY_PROBE_LINE_BYTES)
		usage_error("--block: a chase goes by lines of %d",
			    MEMORY_PROBE_LINE_BYTES);
	if (memory->area_bytes < 2 * memory->block_bytes)
		usage_error("--area: smaller than two blocks");
	memory->rounds = (unsigned)(options->rounds ? options->rounds : 7);
	memory->round_bytes =
		chases ? (uint64_t)CHASE_LINES * MEMORY_PROBE_LINE_BYTES
		       : ROUND_BYTES_DEFAULT;
	if (options->has_bytes)
		memory->round_bytes = options->bytes;
}

static int run_memory(const struct memory_probe *memory, uint64_t *samples_ns,
		      struct failure *failure)
{
	if (memory_probe_run(memory, samples_ns, failure) < 0)
		return log_failure(failure);
	print_head("memory");
	printf(", \"pattern\": \"%s\", \"area_bytes\": %" PRIu64
	       ", \"block_bytes\": %" PRIu64 ", \"threads\": %u"
	       ", \"thread_bytes\": %" PRIu64 ", \"thread_accesses\": %" PRIu64,
	       patterns[memory->pattern], memory->area_bytes,
	       memory->block_bytes, memory->threads,
	       memory_probe_moved_bytes(memory), memory_probe_accesses(memory));
	print_samples("samples_ns", samples_ns, memory->rounds);
	puts("}");
	return answer_finish();
}

static int probe_memory(struct options *options, char **arguments,
			struct failure *failure)
{
	uint64_t *samples_ns;
	int status;

	if (arguments[0])
		usage_error("memory takes no '%.64s'", arguments[0]);
	complete_memory_probe(options);
	samples_ns = take_samples(options->memory.rounds);
	status = run_memory(&options->memory, samples_ns, failure);
	free(samples_ns);
	return status;
}

static int run_spawn(char **command, unsigned rounds, uint64_t *samples_ns,
		     struct failure *failure)
{
	if (spawn_probe_run(command, rounds, samples_ns, failure) < 0)
		return log_failure(failure);
	print_head("spawn");
	printf(", \"command\": [");
	for (char **word = command; *word; word++) {
		fputs(word == command ? "" : ", ", stdout);
		format_json_string(stdout, *word);
	}
	printf("]");
	print_samples("samples_ns", samples_ns, rounds);
	puts("}");
	return answer_finish();
}

static int probe_spawn(struct options *options, char **arguments,
		       struct failure *failure)
{
	/* This program, by whatever name it was started. */
	static char self[] = "/proc/self/exe", nothing[] = "nothing";
	static char *own[] = { self, nothing, NULL };
	unsigned rounds = (unsigned)(options->rounds ? options->rounds : 1000);
	uint64_t *samples_ns = take_samples(rounds);
	int status = run_spawn(arguments[0] ? arguments : own, rounds,
			       samples_ns, failure);

	free(samples_ns);
	return status;
}

static void print_peer(const struct rank *ranks, unsigned rank,
		       const struct network_figures *figures, uint64_t rounds)
{
	printf("%s{\"rank\": %u, \"host\": ", rank == 1 ? "" : ", ", rank);
	format_json_string(stdout, ranks->names[rank]);
	printf(", \"lost_pings\": %u, \"payload_bytes\": %u"
	       ", \"arrived_bytes\": %" PRIu64 ", \"arrived_ns\": %" PRIu64,
	       figures->lost_pings, figures->payload_bytes,
	       figures->arrived_bytes, figures->arrived_ns);
	print_samples("round_trip_ns", figures->round_trip_ns, rounds);
	printf("}");
}

/* The network probe of a job whose ranks are known. */
static int run_network(const struct network_probe *network,
		       struct network_figures *figures, struct failure *failure)
{
	const struct rank *ranks = network->rank;

	if (network_probe_run(network, figures, failure) < 0)
		return log_failure(failure);
	print_head("network");
	printf(", \"rank\": %u, \"nodes\": %u, \"ping_payload_bytes\": %u"
	       ", \"stream_bytes\": %" PRIu64 ", \"peers\": [",
	       ranks->rank, ranks->node_count, network->ping_bytes,
	       network->stream_bytes);
	for (unsigned i = 1; ranks->rank == 0 && i < ranks->node_count; i++)
		print_peer(ranks, i, &figures[i], network->rounds);
	puts("]}");
	return answer_finish();
}

static int probe_network(struct options *options, char **arguments,
			 struct failure *failure)
{
	static struct network_figures figures[RANK_NODES_MAX];
	struct network_probe network = options->network;
	struct rank ranks;
	int status;

	if (arguments[0])
		usage_error("network takes no '%.64s'", arguments[0]);
	network.rounds = (unsigned)(options->rounds ? options->rounds : 200);
	network.stream_bytes =
		options->has_bytes ? options->bytes : (uint64_t)64 << 20;
	if (rank_find(&ranks, &options->rank, failure) < 0)
		return log_failure(failure);
	network.rank = &ranks;
	for (unsigned i = 1; ranks.rank == 0 && i < ranks.node_count; i++)
		figures[i].round_trip_ns = take_samples(network.rounds);
	status = run_network(&network, figures, failure);
	for (unsigned i = 1; i < ranks.node_count; i++)
		free(figures[i].round_trip_ns);
	rank_free(&ranks);
	return status;
}

static int probe_nothing(struct options *options, char **arguments,
			 struct failure *failure)
{
	(void)options;
	(void)arguments;
	(void)failure;
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct options *options, char **arguments,
			   struct failure *failure);
	} probes[] = { { "memory", probe_memory },
		       { "spawn", probe_spawn },
		       { "network", probe_network },
		       { "nothing", probe_nothing } };
	struct failure failure = { .status = EXIT_DONE };
	struct options options;

	log_init("blinkprobe");
	if (argc > 0 && answer_question(argv, "blinkprobe", usage))
		return answer_finish();
	if (argc < 2)
		usage_error("what to measure? see blinkprobe --help");
	for (unsigned i = 0; i < ARRAY_LEN(probes); i++)
		if (strcmp(argv[1], probes[i].name) == 0) {
			parse_options(&options, argc - 1, argv + 1);
			return probes[i].run(&options, argv + 1 + optind,
					     &failure);
		}
	usage_error("%.64s: not memory, spawn or network", argv[1]);
}
