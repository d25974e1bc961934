/* output_options.c - reads where the output goes */
#include "programs/blinksort/output_options.h"

int output_options_take(struct options_reader *reader,
			struct output_options *options, bool is_device,
			struct sorter_config *config, struct failure *failure)
{
	if (config->output_count == OUTPUT_FILES_MAX)
		return failure_set(failure, EXIT_USAGE, "-o", 0,
				   "more than %d outputs", OUTPUT_FILES_MAX);
	if (config->output_count > 0 && is_device != options->are_devices)
		return failure_set(failure, EXIT_USAGE, "--output-device", 0,
				   "not together with -o");
	options->are_devices = is_device;
	options->paths[config->output_count++] = reader->value;
	return 0;
}

const char *output_options_name(const struct output_options *options)
{
	return options->are_devices ? "--output-device" : "-o";
}

int output_options_complete(struct output_options *options, const char *gather,
			    struct sorter_config *config,
			    struct failure *failure)
{
	if (gather && config->output_count > 0)
		return failure_set(failure, EXIT_USAGE, "--gather", 0,
				   "not together with %s",
				   output_options_name(options));
	if (gather)
		options->paths[config->output_count++] = gather;
	config->output_paths = options->paths;
	config->outputs_are_devices = options->are_devices;
	return 0;
}

const char *output_options_neighbour(const struct output_options *options,
				     bool is_stream)
{
	return is_stream || options->are_devices ? "." : options->paths[0];
}
