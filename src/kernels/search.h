/*
 * search.h - where a key lies among sorted splitters
 *
 * A search tree of nodes of one cache line: 8 splitters, so 9 ways to go on.
 * Four looks find one of 6560 places where halving takes thirteen, and a look
 * is one comparison of a vector register.  Keys are searched for in batches,
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
/* That a search among SEARCH_COUNT_MAX can reach: 911 + 102 + 12 + 2 + 1. */
#define SEARCH_NODES_MAX 1028

struct search_tree {
	unsigned level_count;
	uint32_t level_start[SEARCH_LEVELS_MAX]; /* its first node */
	_Alignas(CACHE_LINE_BYTES)
		uint64_t nodes[SEARCH_NODES_MAX][SEARCH_FANOUT - 1];
};

/* keys ascend; 0 .. SEARCH_COUNT_MAX of them. */
void search_build(struct search_tree *tree, const uint64_t *keys,
		  uint32_t count);

/* below[i]: how many of the tree's keys are less than keys[i], for all
 * SEARCH_BATCH of them. */
typedef void search_fn(const struct search_tree *tree, const uint64_t *keys,
		       uint32_t *below);

/* The kernel of this level (the best not above it). */
search_fn *search_kernel(enum cpu_level level);

search_fn search_scalar;
#if defined(__x86_64__)
search_fn search_avx2, search_avx512;
#endif

#endif /* SEARCH_H */
