/*
 * blinksort - sort files of fixed-size records
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "format.h"
#include "log.h"
#include "output.h"
#include "parse.h"
#include "sorter.h"
#include "team.h"
#include "version.h"

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
	"Statuses: 0 done, 1 failed, 2 usage, 3 input or output file,\n"
	"5 memory or threads.  See blinksort(1).\n";

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
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct options {
	struct sorter_config config;
	const char *outputs[OUTPUT_FILES_MAX];
	bool json;
};

__attribute__((noreturn, format(printf, 1, 2))) static void
usage_error(const char *format, ...)
{
	struct failure failure = { .status = EXIT_USAGE };
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure.why, sizeof(failure.why), format, arguments);
	va_end(arguments);
	exit(log_failure(&failure));
}

static uint64_t number_option(const char *name, const char *text, uint64_t min,
			      uint64_t max)
{
	uint64_t value;

	if (parse_u64(text, min, max, &value) < 0)
		usage_error("--%s=%.64s: not a number from %llu to %llu", name,
			    text, (unsigned long long)min,
			    (unsigned long long)max);
	return value;
}

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

static void set_option(struct options *options, int option)
{
	struct sorter_config *config = &options->config;

	switch (option) {
	case 'o':
		output_option(options, optarg);
		break;
	case OPTION_RECORD_SIZE:
		config->shape.size = (uint32_t)number_option(
			"record-size", optarg, 1, RECORD_SIZE_MAX);
		break;
	case OPTION_KEY:
		key_option(&config->shape, optarg);
		break;
	case OPTION_THREADS:
		config->threads = (unsigned)number_option("threads", optarg, 1,
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
		set_option(options, option);
	}
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

static void print_names(const char *key, const char *const *names,
			unsigned count)
{
	printf(", \"%s\": [", key);
	for (unsigned i = 0; i < count; i++) {
		fputs(i == 0 ? "" : ", ", stdout);
		format_json_string(stdout, names[i]);
	}
	putchar(']');
}

static void print_json(const struct options *options,
		       const struct sorter_result *result)
{
	const struct sorter_config *config = &options->config;
	char sum[FORMAT_U128_BYTES];

	printf("{\"program\": \"blinksort\", \"version\": ");
	format_json_string(stdout, blinksort_version);
	printf(", \"records\": %llu, \"record_size\": %u, \"key_offset\": %u, "
	       "\"key_length\": %u, \"bytes\": %llu",
	       (unsigned long long)result->record_count, config->shape.size,
	       config->shape.key_offset, config->shape.key_length,
	       (unsigned long long)result->size_bytes);
	printf(", \"elapsed_ns\": %llu, \"phases_ns\": {\"prepare\": %llu, "
	       "\"bucket\": %llu, \"order\": %llu, \"commit\": %llu}",
	       (unsigned long long)(result->committed_ns - result->begin_ns),
	       (unsigned long long)(result->prepared_ns - result->begin_ns),
	       (unsigned long long)(result->bucketed_ns - result->prepared_ns),
	       (unsigned long long)(result->ordered_ns - result->bucketed_ns),
	       (unsigned long long)(result->committed_ns - result->ordered_ns));
	printf(", \"io\": \"%s\", \"output_io\": \"%s\", \"synced\": %s",
	       input_mode_name(result->io),
	       result->output_direct ? "direct" : "buffered",
	       config->sync ? "true" : "false");
	printf(", \"splitters\": \"%s\", \"buckets\": %u, \"kernel\": \"%s\", "
	       "\"threads\": %u, \"memory_bytes\": %llu",
	       splitters_kind_name(result->splitters), result->bucket_count,
	       cpu_level_name(config->kernel), result->threads,
	       (unsigned long long)result->memory_bytes);
	if (config->checksum)
		printf(", \"checksum\": \"%s\"",
		       format_u128_hex(sum, result->checksum));
	else
		printf(", \"checksum\": null");
	print_names("inputs", config->input_paths, config->input_count);
	print_names("outputs", config->output_paths, config->output_count);
	puts("}");
}

/* The output exists by now: what fails here must not hide that. */
static int report(const struct options *options,
		  const struct sorter_result *result)
{
	char sum[FORMAT_U128_BYTES];

	if (options->json)
		print_json(options, result);
	else if (options->config.checksum)
		printf("%s\n", format_u128_hex(sum, result->checksum));
	return answer_finish();
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
	};
	struct failure failure = { .status = EXIT_DONE };
	struct sorter_result result;

	log_init("blinksort");
	parse_options(&options, argc, argv);
	/* A file beyond the limit is then an error of write(2), which says so,
	 * and a closed pipe one of the report. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (sorter_run(&options.config, &result, &failure) < 0)
		return log_failure(&failure);
	return report(&options, &result);
}
