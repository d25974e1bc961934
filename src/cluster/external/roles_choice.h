/*
 * roles_choice.h - predicts a sort by ranks with roles, and chooses the roles
 * with which it is shortest
 *
 * Ranks that have the same roles are a group.  What is predicted of a group is
 * the work of the rank in it that keeps most, and a pass takes as long as that
 * of the slowest group (as in DEPSort's model).
 */
#ifndef ROLES_CHOICE_H
#define ROLES_CHOICE_H

#include "cluster/agreement/cluster_roles.h"
#include "external/external_sort.h"

struct roles_group {
	unsigned rank_count; /* 0: no rank has just these roles */
	struct external_forecast forecast;
};

struct roles_choice {
	/* The caller fills in these.  Ranks are alike, and those that read have
	 * equal parts of the input.  If roles are chosen, at most readers_max
	 * ranks read, and keepers_max keep. */
	const struct cluster_roles *roles;
	uint64_t whole_records, readers_max, keepers_max;
	unsigned rank_count;
	char list[64]; /* what is_auto has led to, as --roles takes it */
	struct roles_group groups[1 << CLUSTER_ROLES]; /* [bits of roles] */
};

/* *explanation has the plan of ranks that have all roles, and gets that of a
 * rank which keeps, and the time of all.  If roles are chosen, readers are the
 * first ranks, keepers the first or the last ones, and all others sort, and
 * these, too, if that is faster.  0; or -errno with *failure filled: no such
 * roles or ranks, rates that are not known, or too little memory of a rank. */
int roles_choice_make(struct roles_choice *choice,
		      const struct external_config *config,
		      struct external_explanation *explanation,
		      struct failure *failure);

#endif /* ROLES_CHOICE_H */
