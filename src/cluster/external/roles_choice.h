/*
 * roles_choice.h - predicts a sort by ranks with roles, and chooses the roles
 * with which it is shortest
 *
 * Ranks that have the same roles are a group, for which the one stands that
 * keeps most.  A pass takes as long as that of the slowest group (as in
 * DEPSort's model).
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
	/* The caller fills in these: ranks that are alike, with equal parts of
	 * the input; those that may read and keep, at most. */
	const struct cluster_roles *roles;
	uint64_t whole_records, readers_max, keepers_max;
	unsigned rank_count;
	/* What is_auto has led to, as for --roles; and [bits of roles]. */
	char list[64];
	struct roles_group groups[1 << CLUSTER_ROLES];
};

/* *explanation has the plan of ranks that have all roles, and gets that of a
 * rank which keeps, and the time of all.  If roles are chosen, readers are the
 * first ranks, keepers the first or the last ones, and all others sort, and
 * these, too, if that is faster.  0; or -errno with *failure filled: roles or
 * ranks cannot be, rates are not known, or a rank has too little memory. */
int roles_choice_make(struct roles_choice *choice,
		      const struct external_config *config,
		      struct external_explanation *explanation,
		      struct failure *failure);

#endif /* ROLES_CHOICE_H */
