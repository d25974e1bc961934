/*
 * key_probe.h - what kind of keys an input has, from a few of them
 */
#ifndef KEY_PROBE_H
#define KEY_PROBE_H

#include "io/input/input.h"
#include "sort/sort_config.h"

/*
 * Read some keys of an open input, before it is mapped: their static kind, and
 * whether they are uniform enough for equal key ranges.  What the probe misses
 * makes the sort slower, never wrong.  An input that cannot be read counts as
 * uniform: the read that follows will tell.  If something is appended to its
 * records, it is not read, and keys are uniform if they are all random.
 */
enum splitters_kind key_probe(const struct input *input,
			      const struct sorter_config *config,
			      bool *is_uniform);

#endif /* KEY_PROBE_H */
