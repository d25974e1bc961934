/* file_options.c - reads where the output goes, and finds streams */
#include "programs/blinksort/file_options.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "external/read/stream_source.h"
#include "io/output/stream_sink.h"
#include "io/pipe.h"

int output_options_take(struct output_options *options, const char *option,
			const char *value, struct sorter_config *config,
			struct failure *failure)
{
	if (options->option && strcmp(option, options->option) != 0)
		return failure_set(failure, EXIT_USAGE, option, 0,
				   "not together with %s", options->option);
	if (config->output_count == OUTPUT_FILES_MAX)
		return failure_set(failure, EXIT_USAGE, option, 0,
				   "more than %d outputs", OUTPUT_FILES_MAX);
	options->option = option;
	options->paths[config->output_count++] = value;
	config->output_paths = options->paths;
	return 0;
}

/* --- streams -------------------------------------------------------------- */

static int check_stdin(const struct sorter_config *config,
		       struct failure *failure)
{
	unsigned count = 0;

	for (unsigned i = 0; i < config->input_count; i++)
		count += pipe_is_word(config->input_paths[i]);
	if (count > 1)
		return failure_set(failure, EXIT_USAGE, PIPE_WORD, 0,
				   "is an input twice, and standard input can "
				   "be read once");
	if (count == 0)
		return 0;
	return pipe_check(STDIN_FILENO, PIPE_INPUT_NAME, "cannot read",
			  failure);
}

/* The first output that is a stream, or NULL. */
static const char *find_output(const struct sorter_config *config)
{
	for (unsigned i = 0;
	     i < config->output_count && !config->outputs_are_devices; i++)
		if (stream_sink_suits(config->output_paths[i]))
			return config->output_paths[i];
	return NULL;
}

/* True if the path leads to standard output, as "-" and /dev/stdout do. */
static bool is_stdout(const char *path)
{
	struct stat output, own;

	return pipe_is_word(path) ||
	       (stat(path, &output) == 0 && fstat(STDOUT_FILENO, &own) == 0 &&
		output.st_dev == own.st_dev && output.st_ino == own.st_ino);
}

static int check_output(const char *path, const struct sorter_config *config,
			struct failure *failure)
{
	if (config->output_count > 1)
		return failure_set(failure, EXIT_USAGE, path, 0,
				   "is no regular file, and not the only "
				   "output");
	if (config->sync)
		return failure_set(failure, EXIT_USAGE, "--sync", 0,
				   "the output must be a regular file");
	if (!pipe_is_word(path))
		return 0;
	return pipe_check(STDOUT_FILENO, PIPE_OUTPUT_NAME, "cannot write",
			  failure);
}

int stream_options_complete(struct stream_options *options,
			    const struct sorter_config *config, bool is_cluster,
			    struct failure *failure)
{
	const char *output = find_output(config);

	/* A rank's output is opened as a file, which tells what it is. */
	if (is_cluster && output)
		return options_check_operand(output, "a regular file", failure);
	if (is_cluster)
		return 0;
	*options = (struct stream_options){
		.is_input = stream_source_suits(config->input_paths,
						config->input_count),
		.is_output = output != NULL,
		.is_stdout = output && is_stdout(output),
	};
	if (options->is_input && config->device_bytes > 0)
		return failure_set(failure, EXIT_USAGE, "--device-bytes", 0,
				   "not with an input that is a pipe");
	if (output && check_output(output, config, failure) < 0)
		return -EINVAL;
	return check_stdin(config, failure);
}
