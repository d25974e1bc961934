/*
 * stream_options.h - which inputs and outputs of a command line are streams,
 * and whether they can be
 */
#ifndef STREAM_OPTIONS_H
#define STREAM_OPTIONS_H

#include <stdbool.h>

#include "sort/sorter.h"

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

#endif /* STREAM_OPTIONS_H */
