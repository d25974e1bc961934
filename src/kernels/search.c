/*
 * search.c - build the tree
 */
#include "kernels/search.h"

#include <assert.h>

void search_build(struct search_tree *tree, const uint64_t *keys,
		  uint32_t count)
{
	uint32_t places = SEARCH_FANOUT, node_count = 0;

	assert(count <= SEARCH_COUNT_MAX);
	tree->level_count = 1;
	while (places <= count) {
		places *= SEARCH_FANOUT;
		tree->level_count++;
	}
	for (unsigned level = 0; level < tree->level_count; level++) {
		places /= SEARCH_FANOUT; /* in each of a node's 9 ways */
		tree->level_start[level] = node_count;
		node_count += count / (places * SEARCH_FANOUT) + 1;
	}
	assert(node_count <= SEARCH_NODES_MAX);
	/* Places after the last key are filled with the maximum. */
	for (uint32_t node = 0; node < node_count; node++)
		for (unsigned i = 0; i < SEARCH_FANOUT - 1; i++)
			tree->nodes[node][i] = UINT64_MAX;
	/* A key stands as high as its number, from 1 on, can be divided by 9.
	 */
	for (uint32_t number = 1; number <= count; number++) {
		unsigned level = tree->level_count - 1;
		uint32_t rest = number;

		for (; rest % SEARCH_FANOUT == 0; rest /= SEARCH_FANOUT)
			level--;
		tree->nodes[tree->level_start[level] + rest / SEARCH_FANOUT]
			   [rest % SEARCH_FANOUT - 1] = keys[number - 1];
	}
}
