/*
 * duplicates.h - of entries with equal keys, keep the first
 */
#ifndef DUPLICATES_H
#define DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sort/tie_break.h"

/*
 * entries[0..count) ascending as integers: put those of the first record of
 * each key, in key order, to the beginning, and return how many these are. Only
 * their index bits are meaningful afterwards.  is_decided: entries with equal
 * key bits have equal keys, so that no record need be read.
 */
size_t duplicates_drop(const struct tie_break *tie_break, uint64_t *entries,
		       size_t count, bool is_decided);

#endif /* DUPLICATES_H */
