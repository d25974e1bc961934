/*
 * cluster_workload.h - what this rank has to do in a sort beyond memory
 *
 * How many records it reads, keeps for other ranks and gets in the end follows
 * from the roles and the inputs of all ranks.
 */
#ifndef CLUSTER_WORKLOAD_H
#define CLUSTER_WORKLOAD_H

#include "cluster/agreement/cluster_agree.h"
#include "external/external_sort.h"
#include "net/rank.h"

/* Set the members of the config that say how many ranks there are, what they
 * do, and how many records each has; the others stay as they are.
 * shares_input: all ranks read the same files. */
void cluster_workload_set(struct external_config *config,
			  const struct cluster_hello *hellos,
			  const struct cluster_agreement *agreement,
			  const struct rank *rank, bool shares_input);

#endif /* CLUSTER_WORKLOAD_H */
