/*
 * search_scalar.c - the plain C version, which defines search
 */
#include "kernels/search.h"

void search_scalar(const struct search_tree *tree, const uint64_t *keys,
		   uint32_t *below)
{
	for (unsigned k = 0; k < SEARCH_BATCH; k++) {
		uint32_t at = 0;

		for (unsigned level = 0; level < tree->level_count; level++) {
			const uint64_t *node =
				tree->nodes[tree->level_start[level] + at];
			uint32_t less = 0;

			for (unsigned i = 0; i < SEARCH_FANOUT - 1; i++)
				less += node[i] < keys[k];
			at = at * SEARCH_FANOUT + less;
		}
		below[k] = at;
	}
}
