/*
 * blinksort - sort files of fixed-size records
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"
#include "base.h"
#include "format.h"
#include "log.h"
#include "output.h"
#include "parse.h"
#include "cluster.h"
#include "sort_report.h"
#include "sorter.h"
#include "team.h"
#include "usage.h"
#include "version.h"

/* Of a datagram: what every path takes holds a header and some records. */
#define PAYLOAD_BYTES_MIN 256
#define DEADLINE_SECONDS_MAX 86400
#define DEADLINE_NS_DEFAULT ((uint64_t)5 * 1000000000)

static const char usage[] =
	"Usage: blinksort [OPTION]... INPUT... -o OUTPUT\n"
	"Sort files of fixed-size records by a key of unsigned bytes; stable.\n"
	"The output appears whole, or not at all; the input is never changed.\n"
	"\n"
	"  -o, --output=FILE         write here; given more than once: the "
	"sorted\n"
	"                            whole in as many nearly equal parts, in "
	"order\n"
	"      --record-size=S       bytes of a record (100)\n"
	"      --key=OFFSET:LENGTH   the key within it (0:10)\n"
	"      --threads=N           threads (all CPUs allowed, if that pays)\n"
	"      --memory=SIZE         refuse what takes more, as 512M (what is\n"
	"                            available)\n"
	"      --io=MODE             auto, buffered, mmap or direct (auto)\n"
	"      --splitters=KIND      auto, static or sampled key ranges "
	"(auto)\n"
	"      --kernel=NAME         auto, scalar, avx2 or avx512 (auto)\n"
	"      --sync                on the medium before the output has its "
	"name\n"
	"      --checksum            print the sum of the records' CRC-32s\n"
	"      --json                print what was done and how long it took\n"
	"      --trace=FILE          write a timeline (Chrome trace events)\n"
	"      --help, --version\n"
	"\n"
	"One of many that sort together, each its part of the input to its "
	"part of\n"
	"the output:\n"
	"\n"
	"      --cluster             rank and hosts are those of blinkd, Slurm "
	"or MPI\n"
	"      --nodes=HOSTS         all hosts, in rank order, as a[01-16]\n"
	"      --rank=R              ours of them, from 0\n"
	"      --gather=FILE         instead of -o: one file, each writes its "
	"part\n"
	"      --key-file=FILE       the cluster's key, as of blinkd\n"
	"      --job=NAME            tells runs apart that use the same key\n"
	"      --schedule=KIND       rounds, all-at-once, windowed or auto "
	"(auto)\n"
	"      --transport=KIND      udp, shm (ranks of one machine read each "
	"other's\n"
	"                            input) or auto (udp)\n"
	"      --port=P              of rank 0 (from the job)\n"
	"      --payload=BYTES       of a datagram (what the path allows)\n"
	"      --plain               one datagram with each system call\n"
	"      --deadline=SECONDS    a rank silent for longer is given up "
	"(5)\n"
	"\n"
	"Statuses: 0 done, 1 failed, 2 usage, 3 input or output file,\n"
	"4 another node or the network, 5 memory or threads.  See "
	"blinksort(1).\n";

enum {
	OPTION_RECORD_SIZE = 256,
	OPTION_KEY,
	OPTION_THREADS,
	OPTION_MEMORY,
	OPTION_IO,
	OPTION_SPLITTERS,
	OPTION_KERNEL,
	OPTION_SYNC,
	OPTION_CHECKSUM,
	OPTION_JSON,
	OPTION_TRACE,
	OPTION_CLUSTER,
	OPTION_NODES,
	OPTION_RANK,
	/* From here on only with one of those above. */
	OPTION_GATHER,
	OPTION_KEY_FILE,
	OPTION_JOB,
	OPTION_SCHEDULE,
	OPTION_TRANSPORT,
	OPTION_PORT,
	OPTION_PAYLOAD,
	OPTION_PLAIN,
	OPTION_DEADLINE,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "record-size", required_argument, NULL, OPTION_RECORD_SIZE },
	{ "key", required_argument, NULL, OPTION_KEY },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "memory", required_argument, NULL, OPTION_MEMORY },
	{ "io", required_argument, NULL, OPTION_IO },
	{ "splitters", required_argument, NULL, OPTION_SPLITTERS },
	{ "kernel", required_argument, NULL, OPTION_KERNEL },
	{ "sync", no_argument, NULL, OPTION_SYNC },
	{ "checksum", no_argument, NULL, OPTION_CHECKSUM },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "trace", required_argument, NULL, OPTION_TRACE },
	{ "cluster", no_argument, NULL, OPTION_CLUSTER },
	{ "nodes", required_argument, NULL, OPTION_NODES },
	{ "rank", required_argument, NULL, OPTION_RANK },
	{ "gather", required_argument, NULL, OPTION_GATHER },
	{ "key-file", required_argument, NULL, OPTION_KEY_FILE },
	{ "job", required_argument, NULL, OPTION_JOB },
	{ "schedule", required_argument, NULL, OPTION_SCHEDULE },
	{ "transport", required_argument, NULL, OPTION_TRANSPORT },
	{ "port", required_argument, NULL, OPTION_PORT },
	{ "payload", required_argument, NULL, OPTION_PAYLOAD },
	{ "plain", no_argument, NULL, OPTION_PLAIN },
	{ "deadline", required_argument, NULL, OPTION_DEADLINE },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct options {
	struct sorter_config config;
	const char *outputs[OUTPUT_FILES_MAX];
	bool json;
	bool is_cluster;
	/* The first that is given and means nothing without a cluster. */
	const char *cluster_only;
	const char *gather; /* the one file of all ranks, or NULL */
	struct cluster_config cluster;
};

static void key_option(struct record_shape *shape, const char *text)
{
	const char *colon = strchr(text, ':');
	char offset[24];
	uint64_t value;

	if (!colon || (size_t)(colon - text) >= sizeof(offset))
		usage_error("--key=%.64s: not of the form OFFSET:LENGTH", text);
	memcpy(offset, text, (size_t)(colon - text));
	offset[colon - text] = '\0';
	if (parse_u64(offset, 0, RECORD_SIZE_MAX - 1, &value) < 0)
		usage_error("--key=%.64s: the offset is not a number from 0 to "
			    "%zu",
			    text, RECORD_SIZE_MAX - 1);
	shape->key_offset = (uint32_t)value;
	if (parse_u64(colon + 1, 1, RECORD_SIZE_MAX, &value) < 0)
		usage_error("--key=%.64s: the length is not a number from 1 to "
			    "%zu",
			    text, RECORD_SIZE_MAX);
	shape->key_length = (uint32_t)value;
}

static unsigned choice_option(const char *name, const char *text,
			      const char *const *choices, unsigned count)
{
	char list[96] = "";

	for (unsigned i = 0; i < count; i++) {
		if (strcmp(text, choices[i]) == 0)
			return i;
		strcat(list, i == 0 ? "" : i + 1 < count ? ", " : " or ");
		strcat(list, choices[i]);
	}
	usage_error("--%s=%.64s: not %s", name, text, list);
}

static void io_option(struct options *options, const char *text)
{
	static const char *const names[] = { "auto", "buffered", "mmap",
					     "direct" };

	options->config.io = (enum input_mode)choice_option("io", text, names,
							    ARRAY_LEN(names));
}

static void splitters_option(struct options *options, const char *text)
{
	static const char *const names[] = { "auto", "static", "sampled" };
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED };

	options->config.splitters = kinds[choice_option(
		"splitters", text, names, ARRAY_LEN(names))];
}

static void kernel_option(struct options *options, const char *text)
{
	int error = cpu_level_parse(text, &options->config.kernel);

	if (error == -ENOTSUP)
		usage_error("--kernel=%s: not on this CPU", text);
	if (error)
		usage_error("--kernel=%.64s: not auto, scalar, avx2 or avx512",
			    text);
}

static void output_option(struct options *options, const char *text)
{
	if (options->config.output_count == OUTPUT_FILES_MAX)
		usage_error("--output: more than %d", OUTPUT_FILES_MAX);
	if (text[0] == '\0')
		usage_error("--output: the name is empty");
	options->outputs[options->config.output_count++] = text;
}

/* The one output; whether -o is there, too, is looked at when all is read. */
static void gather_option(struct options *options, const char *text)
{
	if (options->gather)
		usage_error("--gather: given twice");
	if (text[0] == '\0')
		usage_error("--gather: the name is empty");
	options->gather = text;
}

static void schedule_option(struct options *options, const char *text)
{
	static const char *const names[] = { "rounds", "all-at-once",
					     "windowed", "auto" };

	options->cluster.schedule = (enum exchange_schedule)choice_option(
		"schedule", text, names, ARRAY_LEN(names));
}

/* False: it is none of these. */
static bool set_cluster_option(struct options *options, int option,
			       const char *name)
{
	static const char *const transports[] = { "udp", "shm", "auto" };
	struct cluster_config *cluster = &options->cluster;

	switch (option) {
	case OPTION_CLUSTER:
		options->is_cluster = true;
		return true;
	case OPTION_NODES:
		options->is_cluster = true;
		cluster->rank.nodes = optarg;
		return true;
	case OPTION_RANK:
		options->is_cluster = true;
		cluster->rank.rank = optarg;
		return true;
	case OPTION_GATHER:
		gather_option(options, optarg);
		break;
	case OPTION_KEY_FILE:
		cluster->rank.key_path = optarg;
		break;
	case OPTION_JOB:
		cluster->rank.job = optarg;
		break;
	case OPTION_SCHEDULE:
		schedule_option(options, optarg);
		break;
	case OPTION_TRANSPORT:
		cluster->transport = (enum cluster_transport)choice_option(
			"transport", optarg, transports, ARRAY_LEN(transports));
		cluster->datagrams_only = cluster->transport == CLUSTER_UDP;
		break;
	case OPTION_PORT:
		cluster->port =
			(uint16_t)usage_number("port", optarg, 1, 65535);
		break;
	case OPTION_PAYLOAD:
		cluster->payload_bytes = (uint32_t)usage_number(
			"payload", optarg, PAYLOAD_BYTES_MIN, 65507);
		break;
	case OPTION_PLAIN:
		cluster->plain = true;
		break;
	case OPTION_DEADLINE:
		cluster->deadline_ns =
			1000000000 * usage_number("deadline", optarg, 1,
						  DEADLINE_SECONDS_MAX);
		break;
	default:
		return false;
	}
	if (!options->cluster_only)
		options->cluster_only = name;
	return true;
}

static void set_option(struct options *options, int option)
{
	struct sorter_config *config = &options->config;

	switch (option) {
	case 'o':
		output_option(options, optarg);
		break;
	case OPTION_RECORD_SIZE:
		config->shape.size = (uint32_t)usage_number(
			"record-size", optarg, 1, RECORD_SIZE_MAX);
		break;
	case OPTION_KEY:
		key_option(&config->shape, optarg);
		break;
	case OPTION_THREADS:
		config->threads = (unsigned)usage_number("threads", optarg, 1,
							 TEAM_MEMBERS_MAX);
		break;
	case OPTION_MEMORY:
		if (parse_size(optarg, 1, UINT64_MAX / 2,
			       &config->memory_bytes) < 0)
			usage_error("--memory=%.64s: not a size such as 512M",
				    optarg);
		break;
	case OPTION_IO:
		io_option(options, optarg);
		break;
	case OPTION_SPLITTERS:
		splitters_option(options, optarg);
		break;
	case OPTION_KERNEL:
		kernel_option(options, optarg);
		break;
	case OPTION_SYNC:
		config->sync = true;
		break;
	case OPTION_CHECKSUM:
		config->checksum = true;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_TRACE:
		config->trace_path = optarg;
		break;
	case OPTION_HELP:
		fputs(usage, stdout);
		exit(answer_finish());
	case OPTION_VERSION:
		printf("blinksort %s\n", blinksort_version);
		exit(answer_finish());
	default:
		break;
	}
}

static void set_gathered_output(struct options *options)
{
	if (options->config.output_count > 0)
		usage_error("--gather: not together with -o");
	output_option(options, options->gather);
	options->cluster.gathers = true;
}

static void parse_options(struct options *options, int argc, char **argv)
{
	struct sorter_config *config = &options->config;
	bool kernel_given = false, key_given = false;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:", long_options, NULL)) !=
	       -1) {
		const char *name = argv[optind - 1];

		if (option == ':')
			usage_error("%.64s: an argument is missing", name);
		if (option == '?' && optopt && optopt < 256 && name[1] != '-')
			usage_error("-%c: no such option", optopt);
		if (option == '?')
			usage_error("%.64s: no such option", name);
		kernel_given |= option == OPTION_KERNEL;
		key_given |= option == OPTION_KEY;
		if (!set_cluster_option(options, option, name))
			set_option(options, option);
	}
	if (options->cluster_only && !options->is_cluster)
		usage_error("%.64s: only with --cluster or --nodes",
			    options->cluster_only);
	if (options->gather)
		set_gathered_output(options);
	if (optind == argc)
		usage_error("no input file; see --help");
	if (argc - optind > INPUT_FILES_MAX)
		usage_error("more than %d input files", INPUT_FILES_MAX);
	if (config->output_count == 0)
		usage_error("no output file (-o); see --help");
	config->input_paths = (const char *const *)argv + optind;
	config->input_count = (unsigned)(argc - optind);
	config->output_paths = options->outputs;
	/* The default key is what there is of it in a smaller record. */
	if (!key_given)
		config->shape.key_length =
			MIN(config->shape.key_length, config->shape.size);
	if ((uint64_t)config->shape.key_offset + config->shape.key_length >
	    config->shape.size)
		usage_error("--key=%u:%u: beyond the record of %u bytes",
			    config->shape.key_offset, config->shape.key_length,
			    config->shape.size);
	if (!kernel_given)
		config->kernel = cpu_level_detect();
}

/* ------------------------------------------------------------- reporting */

/* The output exists by now: what fails here must not hide that. */
static int report(const struct options *options,
		  const struct sorter_result *result)
{
	char sum[FORMAT_U128_BYTES];

	if (options->json)
		sort_report_json(&options->config, result);
	else if (options->config.checksum)
		printf("%s\n", format_u128_hex(sum, result->checksum));
	return answer_finish();
}

static int report_cluster(const struct options *options,
			  const struct cluster_result *result)
{
	char sum[FORMAT_U128_BYTES];

	if (options->json)
		sort_report_cluster_json(&options->config, result);
	else if (options->config.checksum)
		printf("%s\n",
		       format_u128_hex(sum,
				       sort_report_cluster_checksum(result)));
	return answer_finish();
}

/* How files follow each other in memory counts on it. */
static int check_page_size(struct failure *failure)
{
	long page_bytes = sysconf(_SC_PAGESIZE);

	if (page_bytes == PAGE_BYTES)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, NULL, 0,
			   "this kernel has pages of %ld bytes, not %d",
			   page_bytes, PAGE_BYTES);
}

int main(int argc, char **argv)
{
	static struct options options = {
		.config = {
			.shape = {
				.size = RECORD_SIZE_DEFAULT,
				.key_offset = 0,
				.key_length = RECORD_KEY_LENGTH_DEFAULT,
			},
		},
		.cluster = {
			.schedule = EXCHANGE_AUTO,
			.deadline_ns = DEADLINE_NS_DEFAULT,
		},
	};
	struct failure failure = { .status = EXIT_DONE };
	struct sorter_result result;
	static struct cluster_result cluster_result;

	log_init("blinksort");
	parse_options(&options, argc, argv);
	if (check_page_size(&failure) < 0)
		return log_failure(&failure);
	/* A file beyond the limit is then an error of write(2), which says so,
	 * and a closed pipe one of the report. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (options.is_cluster) {
		if (cluster_run(&options.config, &options.cluster,
				&cluster_result, &failure) < 0)
			return log_failure(&failure);
		return report_cluster(&options, &cluster_result);
	}
	if (sorter_run(&options.config, &result, &failure) < 0)
		return log_failure(&failure);
	return report(&options, &result);
}
