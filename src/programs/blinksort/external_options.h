/*
 * external_options.h - the options of a sort that may not fit into memory
 */
#ifndef EXTERNAL_OPTIONS_H
#define EXTERNAL_OPTIONS_H

#include "base/options.h"
#include "external/external_sort.h"

struct external_options {
	struct external_config config;
	const char *scratch_paths[SCRATCH_DIRECTORIES_MAX];
};

/* Take the value of --temporary-directory, --compress or --disk-rates.  0 or
 * -errno with *failure filled. */
int external_options_scratch(struct options_reader *reader,
			     struct external_options *options,
			     struct failure *failure);
int external_options_codec(struct options_reader *reader,
			   struct external_options *options,
			   struct failure *failure);
int external_options_rates(struct options_reader *reader,
			   struct external_options *options,
			   struct failure *failure);

/* All options have been read: without a folder for scratch files, it is
 * $TMPDIR, or else that of the output; or the current one, if the output stands
 * in none. */
void external_options_complete(struct external_options *options,
			       bool output_is_stream);

/* If the user has said how much memory to take: print a line for each folder
 * whose files are memory (tmpfs), and on a terminal for each on a rotating disk
 * that an input lies on, too, unless the plan says so. */
void external_options_warn(const struct external_options *options,
			   bool explains);

/* The first input that lies on a rotating disk of this scratch folder, or NULL.
 */
const char *external_options_neighbour(const struct external_config *config,
				       unsigned directory);

#endif /* EXTERNAL_OPTIONS_H */
