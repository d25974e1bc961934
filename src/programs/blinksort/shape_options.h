/*
 * shape_options.h - the options that describe the records of a sort, for the
 * program that sorts and the one that checks
 */
#ifndef SHAPE_OPTIONS_H
#define SHAPE_OPTIONS_H

#include <stdbool.h>

#include "base/options.h"
#include "sort/sort_config.h"

/* In the program's table, above the numbers of its own options. */
enum {
	SHAPE_OPTION_DEVICE_BYTES = 2000,
	SHAPE_OPTION_HEADER,
	SHAPE_OPTION_RECORD_SIZE,
	SHAPE_OPTION_KEY,
	SHAPE_OPTION_REVERSE,
	SHAPE_OPTION_UNIQUE,
	SHAPE_OPTION_HEAD,
	SHAPE_OPTION_THREADS,
};

/* clang-format off */
#define SHAPE_OPTIONS                                                          \
	{ SHAPE_OPTION_DEVICE_BYTES, "device-bytes", 0, OPTIONS_VALUE,         \
	  "SIZE" },                                                            \
	{ SHAPE_OPTION_HEADER, "header", 0, OPTIONS_VALUE, "BYTES[:drop]" },   \
	{ SHAPE_OPTION_RECORD_SIZE, "record-size", 0, OPTIONS_VALUE, "BYTES" },\
	{ SHAPE_OPTION_KEY, "key", 0, OPTIONS_VALUES, "OFFSET:LENGTH" },       \
	{ SHAPE_OPTION_REVERSE, "reverse", 'r', OPTIONS_FLAG, NULL },          \
	{ SHAPE_OPTION_UNIQUE, "unique", 'u', OPTIONS_MAYBE, "WHICH" },        \
	{ SHAPE_OPTION_HEAD, "head", 0, OPTIONS_VALUE, "N" }
/* clang-format on */

/* Take the value of an option of the table above, or of the program's own
 * SHAPE_OPTION_THREADS, which has another letter in each program; any other
 * option is left alone.  The shape begins with no keys.  0, or -EINVAL as
 * options_refuse() does. */
int shape_options_take(struct options_reader *reader, int id,
		       struct sorter_config *config, struct failure *failure);

/* All options have been read: take the benchmark's key if there was no --key,
 * see that all keys lie in the record, widen it, and complete the shape.  A
 * random key has no order to reverse.  0, or -EINVAL with *failure filled. */
int shape_options_complete(const struct options_reader *reader,
			   struct sorter_config *config,
			   struct failure *failure);

/* Say on stderr which defaults were taken: that of --record-size, and that of
 * --key for this shape. */
void shape_options_tell_defaults(const struct record_shape *shape, bool size,
				 bool key);

#endif /* SHAPE_OPTIONS_H */
