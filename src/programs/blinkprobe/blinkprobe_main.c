/*
 * blinkprobe_main.c - measures parts of a machine: memory, a start, the
 * network, its noise; and what a program takes of it
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "base/stdout.h"
#include "base/version.h"
#include "net/rank.h"
#include "probe/codec_probe.h"
#include "probe/memory_probe.h"
#include "probe/network_probe.h"
#include "probe/noise_probe.h"
#include "probe/run_probe.h"
#include "probe/spawn_probe.h"
#include "programs/blinkprobe/simulate_verb.h"
#include "system/numa.h"
#include "system/thread_pool.h"

#define ROUNDS_MAX 1000000
#define DEADLINE_SECONDS_MAX 3600
/* The bytes that a round of memory moves: that takes 10 ms or more. */
#define ROUND_BYTES_DEFAULT ((uint64_t)256 << 20)
/* The lines that a round of chase reads: a line takes up to 100 ns. */
#define CHASE_LINES 262144
/* A run of a sort beyond memory has such blocks if there is room. */
#define CODEC_BLOCK_BYTES_DEFAULT ((uint64_t)256 << 10)
/* What is sent to each rank, and what is compressed in a round. */
#define STREAM_BYTES_DEFAULT ((uint64_t)64 << 20)
/* Above the ports of the exchange. */
#define PORT_DEFAULT 32000
/* Ten ticks, in which steal time is counted. */
#define NOISE_MS_DEFAULT 100
#define NOISE_MS_MAX 60000
#define NOISE_THRESHOLD_NS_DEFAULT 5000
/* A year. */
#define TIMEOUT_MS_MAX ((uint64_t)365 * 24 * 3600 * 1000)

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinkprobe memory [OPTION]...\n"
"       blinkprobe codec [OPTION]...\n"
"       blinkprobe spawn [OPTION]... [--] [PROGRAM [ARGUMENT]...]\n"
"       blinkprobe run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
"       blinkprobe network [OPTION]...\n"
"       blinkprobe noise [OPTION]...\n"
"       blinkprobe simulate --nodes=N [OPTION]...\n"
"       blinkprobe nothing\n"
"Measure one thing, repeatedly, and print all samples as JSON.\n"
"\n"
"memory: read or write memory\n"
"  --pattern=KIND    read, write or copy in order; read or write blocks in random\n"
"                    order (random, random-write); or read lines that each name\n"
"                    the next one (chase); (read)\n"
"  --area=SIZE       give each thread this area, a power of two (64M)\n"
"  --block=SIZE      move blocks of this size, a power of two from 64 (4K;\n"
"                    at random: 64)\n"
"  --bytes=SIZE      move SIZE bytes in a round (256M; chase: 16M)\n"
"  --threads=N       use N threads (1)\n"
"  --cpu-node=N      run them on CPUs of NUMA node N\n"
"  --memory-node=N   take the areas from the memory of NUMA node N\n"
"codec: compress and decompress sorted records in blocks\n"
"  --codec=CODEC     lz4, zstd or zstd:LEVEL (lz4)\n"
"  --binary          make records of all bytes, not of lines of text\n"
"  --block=SIZE      give a block this room, a power of two from 128 (256K)\n"
"  --bytes=SIZE      compress SIZE bytes in a round (64M)\n"
"spawn: start a program and wait for its end (blinkprobe nothing)\n"
"run: run the program of a path once, and measure what it takes with all its\n"
"descendants\n"
"  --count=EVENT,... count also instructions, cycles, cache_misses,\n"
"                    branch_misses, page_faults or task_clock_ns\n"
"  --argv0=WORD      let it find WORD as its name, not its path\n"
"  --directory=DIR   run it in DIR\n"
"  --stdout=FILE     write its output to FILE (/dev/null)\n"
"  --timeout-ms=MS   end it after MS milliseconds\n"
"  --parent=PID      end it when PID, which has started blinkprobe, ends\n"
"network: be a rank of a job that blinksh started; rank 0 measures round trips\n"
"and throughput to each other rank\n"
"  --bytes=SIZE      send SIZE bytes to each (64M; 0: round trips only)\n"
"  --payload=BYTES   send BYTES in each round trip (64)\n"
"  --port=P          give rank 0 port P, and rank R port P + R (32000)\n"
"  --deadline=SECONDS\n"
"                    fail when a rank is silent for longer (5)\n"
"  --nodes=HOSTS --rank=R --key-file=FILE --job=NAME\n"
"                    take these as blinksort does\n"
"noise: measure how much of each CPU other threads and the host take\n"
"  --time-ms=MS      read the clock for MS on all CPUs (100)\n"
"  --threshold-ns=NS\n"
"                    count gaps between two readings that are longer (5000)\n"
"simulate: simulate an exchange of ranks; see blinkprobe simulate --help\n"
"memory, codec, spawn and network:\n"
"  --rounds=N        take N samples (memory and codec 7, spawn 1000, network 200)\n"
"  -h, --help        print this text\n"
"  -V, --version     print the version\n"
"\n"
"Statuses: 0 done, 1 failed, 2 usage, 3 file, 4 another rank or the\n"
"network, 5 memory or threads.  See blinkprobe(1).\n";
/* clang-format on */

struct options {
	struct options_reader reader;
	struct memory_probe memory;
	struct codec_probe codec;
	struct network_probe network;
	struct noise_probe noise;
	struct run_probe run;
	unsigned rounds;
	uint64_t bytes;	      /* the memory probe has its own default */
	uint64_t block_bytes; /* 0: as the probe takes unless told */
};

enum {
	OPTION_ROUNDS = OPTIONS_OWN,
	OPTION_BYTES,
	OPTION_PATTERN,
	OPTION_AREA,
	OPTION_BLOCK,
	OPTION_THREADS,
	OPTION_CPU_NODE,
	OPTION_MEMORY_NODE,
	OPTION_CODEC,
	OPTION_BINARY,
	OPTION_PAYLOAD,
	OPTION_PORT,
	OPTION_DEADLINE,
	OPTION_NODES,
	OPTION_RANK,
	OPTION_KEY_FILE,
	OPTION_JOB,
	OPTION_TIME_MS,
	OPTION_THRESHOLD_NS,
	OPTION_COUNT,
	OPTION_ARGV0,
	OPTION_DIRECTORY,
	OPTION_STDOUT,
	OPTION_TIMEOUT_MS,
	OPTION_PARENT,
};

static const char *const patterns[] = { "read",	  "write",	  "copy",
					"random", "random-write", "chase" };

/* --- the command line ----------------------------------------------------- */

static const struct options_entry no_entries[] = { OPTIONS_COMMON };

static const struct options_entry memory_entries[] = {
	{ OPTION_PATTERN, "pattern", 0, OPTIONS_VALUE, "KIND" },
	{ OPTION_AREA, "area", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_BLOCK, "block", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_THREADS, "threads", 0, OPTIONS_VALUE, "N" },
	{ OPTION_CPU_NODE, "cpu-node", 0, OPTIONS_VALUE, "N" },
	{ OPTION_MEMORY_NODE, "memory-node", 0, OPTIONS_VALUE, "N" },
	{ OPTION_BYTES, "bytes", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_ROUNDS, "rounds", 0, OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static const struct options_entry codec_entries[] = {
	{ OPTION_CODEC, "codec", 0, OPTIONS_VALUE, "CODEC" },
	{ OPTION_BINARY, "binary", 0, OPTIONS_FLAG, NULL },
	{ OPTION_BLOCK, "block", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_BYTES, "bytes", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_ROUNDS, "rounds", 0, OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static const struct options_entry spawn_entries[] = {
	{ OPTION_ROUNDS, "rounds", 0, OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static const struct options_entry run_entries[] = {
	{ OPTION_COUNT, "count", 0, OPTIONS_VALUE, "EVENT,..." },
	{ OPTION_ARGV0, "argv0", 0, OPTIONS_VALUE, "WORD" },
	{ OPTION_DIRECTORY, "directory", 0, OPTIONS_FILE, "DIR" },
	{ OPTION_STDOUT, "stdout", 0, OPTIONS_FILE, "FILE" },
	{ OPTION_TIMEOUT_MS, "timeout-ms", 0, OPTIONS_VALUE, "MS" },
	{ OPTION_PARENT, "parent", 0, OPTIONS_VALUE, "PID" },
	OPTIONS_COMMON,
};

static const struct options_entry network_entries[] = {
	{ OPTION_PAYLOAD, "payload", 0, OPTIONS_VALUE, "BYTES" },
	{ OPTION_PORT, "port", 0, OPTIONS_VALUE, "P" },
	{ OPTION_DEADLINE, "deadline", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_NODES, "nodes", 0, OPTIONS_VALUE, "HOSTS" },
	{ OPTION_RANK, "rank", 0, OPTIONS_VALUE, "R" },
	{ OPTION_KEY_FILE, "key-file", 0, OPTIONS_FILE, "FILE" },
	{ OPTION_JOB, "job", 0, OPTIONS_VALUE, "NAME" },
	{ OPTION_BYTES, "bytes", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_ROUNDS, "rounds", 0, OPTIONS_VALUE, "N" },
	OPTIONS_COMMON,
};

static const struct options_entry noise_entries[] = {
	{ OPTION_TIME_MS, "time-ms", 0, OPTIONS_VALUE, "MS" },
	{ OPTION_THRESHOLD_NS, "threshold-ns", 0, OPTIONS_VALUE, "NS" },
	OPTIONS_COMMON,
};

#define SIZE_MAX_BYTES ((uint64_t)1 << 40)
#define FIELD(name) OPTIONS_FIELD(struct options, name)
static const struct options_row number_rows[] = {
	{ OPTION_ROUNDS, 1, ROUNDS_MAX, FIELD(rounds) },
	{ OPTION_BYTES, 0, SIZE_MAX_BYTES, FIELD(bytes), OPTIONS_SIZE },
	{ OPTION_THREADS, 1, THREAD_POOL_WORKERS_MAX, FIELD(memory.threads) },
	{ OPTION_CPU_NODE, 0, TOPOLOGY_NODES_MAX - 1, FIELD(memory.cpu_node) },
	{ OPTION_MEMORY_NODE, 0, TOPOLOGY_NODES_MAX - 1,
	  FIELD(memory.memory_node) },
	{ OPTION_PAYLOAD, 16, 65000, FIELD(network.ping_bytes) },
	{ OPTION_PORT, 1, UINT16_MAX - RANK_NODES_MAX, FIELD(network.port) },
	{ OPTION_DEADLINE, 1, DEADLINE_SECONDS_MAX, FIELD(network.deadline_ns),
	  OPTIONS_SECONDS },
	{ OPTION_TIME_MS, 1, NOISE_MS_MAX, FIELD(noise.time_ns), OPTIONS_MS },
	{ OPTION_THRESHOLD_NS, 0, NS_PER_S, FIELD(noise.threshold_ns) },
	{ OPTION_TIMEOUT_MS, 1, TIMEOUT_MS_MAX, FIELD(run.timeout_ms) },
	{ OPTION_PARENT, 1, INT32_MAX, FIELD(run.parent) },
};

static int take_power(struct options *options, uint64_t *bytes,
		      struct failure *failure)
{
	int ret = options_size(&options->reader, MEMORY_PROBE_LINE_BYTES,
			       SIZE_MAX_BYTES, bytes, failure);

	if (ret == 0 && (*bytes & (*bytes - 1)) != 0)
		return options_refuse(&options->reader, failure,
				      "not a power of two");
	return ret;
}

static int take_codec(struct options *options, struct failure *failure)
{
	struct codec *codec = &options->codec.codec;

	if (codec_parse(options->reader.value, codec) == 0 &&
	    codec->kind >= CODEC_LZ4)
		return 0;
	return options_refuse(&options->reader, failure,
			      "not lz4, zstd or zstd:LEVEL, with a LEVEL from "
			      "1 to %d",
			      CODEC_LEVEL_MAX);
}

static int take_events(struct options *options, struct failure *failure)
{
	const char *name = options->reader.value;

	for (;;) {
		unsigned length = (unsigned)strcspn(name, ",");

		if (!event_counters_add(&options->run.counters, name, length))
			return options_refuse(
				&options->reader, failure,
				"not each once of " EVENT_COUNTERS_NAMES);
		if (name[length] == '\0')
			return 0;
		name += length + 1;
	}
}

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;
	struct options_reader *reader = &options->reader;

	switch (id) {
	case OPTION_PATTERN:
		return options_choice(reader, patterns, ARRAY_LEN(patterns),
				      &options->memory.pattern, failure);
	case OPTION_AREA:
		return take_power(options, &options->memory.area_bytes,
				  failure);
	case OPTION_BLOCK:
		return take_power(options, &options->block_bytes, failure);
	case OPTION_CODEC:
		return take_codec(options, failure);
	case OPTION_COUNT:
		return take_events(options, failure);
	default:
		return options_take_row(reader, id, number_rows,
					ARRAY_LEN(number_rows), options,
					failure);
	}
}

/* --- what is printed ------------------------------------------------------ */

static void print_head(const char *probe)
{
	char schema[64];

	snprintf(schema, sizeof(schema), "blinkprobe-%s-1", probe);
	json_begin(schema);
	json_text("program", "blinkprobe");
	json_text("version", blinksort_version);
	json_text("probe", probe);
}

static void print_numbers(const char *key, const uint64_t *numbers,
			  uint64_t count)
{
	json_open(key, '[');
	for (uint64_t i = 0; i < count; i++)
		json_number(NULL, numbers[i]);
	json_close(']');
}

/* The end of the process frees them. */
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

static int complete_memory_probe(struct options *options,
				 struct failure *failure)
{
	struct memory_probe *memory = &options->memory;
	bool chases = memory->pattern == MEMORY_CHASE;

	memory->block_bytes = options->block_bytes;
	if (memory->block_bytes == 0)
		memory->block_bytes =
			memory->pattern >= MEMORY_RANDOM
				? MEMORY_PROBE_LINE_BYTES
				: MAX(MEMORY_PROBE_LINE_BYTES,
				      MIN(4 * KIB, memory->area_bytes / 2));
	if (chases && memory->block_bytes != MEMORY_PROBE_LINE_BYTES)
		return failure_set(failure, EXIT_USAGE, "--block", 0,
				   "a chase goes by lines of %d bytes",
				   MEMORY_PROBE_LINE_BYTES);
	if (memory->area_bytes < 2 * memory->block_bytes)
		return failure_set(failure, EXIT_USAGE, "--area", 0,
				   "smaller than two blocks");
	memory->rounds = options->rounds;
	memory->round_bytes =
		chases ? (uint64_t)CHASE_LINES * MEMORY_PROBE_LINE_BYTES
		       : ROUND_BYTES_DEFAULT;
	if (options_given(&options->reader, OPTION_BYTES))
		memory->round_bytes = options->bytes;
	return 0;
}

/* Where the areas lie; null: nobody has asked, or the kernel does not tell. */
static void print_places(const uint64_t *bytes_on)
{
	bool is_known = false;

	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++)
		is_known |= bytes_on[i] > 0;
	if (!json_open_known("numa", is_known, '['))
		return;
	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++) {
		if (bytes_on[i] == 0)
			continue;
		json_open(NULL, '{');
		json_number("node", i);
		json_number("memory_bytes", bytes_on[i]);
		json_close('}');
	}
	json_close(']');
}

static unsigned cpus_of(const struct topology *topology, unsigned node)
{
	unsigned count = 0;

	for (unsigned i = 0; i < topology->cpu_count; i++)
		count += topology->nodes[topology->node_of[i]] == node;
	return count;
}

/* In the order of nodes; null: the firmware does not tell. */
static void print_distances(unsigned from, uint64_t nodes)
{
	json_open("distances", '[');
	for (uint64_t left = nodes; left; left &= left - 1) {
		unsigned distance = topology_distance(
			from, (unsigned)__builtin_ctzll(left));

		json_known(NULL, distance > 0, distance);
	}
	json_close(']');
}

/* Nodes with CPUs or memory that this process may use. */
static void print_nodes(const struct topology *topology)
{
	uint64_t nodes = numa_nodes_of(topology);
	uint64_t memory = numa_memory_nodes();

	if (memory == 0)
		memory = nodes;
	nodes |= memory;
	json_open("nodes", '[');
	for (uint64_t left = nodes; left; left &= left - 1) {
		unsigned node = (unsigned)__builtin_ctzll(left);

		json_open(NULL, '{');
		json_number("node", node);
		json_number("cpus", cpus_of(topology, node));
		json_bool("has_memory", memory >> node & 1);
		print_distances(node, nodes);
		json_close('}');
	}
	json_close(']');
}

static int probe_memory(struct options *options, struct failure *failure)
{
	static struct memory_figures figures;
	static struct topology topology;
	const struct memory_probe *memory = &options->memory;
	int error = complete_memory_probe(options, failure);

	if (error)
		return error;
	figures.samples_ns = take_samples(memory->rounds);
	/* Before the probe, which binds this thread to one CPU. */
	topology_read(&topology);
	topology_read_nodes(&topology);
	error = memory_probe_run(memory, &figures, failure);
	if (error)
		return error;
	print_head("memory");
	json_text("pattern", patterns[memory->pattern]);
	json_number("area_bytes", memory->area_bytes);
	json_number("block_bytes", memory->block_bytes);
	json_number("threads", memory->threads);
	json_number("thread_bytes",
		    memory_probe_accesses(memory) * memory->block_bytes);
	json_number("thread_accesses", memory_probe_accesses(memory));
	json_known("cpu_node", memory->cpu_node >= 0, memory->cpu_node);
	json_known("memory_node", memory->memory_node >= 0,
		   memory->memory_node);
	print_places(figures.bytes_on);
	print_nodes(&topology);
	print_numbers("samples_ns", figures.samples_ns, memory->rounds);
	return 0;
}

static int complete_codec_probe(struct options *options,
				struct failure *failure)
{
	struct codec_probe *codec = &options->codec;

	codec->block_bytes = options->block_bytes ? options->block_bytes
						  : CODEC_BLOCK_BYTES_DEFAULT;
	if (codec->block_bytes < 128 ||
	    codec->block_bytes > CODEC_PROBE_BLOCK_BYTES_MAX)
		return failure_set(failure, EXIT_USAGE, "--block", 0,
				   "not from 128 to 64M");
	codec->bytes = options->bytes;
	codec->binary = options_given(&options->reader, OPTION_BINARY);
	codec->rounds = options->rounds;
	return 0;
}

static int probe_codec(struct options *options, struct failure *failure)
{
	static struct codec_figures figures;
	const struct codec_probe *codec = &options->codec;
	int error = complete_codec_probe(options, failure);

	if (error)
		return error;
	figures.encode_ns = take_samples(codec->rounds);
	figures.decode_ns = take_samples(codec->rounds);
	error = codec_probe_run(codec, &figures, failure);
	if (error)
		return error;
	print_head("codec");
	json_text("codec", codec_names[codec->codec.kind]);
	json_known("level", codec->codec.kind == CODEC_ZSTD,
		   codec->codec.level);
	json_text("records", codec->binary ? "binary" : "ascii");
	json_number("block_bytes", figures.block_bytes);
	json_number("plain_bytes", figures.plain_bytes);
	json_number("stored_bytes", figures.stored_bytes);
	print_numbers("compress_ns", figures.encode_ns, codec->rounds);
	print_numbers("decompress_ns", figures.decode_ns, codec->rounds);
	return 0;
}

static void print_words(char *const *words)
{
	json_open("command", '[');
	for (; *words; words++)
		json_text(NULL, *words);
	json_close(']');
}

static int probe_spawn(struct options *options, struct failure *failure)
{
	/* The path of this program, whatever its argv[0] is. */
	static char self[] = "/proc/self/exe", nothing[] = "nothing";
	static char *own[] = { self, nothing, NULL };
	static uint64_t *samples_ns;
	unsigned rounds = options->rounds;
	char **program = options->reader.operands;
	char **command = program[0] ? program : own;
	int error;

	samples_ns = take_samples(rounds);
	error = spawn_probe_run(command, rounds, samples_ns, failure);
	if (error)
		return error;
	print_head("spawn");
	print_words(command);
	print_numbers("samples_ns", samples_ns, rounds);
	return 0;
}

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_usec * 1000;
}

static void print_known(const char *key, uint64_t number)
{
	json_known(key, number != EVENT_COUNTERS_UNKNOWN, number);
}

/* How it ended; a signal gives the status that it has in a shell. */
static void print_end(const struct run_figures *figures)
{
	int status = figures->wait_status;
	bool signaled = WIFSIGNALED(status);

	json_number("elapsed_ns", figures->end_ns - figures->begin_ns);
	json_number("exit_status",
		    signaled ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	json_known("signal", signaled, signaled ? WTERMSIG(status) : 0);
	json_known("stopped_by", figures->stopped_by != 0, figures->stopped_by);
	json_bool("timed_out", figures->timed_out);
}

static void print_usage(const struct run_figures *figures)
{
	const struct rusage *usage = &figures->usage;

	print_known("user_ns", time_ns(usage->ru_utime));
	print_known("system_ns", time_ns(usage->ru_stime));
	print_known("max_rss_bytes", (uint64_t)usage->ru_maxrss * KIB);
	print_known("minor_faults", (uint64_t)usage->ru_minflt);
	print_known("major_faults", (uint64_t)usage->ru_majflt);
	print_known("voluntary_switches", (uint64_t)usage->ru_nvcsw);
	print_known("involuntary_switches", (uint64_t)usage->ru_nivcsw);
	print_known("read_bytes", figures->read_bytes);
	print_known("written_bytes", figures->written_bytes);
	print_known("left_processes", figures->left_processes);
}

static void print_counters(const struct event_counters *counters,
			   const struct run_figures *figures)
{
	json_open("counters", '{');
	for (unsigned i = 0; i < counters->count; i++)
		print_known(counters->names[i], figures->counts[i]);
	json_close('}');
	json_text("counted_in",
		  counters->user_only ? "user space" : "user space and kernel");
	json_text("not_counted", event_counters_explain(counters));
}

static int probe_run(struct options *options, struct failure *failure)
{
	static struct run_figures figures;
	const struct options_reader *reader = &options->reader;
	struct run_probe *run = &options->run;
	const char *stdout_path = options_value(reader, OPTION_STDOUT);
	char **words = reader->operands;
	const char *argv0 = options_value(reader, OPTION_ARGV0);
	int error;

	run->directory = options_value(reader, OPTION_DIRECTORY);
	run->stdout_path = stdout_path ? stdout_path : "/dev/null";
	stdout_reserve();
	if (!words[0])
		return failure_set(failure, EXIT_USAGE, "PROGRAM", 0,
				   "is missing");
	run->path = words[0];
	run->argv = words;
	if (argv0)
		words[0] = (char *)argv0;
	error = run_probe_run(run, &figures, failure);
	if (error)
		return error;
	print_head("run");
	print_words(run->argv);
	print_known("begin_unix_ns", figures.begin_unix_ns);
	print_known("begin_monotonic_ns", figures.begin_ns);
	print_end(&figures);
	print_usage(&figures);
	print_counters(&run->counters, &figures);
	return 0;
}

static void print_peer(const struct network_probe *network, unsigned rank,
		       const struct network_figures *figures)
{
	json_open(NULL, '{');
	json_number("rank", rank);
	json_text("host", network->rank->names[rank]);
	json_number("lost_pings", figures->lost_pings);
	json_number("payload_bytes", figures->payload_bytes);
	json_number("arrived_bytes", figures->udp.bytes);
	json_number("arrived_ns", figures->udp.ns);
	json_known("tcp_arrived_bytes", figures->tcp.ns > 0,
		   figures->tcp.bytes);
	json_known("tcp_arrived_ns", figures->tcp.ns > 0, figures->tcp.ns);
	json_text("tcp_why",
		  figures->tcp_error ? strerror(-figures->tcp_error) : NULL);
	print_numbers("round_trip_ns", figures->round_trip_ns, network->rounds);
	json_close('}');
}

static void print_network(const struct network_probe *network,
			  const struct network_figures *figures)
{
	const struct rank *ranks = network->rank;

	print_head("network");
	json_number("rank", ranks->rank);
	json_number("nodes", ranks->node_count);
	json_number("ping_payload_bytes", network->ping_bytes);
	json_number("stream_bytes", network->stream_bytes);
	json_open("peers", '[');
	for (unsigned i = 1; ranks->rank == 0 && i < ranks->node_count; i++)
		print_peer(network, i, &figures[i]);
	json_close(']');
}

static int probe_network(struct options *options, struct failure *failure)
{
	static struct network_figures figures[RANK_NODES_MAX];
	/* A failure names one of them. */
	static struct rank ranks;
	const struct options_reader *reader = &options->reader;
	struct rank_options wanted = {
		.nodes = options_value(reader, OPTION_NODES),
		.rank = options_value(reader, OPTION_RANK),
		.key_path = options_value(reader, OPTION_KEY_FILE),
		.job = options_value(reader, OPTION_JOB),
	};
	struct network_probe *network = &options->network;
	int error;

	stdout_reserve();
	network->rank = &ranks;
	network->rounds = options->rounds;
	network->stream_bytes = options->bytes;
	error = rank_find(&ranks, &wanted, failure);
	if (error)
		return error;
	for (unsigned i = 1; ranks.rank == 0 && i < ranks.node_count; i++)
		figures[i].round_trip_ns = take_samples(network->rounds);
	error = rank_learn_secret(&ranks, network->deadline_ns, failure);
	if (error == 0)
		error = network_probe_run(network, figures, failure);
	if (error)
		return error;
	print_network(network, figures);
	rank_free(&ranks);
	return 0;
}

/* What a counter has counted between two readings of it. */
static void print_difference(const char *key, uint64_t before, uint64_t after)
{
	json_known(key,
		   before != HOST_COUNTERS_UNKNOWN &&
			   after != HOST_COUNTERS_UNKNOWN,
		   (int64_t)(after - before));
}

static void print_noise_of(const struct noise_figures *figures, unsigned i)
{
	const struct noise_cpu *cpu = &figures->cpus[i];
	uint16_t number = figures->topology.cpus[i];

	json_open(NULL, '{');
	json_number("cpu", number);
	json_number("watched_ns", cpu->watched_ns);
	json_number("readings", cpu->readings);
	json_number("lost_ns", cpu->lost_ns);
	json_decimal("lost_percent",
		     100 * (double)cpu->lost_ns / (double)cpu->watched_ns, 4);
	json_number("count", cpu->count);
	json_number("longest_ns", cpu->longest_ns);
	print_numbers("histogram", cpu->histogram, NOISE_PROBE_BINS);
	print_difference("steal_ns", figures->before.steal_ns[number],
			 figures->after.steal_ns[number]);
	json_known("frequency_khz",
		   figures->frequency_khz[i] != HOST_COUNTERS_UNKNOWN,
		   figures->frequency_khz[i]);
	json_close('}');
}

static void print_noise(const struct noise_probe *probe,
			const struct noise_figures *figures)
{
	uint64_t below_ns = NOISE_PROBE_FIRST_BIN_NS;

	json_number("time_ns", probe->time_ns);
	json_number("threshold_ns", probe->threshold_ns);
	json_open("histogram_below_ns", '[');
	for (unsigned i = 0; i < NOISE_PROBE_BINS; i++) {
		json_known(NULL, i < NOISE_PROBE_BINS - 1, below_ns);
		below_ns *= 10;
	}
	json_close(']');
	json_open("cpus", '[');
	for (unsigned i = 0; i < figures->topology.cpu_count; i++)
		print_noise_of(figures, i);
	json_close(']');
	print_difference("balloon_inflated_pages",
			 figures->before.balloon_inflated,
			 figures->after.balloon_inflated);
	print_difference("balloon_deflated_pages",
			 figures->before.balloon_deflated,
			 figures->after.balloon_deflated);
	print_difference("memory_change_bytes", figures->before.memory_bytes,
			 figures->after.memory_bytes);
}

static int probe_noise(struct options *options, struct failure *failure)
{
	static struct noise_figures figures;
	int error = noise_probe_run(&options->noise, &figures, failure);

	if (error)
		return error;
	print_head("noise");
	print_noise(&options->noise, &figures);
	return 0;
}

struct probe {
	const char *name;
	/* Prints its document but for the last bracket.  0, or -errno with
	 * *failure filled.  NULL: there is nothing to do. */
	int (*run)(struct options *options, struct failure *failure);
	const struct options_entry *entries;
	unsigned entry_count;
	bool takes_words; /* a program and its arguments */
	unsigned rounds;  /* unless --rounds says otherwise; 0: it cannot */
};

static const struct probe probes[] = {
	{ "memory", probe_memory, memory_entries, ARRAY_LEN(memory_entries),
	  false, 7 },
	{ "codec", probe_codec, codec_entries, ARRAY_LEN(codec_entries), false,
	  7 },
	{ "spawn", probe_spawn, spawn_entries, ARRAY_LEN(spawn_entries), true,
	  1000 },
	{ "run", probe_run, run_entries, ARRAY_LEN(run_entries), true, 0 },
	{ "network", probe_network, network_entries, ARRAY_LEN(network_entries),
	  false, 200 },
	{ "noise", probe_noise, noise_entries, ARRAY_LEN(noise_entries), false,
	  0 },
	{ "nothing", NULL, no_entries, ARRAY_LEN(no_entries), false, 0 },
};

static const struct probe *find_probe(const char *name, struct failure *failure)
{
	for (unsigned i = 0; name && i < ARRAY_LEN(probes); i++)
		if (strcmp(name, probes[i].name) == 0)
			return &probes[i];
	if (name)
		failure_set(failure, EXIT_USAGE, name, 0,
			    "not memory, codec, spawn, run, network, noise, "
			    "simulate or nothing");
	else
		failure_set(failure, EXIT_USAGE, "PROBE", 0,
			    "is missing; see blinkprobe --help");
	return NULL;
}

/* words: those behind the probe's name. */
static int read_options(struct options *options, const struct probe *probe,
			char **words, struct failure *failure)
{
	struct options_reader *reader = &options->reader;
	int ret;

	options_begin(reader, probe->entries, probe->entry_count, words);
	reader->stops_at_operand = probe->takes_words;
	options->rounds = probe->rounds;
	ret = options_read(reader, take_option, options, failure);
	if (ret == 0 && reader->operand_count > 0 && !probe->takes_words)
		return failure_set(failure, EXIT_USAGE, reader->operands[0], 0,
				   "one word too many for %s", probe->name);
	return ret;
}

int main(int argc, char **argv)
{
	struct failure failure = { .status = EXIT_DONE };
	static struct options options = {
		.memory = { .area_bytes = (uint64_t)64 << 20,
			    .threads = 1,
			    .cpu_node = -1,
			    .memory_node = -1 },
		.codec = { .codec = { .kind = CODEC_LZ4 } },
		.network = { .port = PORT_DEFAULT,
			     .ping_bytes = 64,
			     .deadline_ns = (uint64_t)5 * 1000000000 },
		.noise = { .time_ns = (uint64_t)NOISE_MS_DEFAULT * 1000000,
			   .threshold_ns = NOISE_THRESHOLD_NS_DEFAULT },
		.bytes = STREAM_BYTES_DEFAULT,
	};
	const struct probe *probe;
	char **words;
	int ret;

	log_init("blinkprobe");
	/* The options before the probe's name are questions only. */
	options_begin(&options.reader, no_entries, ARRAY_LEN(no_entries),
		      argv + (argc > 0));
	options.reader.stops_at_operand = true;
	ret = options_read(&options.reader, take_option, &options, &failure);
	words = options.reader.operands;
	if (ret == 0 && words[0] && strcmp(words[0], "simulate") == 0)
		return simulate_verb_run(words + 1);
	probe = ret == 0 ? find_probe(words[0], &failure) : NULL;
	if (probe)
		ret = read_options(&options, probe, words + 1, &failure);
	if (ret > 0)
		return stdout_print_info(ret, "blinkprobe", help);
	if (!probe || ret < 0)
		return log_failure(&failure);
	if (!probe->run)
		return EXIT_DONE;
	if (probe->run(&options, &failure) < 0)
		return log_failure(&failure);
	json_end();
	return stdout_finish();
}
