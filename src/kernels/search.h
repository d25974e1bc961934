/*
 * search.h - where a key lies among sorted splitters
 *
 * A node of the search tree is one cache line: 8 splitters, so 9 children. Four
 * steps find one of 6560 places where halving takes thirteen, and a step is one
 * comparison of a vector register.  Keys are searched for in batches,
 * level by level, so that they do not wait for each other (the layout is that
 * of Schlegel, Gemulla, Lehner 2009, k-ary search).
 */
#ifndef SEARCH_H
#define SEARCH_H

#include <stdint.h>

#include "base/base.h"
#include "base/cpu.h"

#define SEARCH_COUNT_MAX 8191
#define SEARCH_BATCH 32

#define SEARCH_FANOUT 9
#define SEARCH_LEVELS_MAX 5
/* Nodes that a search among SEARCH_COUNT_MAX can reach: 911 + 102 + 12 + 2 + 1.
 */
#define SEARCH_NODES_MAX 1028

struct search_tree {
	unsigned level_count;
	uint32_t level_start[SEARCH_LEVELS_MAX]; /* its first node */
	_Alignas(CACHE_LINE_BYTES)
		uint64_t nodes[SEARCH_NODES_MAX][SEARCH_FANOUT - 1];
};

/* Build the tree of count keys (0 .. SEARCH_COUNT_MAX), which ascend. */
void search_build(struct search_tree *tree, const uint64_t *keys,
		  uint32_t count);

/* Sets below[i] to the number of keys in the tree that are less than keys[i],
 * for SEARCH_BATCH keys. */
typedef void search_fn(const struct search_tree *tree, const uint64_t *keys,
		       uint32_t *below);

search_fn search_scalar, search_avx2, search_avx512;

/* Returns the best kernel up to this level. */
static inline search_fn *search_kernel(enum cpu_level level)
{
	return CPU_BEST(level, search_scalar, search_avx2, search_avx512);
}

#endif /* SEARCH_H */
