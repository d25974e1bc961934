/*
 * external_options.c - reads the options of a sort beyond memory
 */
#include "programs/blinksort/external_options.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "base/parse.h"
#include "system/ramdisk.h"
#include "system/spindle.h"

int external_options_scratch(struct options_reader *reader,
			     struct external_options *options,
			     struct failure *failure)
{
	if (options->config.scratch_count == SCRATCH_DIRECTORIES_MAX)
		return failure_set(failure, EXIT_USAGE, "-T", 0,
				   "more than %d directories",
				   SCRATCH_DIRECTORIES_MAX);
	options->scratch_paths[options->config.scratch_count++] = reader->value;
	return 0;
}

int external_options_codec(struct options_reader *reader,
			   struct external_options *options,
			   struct failure *failure)
{
	if (codec_parse(reader->value, &options->config.codec) == 0)
		return 0;
	return options_refuse(reader, failure,
			      "not auto, none, lz4, zstd or zstd:LEVEL, with a "
			      "LEVEL from 1 to %d",
			      CODEC_LEVEL_MAX);
}

/* Three sizes, and maybe a number of requests; none is 0. */
int external_options_rates(struct options_reader *reader,
			   struct external_options *options,
			   struct failure *failure)
{
	struct external_rates *rates = &options->config.rates;
	uint64_t *targets[] = { &rates->read, &rates->write, &rates->both,
				&rates->requests };
	const unsigned most = ARRAY_LEN(targets);
	const char *value = reader->value;
	bool is_last = false;

	for (unsigned i = 0; !is_last; i++) {
		char text[32];
		size_t length = strcspn(value, ":");

		snprintf(text, sizeof(text), "%.*s",
			 (int)MIN(length, sizeof(text)), value);
		is_last = value[length] == '\0';
		if (length >= sizeof(text) ||
		    parse_size(text, 1, INT64_MAX, targets[i]) < 0 ||
		    (is_last ? i + 2 < most : i + 1 == most))
			return options_refuse(
				reader, failure,
				"not three sizes, such as 700M:1400M:1300M, or "
				"these and the requests a second");
		value += length + 1;
	}
	return 0;
}

/* Never /tmp unless the user says so: it is often memory. */
static const char *default_scratch(const struct sorter_config *sort,
				   bool output_is_stream)
{
	static char folder[PATH_MAX];
	const char *tmpdir = getenv("TMPDIR");

	if (tmpdir && *tmpdir)
		return tmpdir;
	if (output_is_stream || sort->outputs_are_devices)
		return ".";
	snprintf(folder, sizeof(folder), "%s", sort->output_paths[0]);
	return dirname(folder);
}

void external_options_complete(struct external_options *options,
			       bool output_is_stream)
{
	struct external_config *config = &options->config;

	config->scratch_paths = options->scratch_paths;
	config->scratch_is_named = config->scratch_count > 0;
	if (config->scratch_count == 0)
		options->scratch_paths[config->scratch_count++] =
			default_scratch(config->sort, output_is_stream);
}

/* The number of the device that it is, or lies on. */
static bool find_device(const char *path, dev_t *device)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return false;
	*device = S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev;
	return true;
}

const char *external_options_neighbour(const struct external_config *config,
				       unsigned directory)
{
	const struct sorter_config *sort = config->sort;
	dev_t scratch, input;

	if (!find_device(config->scratch_paths[directory], &scratch))
		return NULL;
	for (unsigned i = 0; i < sort->input_count; i++)
		if (find_device(sort->input_paths[i], &input) &&
		    spindle_is_shared(scratch, input))
			return sort->input_paths[i];
	return NULL;
}

void external_options_warn(const struct external_options *options,
			   bool explains)
{
	if (options->config.sort->memory_bytes == 0)
		return;
	for (unsigned i = 0; i < options->config.scratch_count; i++) {
		const char *path = options->scratch_paths[i];

		/* The sort itself tells of a folder that is missing. */
		if (access(path, F_OK) == 0 && ramdisk_has(path))
			log_about(path, "scratch files here are memory, which "
					"--memory does not count");
		else if (!explains && isatty(STDERR_FILENO) &&
			 external_options_neighbour(&options->config, i))
			log_about(path, "scratch files here are on the "
					"rotating disk of an input: -T on "
					"another disk is faster");
	}
}
