/*
 * blinksort - sort files of fixed-size records
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/answer.h"
#include "base/argument_file.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/flow.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/stdout.h"
#include "base/template.h"
#include "cluster/cluster.h"
#include "io/pipe.h"
#include "net/rank.h"
#include "programs/blinksort/blinksort_help.h"
#include "programs/blinksort/cluster_options.h"
#include "programs/blinksort/external_options.h"
#include "programs/blinksort/explain_report.h"
#include "programs/blinksort/external_report.h"
#include "programs/blinksort/file_options.h"
#include "programs/blinksort/mpi_link.h"
#include "programs/blinksort/rank_report.h"
#include "programs/blinksort/shape_options.h"
#include "programs/blinksort/sort_report.h"
#include "programs/blinksort/suppose_options.h"
#include "sort/sorter.h"
#include "system/allowance.h"
#include "system/numa.h"
#include "system/thread_pool.h"

enum {
	OPTION_OUTPUT = OPTIONS_OWN,
	OPTION_OUTPUT_DEVICE,
	OPTION_MERGE,
	OPTION_NUMBERS,
	OPTION_STABLE,
	OPTION_NUMA,
	OPTION_PIN,
	OPTION_MEMORY,
	OPTION_SCRATCH,
	OPTION_BATCH_SIZE,
	OPTION_SUPPOSE,
	OPTION_EXPLAIN,
	OPTION_DISK_RATES,
	OPTION_PROGRESS,
	OPTION_COMPRESS,
	OPTION_IO,
	OPTION_SPLITTERS,
	OPTION_KERNEL,
	OPTION_SYNC,
	OPTION_CHECKSUM,
	OPTION_JSON,
	OPTION_TRACE,
};

static const struct options_entry entries[] = {
	{ OPTION_OUTPUT, "output", 'o', OPTIONS_STREAMS, "FILE" },
	{ OPTION_OUTPUT_DEVICE, "output-device", 0, OPTIONS_VALUES, "DEVICE" },
	{ OPTION_MERGE, "merge", 'm', OPTIONS_FLAG, NULL },
	{ OPTION_NUMBERS, "numbers", 0, OPTIONS_VALUE, "TYPE" },
	SHAPE_OPTIONS,
	/* sort(1) has it; every sort is stable. */
	{ OPTION_STABLE, "stable", 's', OPTIONS_FLAG, NULL },
	{ SHAPE_OPTION_THREADS, "threads", 0, OPTIONS_VALUE, "N" },
	{ SHAPE_OPTION_THREADS, "parallel", 0, OPTIONS_VALUE, "N" },
	{ OPTION_NUMA, "numa", 0, OPTIONS_VALUE, "NODES" },
	{ OPTION_PIN, "pin", 0, OPTIONS_VALUE, "WHEN" },
	{ OPTION_MEMORY, "memory", 'S', OPTIONS_VALUE, "SIZE" },
	{ OPTION_MEMORY, "buffer-size", 0, OPTIONS_VALUE, "SIZE" },
	{ OPTION_SCRATCH, "temporary-directory", 'T', OPTIONS_FILES, "DIR" },
	{ OPTION_BATCH_SIZE, "batch-size", 0, OPTIONS_VALUE, "N" },
	{ OPTION_EXPLAIN, "explain", 0, OPTIONS_FLAG, NULL },
	{ OPTION_SUPPOSE, "suppose", 0, OPTIONS_VALUE, "RANKS:RECORDS,..." },
	{ OPTION_PROGRESS, "progress", 0, OPTIONS_FLAG, NULL },
	{ OPTION_DISK_RATES, "disk-rates", 0, OPTIONS_VALUE,
	  "READ:WRITE:BOTH" },
	{ OPTION_COMPRESS, "compress", 0, OPTIONS_VALUE, "CODEC" },
	{ OPTION_IO, "io", 0, OPTIONS_VALUE, "MODE" },
	{ OPTION_SPLITTERS, "splitters", 0, OPTIONS_VALUE, "KIND" },
	{ OPTION_KERNEL, "kernel", 0, OPTIONS_VALUE, "NAME" },
	{ OPTION_SYNC, "sync", 0, OPTIONS_FLAG, NULL },
	{ OPTION_CHECKSUM, "checksum", 0, OPTIONS_FLAG, NULL },
	{ OPTION_JSON, "json", 0, OPTIONS_FLAG, NULL },
	{ OPTION_TRACE, "trace", 0, OPTIONS_FILE, "FILE" },
	CLUSTER_OPTIONS,
	{ OPTIONS_HELP, "help", 'h', OPTIONS_MAYBE, "TOPIC" },
	{ OPTIONS_VERSION, "version", 'V', OPTIONS_FLAG, NULL },
};

/* Room for a document about some 200 ranks; a longer one leaves in pieces. */
#define REPORT_BYTES (256 * KIB)

struct options {
	struct options_reader reader;
	char **words; /* owned: as they were, with the program's name */
	struct sorter_config config;
	struct output_options outputs;
	unsigned memory_percent; /* of what there is; 0: --memory is bytes */
	char memory_option[sizeof("--memory=100%")];
	struct external_options external;
	struct external_result external_result;
	struct external_explanation explanation;
	struct memory_explanation in_memory;
	struct stream_options streams;
	struct suppose_options suppose;
	struct cluster_options cluster;
};

/* --- values --------------------------------------------------------------- */

/* By the enum, or the number, that is stored. */
static const char *const splitters_words[] = {
	[SPLITTERS_AUTO] = "auto",
	[SPLITTERS_STATIC] = "static",
	[SPLITTERS_SAMPLED] = "sampled",
};
static const char *const number_types[] = { [4] = "u32", [8] = "u64" };

static const struct options_row batch_size = {
	OPTION_BATCH_SIZE, 2, UINT16_MAX,
	OPTIONS_FIELD(struct external_config, runs_max)
};

static int take_kernel(struct options *options, struct failure *failure)
{
	struct options_reader *reader = &options->reader;
	int error = cpu_level_parse(reader->value, &options->config.kernel);

	if (error == -ENOTSUP)
		return options_refuse(reader, failure, "not on this CPU");
	if (error)
		return options_refuse(reader, failure,
				      "not auto, scalar, avx2 or avx512");
	return 0;
}

static int take_pin(struct options *options, struct failure *failure)
{
	static const char *const names[] = { "yes", "no" };
	unsigned choice = 0;
	int ret = options_choice(&options->reader, names, ARRAY_LEN(names),
				 &choice, failure);

	options->config.unpinned = choice == 1;
	return ret;
}

/* --- NUMA nodes -------------------------------------------------------------
 */

/* Take --numa's value, or NULL: "auto", "off", or nodes in numactl's syntax, to
 * which this process, while it has one thread, is then confined. */
static int apply_nodes(const char *value, struct sorter_config *config,
		       struct failure *failure)
{
	struct topology topology;
	uint64_t nodes;
	int error;

	if (!value || strcmp(value, "auto") == 0)
		return 0;
	if (strcmp(value, "off") == 0) {
		config->ignores_nodes = true;
		return 0;
	}
	topology_read(&topology);
	topology_read_nodes(&topology);
	error = numa_parse(value, &topology, &nodes, failure);
	return error ? error : numa_confine(nodes, &topology, failure);
}

/* --- the command line ----------------------------------------------------- */

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;
	struct options_reader *reader = &options->reader;
	struct sorter_config *config = &options->config;
	int error = shape_options_take(reader, id, config, failure);

	if (error)
		return error;
	switch (id) {
	case OPTION_OUTPUT:
		return output_options_take(&options->outputs, "-o",
					   reader->value, config, failure);
	case OPTION_OUTPUT_DEVICE:
		config->outputs_are_devices = true;
		return output_options_take(&options->outputs, "--output-device",
					   reader->value, config, failure);
	case CLUSTER_OPTION_GATHER:
		return output_options_take(&options->outputs, "--gather",
					   reader->value, config, failure);
	case OPTION_NUMBERS:
		return options_choice(reader, number_types,
				      ARRAY_LEN(number_types),
				      &config->widening.number_bytes, failure);
	case OPTION_NUMA:
	case OPTION_STABLE:
		return 0;
	case OPTION_PIN:
		return take_pin(options, failure);
	case OPTION_MEMORY:
		return options_share(reader, 1, INT64_MAX,
				     &config->memory_bytes,
				     &options->memory_percent, failure);
	case OPTION_SCRATCH:
		return external_options_scratch(reader, &options->external,
						failure);
	case OPTION_BATCH_SIZE:
		return options_take_row(reader, id, &batch_size, 1,
					&options->external.config, failure);
	case OPTION_DISK_RATES:
		return external_options_rates(reader, &options->external,
					      failure);
	case OPTION_SUPPOSE:
		return suppose_options_take(reader, &options->suppose, failure);
	case OPTION_COMPRESS:
		return external_options_codec(reader, &options->external,
					      failure);
	case OPTION_IO:
		return options_choice(reader, input_mode_names,
				      INPUT_DIRECT + 1, &config->io, failure);
	case OPTION_SPLITTERS:
		return options_choice(reader, splitters_words,
				      ARRAY_LEN(splitters_words),
				      &config->splitters, failure);
	case OPTION_KERNEL:
		return take_kernel(options, failure);
	default:
		return cluster_options_take(
			reader, id, &options->cluster,
			&options->external.config.rates.link, failure);
	}
}

/* The first mistake is reported. */
static int check_cluster(struct options *options, struct failure *failure)
{
	struct options_reader *reader = &options->reader;
	bool is_rank = options->cluster.kind != CLUSTER_NONE;
	bool has_ranks = is_rank || options_given(reader, OPTION_SUPPOSE);
	static const char *const of_ranks =
		"only with --cluster, --nodes or --suppose";
	static const char *const of_one = "not with --cluster or --nodes";
	const struct options_rule rules[] = {
		{ CLUSTER_OPTION_LINK_RATE, !has_ranks, of_ranks },
		{ CLUSTER_OPTION_ROLES, !has_ranks, of_ranks },
		{ CLUSTER_OPTION_ROLES,
		  is_rank && options->cluster.config.roles.is_auto,
		  "auto only with --suppose, which prints roles to give" },
		{ OPTION_BATCH_SIZE, is_rank, of_one },
		{ OPTION_SUPPOSE, is_rank, of_one },
		{ OPTION_EXPLAIN, is_rank, of_one },
		{ OPTION_SUPPOSE, !options_given(reader, OPTION_EXPLAIN),
		  "only with --explain" },
	};

	return options_check(reader, rules, ARRAY_LEN(rules), failure);
}

static int set_inputs(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;
	struct sorter_config *config = &options->config;
	bool is_rank = options->cluster.kind != CLUSTER_NONE;
	int ret = 0;

	if (reader->operand_count == 0)
		return failure_set(
			failure, EXIT_USAGE, "INPUT", 0,
			"is missing ('blinksort - -o -' reads "
			"standard input and writes standard output)");
	if (reader->operand_count > INPUT_FILES_MAX)
		return failure_set(
			failure, EXIT_USAGE, "INPUT", 0,
			"more than %d input files: use 'cat INPUT... "
			"| blinksort -'",
			INPUT_FILES_MAX);
	config->input_paths = (const char *const *)reader->operands;
	config->input_count = reader->operand_count;
	for (unsigned i = 0; ret == 0 && i < config->input_count; i++)
		if (is_rank || !pipe_is_word(config->input_paths[i]))
			ret = options_check_operand(config->input_paths[i],
						    "a regular file", failure);
	return ret;
}

/* No file is read or written. */
static int refuse_files(const struct options *options, struct failure *failure)
{
	const char *given = NULL;

	if (options->reader.operand_count > 0)
		given = "INPUT";
	else if (options->config.output_count > 0)
		given = options->outputs.option;
	else if (options->external.config.scratch_count > 0)
		given = "-T";
	if (!given)
		return 0;
	return failure_set(failure, EXIT_USAGE, given, 0,
			   "not with --suppose, which needs no file");
}

static int set_files(struct options *options, struct failure *failure)
{
	struct sorter_config *config = &options->config;
	int ret = set_inputs(options, failure);

	if (ret == 0 && config->output_count == 0)
		ret = failure_set(failure, EXIT_USAGE, "-o", 0,
				  "is missing ('-o -' is standard output); see "
				  "blinksort --help");
	if (ret == 0)
		ret = stream_options_complete(
			&options->streams, config,
			options->cluster.kind != CLUSTER_NONE, failure);
	return ret;
}

/* Options about records that exclude one another.  The files are set. */
static int check_records(struct options *options, struct failure *failure)
{
	struct options_reader *reader = &options->reader;
	const struct sorter_config *config = &options->config;
	bool has_numbers = config->widening.number_bytes > 0;
	bool is_random = config->widening.is_random;
	bool is_last = config->unique == UNIQUE_LAST;
	static const char *const of_input_records =
		"not with --numbers or a random key";
	const struct options_rule rules[] = {
		{ OPTION_EXPLAIN, options->streams.is_input,
		  "needs regular files, or --suppose=1:RECORDS alone" },
		{ OPTION_MERGE, options->cluster.kind != CLUSTER_NONE,
		  "not with --cluster or --nodes: without it, ranks sort files "
		  "in any order" },
		{ OPTION_MERGE, options_given(reader, OPTION_SUPPOSE),
		  "not with --suppose, which has no files" },
		{ OPTION_MERGE, options->streams.is_input,
		  "not of a pipe, since it reads first what lies everywhere in "
		  "a file: without it, what a pipe brings is sorted" },
		{ OPTION_MERGE, is_last,
		  "not with --unique=last: a file may have more equal keys "
		  "than the memory has room for" },
		{ SHAPE_OPTION_UNIQUE, is_random,
		  "not with a random key, by which no two records are equal" },
		{ SHAPE_OPTION_HEAD, is_last,
		  "not with --unique=last, since a later record may replace "
		  "one of the first" },
		{ OPTION_NUMBERS,
		  config->header_bytes > 0 && !config->drops_header,
		  "behind a header of records: use --header=BYTES:drop" },
		{ OPTION_SUPPOSE, is_random || has_numbers, of_input_records },
		{ OPTION_MERGE, is_random || has_numbers, of_input_records },
	};

	return options_check(reader, rules, ARRAY_LEN(rules), failure);
}

static int complete_options(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;
	struct sorter_config *config = &options->config;
	int ret = cluster_options_complete(&options->reader, &options->cluster,
					   failure);

	options->cluster.config.gathers =
		options_given(reader, CLUSTER_OPTION_GATHER);
	options->external.config.merges_inputs =
		options_given(reader, OPTION_MERGE);
	config->sync = options_given(reader, OPTION_SYNC);
	config->checksum = options_given(reader, OPTION_CHECKSUM);
	config->counts_nodes = options_given(reader, OPTION_JSON);
	config->trace_path = options_value(reader, OPTION_TRACE);
	if (ret == 0)
		ret = check_cluster(options, failure);
	if (ret == 0)
		ret = options_given(reader, OPTION_SUPPOSE)
			      ? refuse_files(options, failure)
			      : set_files(options, failure);
	if (ret == 0)
		ret = check_records(options, failure);
	if (ret == 0)
		ret = shape_options_complete(reader, config, failure);
	if (!options_given(reader, OPTION_KERNEL))
		config->kernel = cpu_level_detect();
	return ret;
}

/* Turn --memory=PERCENT into bytes: a part of what one of so many sorts on this
 * machine would see without it. */
static void take_memory_part(struct options *options, unsigned sorts_on_machine)
{
	struct sorter_config *config = &options->config;
	uint64_t available;

	if (options->memory_percent == 0)
		return;
	available = MIN(allowance_memory_bytes(), INT64_MAX) / sorts_on_machine;
	config->memory_bytes =
		MAX(1, available / 100 * options->memory_percent);
	snprintf(options->memory_option, sizeof(options->memory_option),
		 "--memory=%u%%", options->memory_percent);
	config->memory_option = options->memory_option;
}

/* --- beyond memory -------------------------------------------------------- */

static int sort_beyond_memory(struct options *options,
			      struct sorter_result *result,
			      struct failure *failure)
{
	struct external_config *external = &options->external.config;
	bool explains = options_given(&options->reader, OPTION_EXPLAIN);
	int error;

	result->place = SORT_BEYOND_MEMORY;
	external->in_memory_bytes = result->memory_bytes;
	external_options_complete(&options->external,
				  options->streams.is_output);
	if (options_given(&options->reader, OPTION_PROGRESS) &&
	    isatty(STDERR_FILENO))
		external->progress = external_report_progress;
	external_options_warn(&options->external, explains);
	if (explains)
		return external_sort_explain(external, &options->explanation,
					     failure);
	error = external_sort_run(external, result, &options->external_result,
				  failure);
	progress_remove();
	return error;
}

/* What a sort of so many records would do that are not there. */
static int suppose(struct options *options, struct sorter_result *result,
		   struct failure *failure)
{
	if (options_given(&options->reader, CLUSTER_OPTION_ROLES))
		options->suppose.choice.roles = &options->cluster.config.roles;
	return suppose_options_explain(
		&options->suppose, &options->external.config, result,
		&options->in_memory, &options->explanation, failure);
}

static int sort_files(struct options *options, struct sorter_result *result,
		      struct failure *failure)
{
	struct sorter *sorter = sorter_open(&options->config, result, failure);
	int error = 0;

	if (!sorter)
		return -1;
	if (result->place == SORT_BEYOND_MEMORY) {
		sorter_close(sorter);
		return sort_beyond_memory(options, result, failure);
	}
	if (!options_given(&options->reader, OPTION_EXPLAIN))
		error = sorter_sort(sorter, failure);
	else
		options->in_memory = (struct memory_explanation){
			.rank_count = 1,
			.whole_records = result->record_count,
			.header_bytes = options->config.header_bytes,
		};
	sorter_leave(sorter);
	return error;
}

/* What a sort would do. */
static int explain(const struct options *options,
		   const struct sorter_result *result)
{
	const struct external_config *external = &options->external.config;
	bool is_external = result->place == SORT_BEYOND_MEMORY;
	bool json = options_given(&options->reader, OPTION_JSON);
	int status;

	if (is_external)
		explain_report_external(external, &options->explanation,
					&options->suppose.choice, result, json);
	else
		explain_report_memory(external, &options->in_memory, result,
				      json);
	status = stdout_finish();
	if (status == EXIT_DONE && is_external)
		status = options->explanation.refusal.status;
	return status;
}

/* --- reporting ------------------------------------------------------------ */

/* The output exists by now, so a failure here must not hide that. */
static int report(const struct options *options,
		  const struct sorter_result *result)
{
	/* Records have taken standard output. */
	if (options->streams.is_stdout &&
	    dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return EXIT_DONE;
	if (options_given(&options->reader, OPTION_JSON))
		sort_report_json(&options->config, result,
				 &options->external_result);
	else if (options->config.checksum)
		printf("%s\n", FORMAT_U128_HEX(result->checksum));
	return stdout_finish();
}

/* Returns the exit status. */
static int sort_alone(struct options *options, struct failure *failure)
{
	struct sorter_result result = { 0 };
	int error;

	take_memory_part(options, 1);
	if (options->suppose.memory.rank_count > 0)
		error = suppose(options, &result, failure);
	/* What has no size is sorted as if it did not fit, and so are records
	 * that are widened when they are brought into memory; and files are
	 * merged in the same way. */
	else if (options->streams.is_output || options->streams.is_input ||
		 options->external.config.merges_inputs ||
		 options->config.widening.bytes > 0)
		error = sort_beyond_memory(options, &result, failure);
	else
		error = sort_files(options, &result, failure);
	if (error)
		return log_failure(failure);
	if (options_given(&options->reader, OPTION_EXPLAIN))
		return explain(options, &result);
	return report(options, &result);
}

/* --- ranks ---------------------------------------------------------------- */

#define HOST_BYTES_MAX 256

/* Replace each path that has a '%' by what template_fill() makes of it, in
 * memory that is kept until the process ends.  The host's name is what
 * gethostname(2) tells. */
static int fill_paths(const struct rank *rank, const char **paths,
		      unsigned count, struct failure *failure)
{
	char host[HOST_BYTES_MAX + 1] = { 0 };
	const struct template_values values = {
		.rank = rank->rank,
		.node_count = rank->node_count,
		.host = host,
	};

	gethostname(host, HOST_BYTES_MAX);
	for (unsigned i = 0; i < count; i++) {
		size_t bytes;
		char *path;

		if (!strchr(paths[i], '%'))
			continue;
		bytes = template_fill(NULL, 0, paths[i], &values) + 1;
		path = malloc(bytes);
		if (!path)
			return failure_no_memory(failure);
		template_fill(path, bytes, paths[i], &values);
		paths[i] = path;
	}
	return 0;
}

/* The names of all files may hold the rank. */
static int take_rank(void *context, const struct rank *rank,
		     struct failure *failure)
{
	struct options *options = context;
	struct sorter_config *config = &options->config;
	struct external_options *external = &options->external;
	int error = fill_paths(rank, (const char **)options->reader.operands,
			       config->input_count, failure);

	answer_set_rank(rank->rank);
	take_memory_part(options, rank->machine_count);
	if (error == 0)
		error = fill_paths(rank, options->outputs.paths,
				   config->output_count, failure);
	if (error == 0)
		error = fill_paths(rank, external->scratch_paths,
				   external->config.scratch_count, failure);
	if (error == 0 && config->trace_path)
		error = fill_paths(rank, &config->trace_path, 1, failure);
	if (error == 0)
		external_options_complete(external, false);
	return error;
}

/* This process is a rank.  mpi: NULL, or what MPI has done so far; it is ended
 * before it is reported. */
static int sort_together(struct options *options, struct mpi_report *mpi,
			 struct failure *failure)
{
	static struct cluster_result result;
	struct cluster_config *cluster = &options->cluster.config;
	bool json = options_given(&options->reader, OPTION_JSON);
	bool tells_progress = options_given(&options->reader, OPTION_PROGRESS);
	int error;

	cluster->predicts = tells_progress || json;
	if (tells_progress)
		cluster->progress = rank_report_progress;
	error = cluster_run(&options->config, cluster, &result, failure);
	progress_remove();
	if (error)
		return mpi ? log_failure(failure)
			   : rank_report_failure(failure);
	if (mpi)
		mpi_link_end(EXIT_DONE, mpi);
	if (tells_progress)
		rank_report_table(&result, sorter_input_size(&options->config));
	sort_report_cluster(&options->config, &result, mpi, json);
	return stdout_finish();
}

/* The same, from MPI_Init to MPI_Finalize. */
static int sort_by_mpi(struct options *options, struct failure *failure)
{
	static char report[REPORT_BYTES];
	struct mpi_report mpi = { 0 };

	if (mpi_link_begin(options->words, &options->cluster.config, &mpi,
			   failure) < 0)
		return mpi_link_end(log_failure(failure), &mpi);
	/* A launcher mixes what it reads from several ranks: the document
	 * leaves in one piece, if it fits.  MPICH has taken the buffer away. */
	setvbuf(stdout, report, _IOFBF, sizeof(report));
	return mpi_link_end(sort_together(options, &mpi, failure), &mpi);
}

/* input.c aligns files to PAGE_BYTES in memory, so the page size must be that.
 */
static int check_page_size(struct failure *failure)
{
	long page_bytes = sysconf(_SC_PAGESIZE);

	if (page_bytes == PAGE_BYTES)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, NULL, 0,
			   "this kernel has pages of %ld bytes, not %d",
			   page_bytes, PAGE_BYTES);
}

static const char *program_name(void)
{
	return mpi_link_is_there() ? "blinksort-mpi" : "blinksort";
}

/* --version also names the MPI. */
static int print_info(struct options *options, int question,
		      struct failure *failure)
{
	int status;

	if (question == OPTIONS_HELP) {
		if (blinksort_help(&options->reader, failure) < 0)
			return rank_report_failure(failure);
		return stdout_finish();
	}
	status = stdout_print_info(question, program_name(), NULL);
	if (status != EXIT_DONE || !mpi_link_is_there())
		return status;
	puts(mpi_link_library());
	return stdout_finish();
}

/* A user who gives a key has other records than those of the benchmark, and any
 * file may have a multiple of 100 bytes.  A script gets no line more. */
static void hint_at_default_size(const struct options *options)
{
	const struct options_reader *reader = &options->reader;

	if (options_given(reader, SHAPE_OPTION_KEY) &&
	    !options_given(reader, SHAPE_OPTION_RECORD_SIZE) &&
	    isatty(STDERR_FILENO))
		shape_options_tell_defaults(&options->config.shape, true,
					    false);
}

/* blinksh is mostly told to run blinksort on several nodes so that they sort
 * together.  Rank 0 says for all that they do not, but not in between a
 * document. */
static void hint_at_cluster(const struct options *options)
{
	const struct options_reader *reader = &options->reader;
	struct rank_launch launch;

	if (options->cluster.kind != CLUSTER_NONE ||
	    !rank_find_launch(&launch) || !launch.is_blinkd ||
	    launch.node_count == 1 || launch.rank > 0)
		return;
	if (options_given(reader, OPTION_EXPLAIN) ||
	    (options->streams.is_stdout && options_given(reader, OPTION_JSON)))
		return;
	log_warnx("each of %u nodes sorts its own files alone: --cluster lets "
		  "them sort together",
		  launch.node_count);
}

/* What holds unless an option says otherwise, and what parts of the options
 * need of each other.  *options is zeroed. */
static void options_init(struct options *options)
{
	struct cluster_config *cluster = &options->cluster.config;

	options->config.shape.size = RECORD_SIZE_DEFAULT;
	options->config.memory_option = "--memory";
	options->external.config.sort = &options->config;
	cluster->schedule.kind = EXCHANGE_AUTO;
	cluster->deadline_ns = 5 * NS_PER_S;
	cluster->external = &options->external.config;
	cluster->take_rank = take_rank;
	cluster->rank_context = options;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct failure failure = { .status = EXIT_DONE };
	int ret;

	answer_begin(program_name());
	log_init(program_name());
	if (argument_file_expand(&argc, &argv, &failure) < 0)
		return log_failure(&failure);
	options.words = calloc((size_t)argc + 1, sizeof(*argv));
	if (!options.words) {
		failure_no_memory(&failure);
		return log_failure(&failure);
	}
	/* Reading the options reorders them. */
	memcpy(options.words, argv, (size_t)argc * sizeof(*argv));
	options_init(&options);
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	options.reader.hints = blinksort_hints;
	options.reader.hint_count = BLINKSORT_HINTS;
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0)
		return print_info(&options, ret, &failure);
	if (ret < 0 || complete_options(&options, &failure) < 0)
		return rank_report_failure(&failure);
	if (apply_nodes(options_value(&options.reader, OPTION_NUMA),
			&options.config, &failure) < 0)
		return rank_report_failure(&failure);
	hint_at_default_size(&options);
	hint_at_cluster(&options);
	if (check_page_size(&failure) < 0)
		return log_failure(&failure);
	/* A file beyond the limit is then an error of write(2), which says so,
	 * and a closed pipe one of the report. */
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (options.config.trace_path)
		flow_begin(clock_now_ns());
	switch (options.cluster.kind) {
	case CLUSTER_MPI_RANK:
		return sort_by_mpi(&options, &failure);
	case CLUSTER_UDP_RANK:
		return sort_together(&options, NULL, &failure);
	default:
		return sort_alone(&options, &failure);
	}
}
