/* cluster_workload.c - what this rank has to do in a sort beyond memory */
#include "cluster/agreement/cluster_workload.h"

#include "base/base.h"
#include "cluster/agreement/cluster_keepers.h"
#include "cluster/agreement/input_division.h"

static unsigned count_role(const struct cluster_hello *hellos,
			   unsigned node_count, enum cluster_role role)
{
	unsigned count = 0;

	for (unsigned i = 0; i < node_count; i++)
		count += cluster_roles_have(hellos[i].roles, role);
	return count;
}

/* All ranks plan for as many records as the one has that reads or keeps most,
 * so that their pieces and blocks suit each other. */
static uint64_t find_largest(const struct cluster_hello *hellos,
			     const uint16_t *keeper, unsigned node_count)
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

void cluster_workload_set(struct external_config *config,
			  const struct cluster_hello *hellos,
			  const struct cluster_agreement *agreement,
			  const struct rank *rank, bool shares_input)
{
	unsigned count = rank->node_count;
	unsigned sorters = count_role(hellos, count, CLUSTER_ROLE_SORT);
	unsigned own = hellos[rank->rank].roles;
	uint16_t keeper[RANK_NODES_MAX];

	cluster_keepers_choose(hellos, count, keeper);
	config->rank_count = count;
	config->keeper_count = count_role(hellos, count, CLUSTER_ROLE_KEEP);
	config->taker_count =
		sorters - cluster_roles_have(own, CLUSTER_ROLE_SORT);
	config->part_records = agreement->whole_count / MAX(1, sorters);
	config->planned_records = find_largest(hellos, keeper, count);
	config->input_begin = agreement->lower_count;
	config->gives_runs = !cluster_roles_have(own, CLUSTER_ROLE_KEEP);
	for (unsigned i = 0; i < count; i++) {
		uint64_t records = hellos[i].record_count;

		if (!cluster_keepers_is_source(hellos, keeper, i) ||
		    keeper[i] != rank->rank)
			continue;
		config->giver_count++;
		config->kept_records += records;
		config->kept_most = MAX(config->kept_most, records);
	}
	config->shares_input = shares_input;
	if (shares_input) {
		/* The files are the whole input. */
		config->input_begin = 0;
		config->records_max = input_division_records_max(
			agreement->whole_count, count);
	}
}
