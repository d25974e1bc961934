/*
 * shape_options.h - the options that describe records: --record-size, --header,
 * --key, --reverse and --unique
 *
 * The caller reads --record-size itself and each --key with
 * shape_options_key(), beginning with a shape that has no keys, and completes
 * the shape when all options have been read.
 */
#ifndef SHAPE_OPTIONS_H
#define SHAPE_OPTIONS_H

#include <stdbool.h>

#include "base/options.h"
#include "record/record.h"
#include "record/widening.h"
#include "sort/sort_config.h"

/* Read one more --key, which weighs less than those before.  0, or -EINVAL as
 * options_refuse() does. */
int shape_options_key(struct options_reader *reader, struct record_shape *shape,
		      struct widening *widening, struct failure *failure);

/* Read the value of --header: bytes, and maybe ":drop".  0, or -EINVAL as
 * options_refuse() does. */
int shape_options_header(struct options_reader *reader, uint64_t *header_bytes,
			 bool *drops_header, struct failure *failure);

/* Read the value of --unique, which it need not have.  0, or -EINVAL as
 * options_refuse() does. */
int shape_options_unique(struct options_reader *reader,
			 enum unique_kind *unique, struct failure *failure);

/* Take the benchmark's key if there was no --key, see that all keys lie in the
 * record, widen it, and complete the shape.  A random key has no order to
 * reverse.  0, or -EINVAL with *failure filled. */
int shape_options_complete(struct record_shape *shape,
			   struct widening *widening, bool reverse,
			   struct failure *failure);

/* Say on stderr which defaults were taken: that of --record-size, and that of
 * --key for this shape. */
void shape_options_tell_defaults(const struct record_shape *shape, bool size,
				 bool key);

#endif /* SHAPE_OPTIONS_H */
