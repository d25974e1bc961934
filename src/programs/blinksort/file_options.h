/*
 * file_options.h - where a command line wants the output: in files, on block
 * devices, or in files of all ranks; and which inputs and outputs are streams,
 * and whether they can be
 */
#ifndef FILE_OPTIONS_H
#define FILE_OPTIONS_H

#include "base/options.h"
#include "io/output/output.h"
#include "sort/sort_config.h"

struct output_options {
	const char *option; /* that names the outputs; NULL: none has */
	const char *paths[OUTPUT_FILES_MAX];
};

/* Take the value of this option, which is "-o", "--output-device" or
 * "--gather", for the config.  0 or -errno with *failure filled. */
int output_options_take(struct output_options *options, const char *option,
			const char *value, struct sorter_config *config,
			struct failure *failure);

struct stream_options {
	bool is_input;	/* one of the inputs is a stream */
	bool is_output; /* the output is one */
	bool is_stdout; /* it is standard output, by whatever name */
};

/* Refuse streams that cannot be read or written, such as a terminal, or that
 * the other options do not suit.  Call it before a file is opened, which could
 * get the number of a closed descriptor.  0 or -errno with *failure filled. */
int stream_options_complete(struct stream_options *options,
			    const struct sorter_config *config, bool is_cluster,
			    struct failure *failure);

#endif /* FILE_OPTIONS_H */
