#include "cluster/cluster_keep.h"

#include "base/base.h"

_Static_assert(RANK_NODES_MAX <= 1 << 8, "a rank is a byte");

static bool has(const struct cluster_hello *hello, enum cluster_role role)
{
	return cluster_roles_have(hello->roles, role);
}

/* --- who keeps what --------------------------------------------------------
 */

void cluster_keep_choose(const struct cluster_hello *hellos,
			 unsigned node_count, uint8_t *keeper)
{
	uint64_t records[RANK_NODES_MAX];

	for (unsigned i = 0; i < node_count; i++) {
		keeper[i] = (uint8_t)i;
		records[i] = hellos[i].record_count;
	}
	for (unsigned i = 0; i < node_count; i++) {
		unsigned best = node_count;

		if (has(&hellos[i], CLUSTER_ROLE_KEEP))
			continue;
		for (unsigned k = 0; k < node_count; k++)
			if (has(&hellos[k], CLUSTER_ROLE_KEEP) &&
			    (best == node_count || records[k] < records[best]))
				best = k;
		keeper[i] = (uint8_t)best;
		records[best] += hellos[i].record_count;
	}
}

/* --- what that means for one rank ------------------------------------------
 */

static unsigned count_role(const struct cluster_hello *hellos,
			   unsigned node_count, enum cluster_role role)
{
	unsigned count = 0;

	for (unsigned i = 0; i < node_count; i++)
		count += has(&hellos[i], role);
	return count;
}

/* All ranks plan for as many records as the one has that reads or keeps most,
 * so that their pieces and blocks suit each other. */
static uint64_t find_largest(const struct cluster_hello *hellos,
			     const uint8_t *keeper, unsigned node_count)
{
	uint64_t records[RANK_NODES_MAX] = { 0 }, largest = 0;

	for (unsigned i = 0; i < node_count; i++) {
		records[keeper[i]] += hellos[i].record_count;
		largest = MAX(largest, hellos[i].record_count);
	}
	for (unsigned i = 0; i < node_count; i++)
		largest = MAX(largest, records[i]);
	return largest;
}

void cluster_keep_configure(struct external_config *config,
			    const struct cluster_hello *hellos,
			    const struct cluster_agreement *agreement,
			    const struct rank *rank)
{
	unsigned count = rank->node_count;
	unsigned sorters = count_role(hellos, count, CLUSTER_ROLE_SORT);
	uint8_t keeper[RANK_NODES_MAX];

	cluster_keep_choose(hellos, count, keeper);
	config->rank_count = count;
	config->keeper_count = count_role(hellos, count, CLUSTER_ROLE_KEEP);
	config->taker_count =
		sorters - has(&hellos[rank->rank], CLUSTER_ROLE_SORT);
	config->share_records = agreement->whole_count / MAX(1, sorters);
	config->planned_records = find_largest(hellos, keeper, count);
	config->input_begin = agreement->lower_count;
}
