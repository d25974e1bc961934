/*
 * cluster_roles.h - what each rank of a sort beyond memory does
 *
 *      read    it has input, and makes sorted runs of it
 *      sort    it gets a part of the merge of all runs, and writes it
 *      keep    its scratch files keep runs: its own, and those of ranks that
 *              read and do not keep
 *
 * So the machines that hold the input, those that have many CPUs and those that
 * have disks may be different ones (as in DEPSort).  A rank may have
 * several roles.
 *
 * As a text, an entry is ROLE:RANKS, where RANKS are numbers and ranges joined
 * by '+', such as 0-3+8.  A list has entries with commas between them.  A role
 * may have several entries, whose ranks add up.  A role without an entry is
 * that of all ranks.
 */
#ifndef CLUSTER_ROLES_H
#define CLUSTER_ROLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exchange/exchange.h"
#include "net/rank.h"

struct failure;

enum cluster_role {
	CLUSTER_ROLE_READ,
	CLUSTER_ROLE_SORT,
	CLUSTER_ROLE_KEEP,
	CLUSTER_ROLES,
};

/* The most ranks among which roles may differ: all of them must know what each
 * sends to each (EXCHANGE_KNOWN_MAX). */
#define CLUSTER_ROLES_RANKS_MAX EXCHANGE_KNOWN_MAX

/* A bit for each role. */
#define CLUSTER_ROLES_ALL ((1u << CLUSTER_ROLES) - 1)

_Static_assert(RANK_NODES_MAX % 64 == 0, "ranks are bits of whole words");

/* All zeros: all ranks have all roles. */
struct cluster_roles {
	bool is_auto; /* they are to be chosen (roles_choice.h) */
	bool is_named[CLUSTER_ROLES];
	unsigned end; /* entries name no rank from this one on */
	uint64_t ranks[CLUSTER_ROLES][RANK_NODES_MAX / 64]; /* a bit for each */
};

/* [enum cluster_role]: "read", "sort", "keep" */
extern const char *const cluster_role_names[CLUSTER_ROLES];

/* Add an entry of byte_count bytes, or a list.  0; -EINVAL: it is of another
 * form; or -ERANGE: a range ends before it begins, or no rank has such a
 * number. Then some of it may have been added. */
int cluster_roles_add(struct cluster_roles *roles, const char *entry,
		      size_t byte_count);
int cluster_roles_add_list(struct cluster_roles *roles, const char *list);

/* The bits of this rank's roles. */
unsigned cluster_roles_of(const struct cluster_roles *roles, unsigned rank);

/* Are all ranks that entries name below rank_count?  0, or -errno with *failure
 * filled. */
int cluster_roles_check(const struct cluster_roles *roles, unsigned rank_count,
			struct failure *failure);

static inline bool cluster_roles_have(uint64_t bits, enum cluster_role role)
{
	return bits >> role & 1;
}

#endif /* CLUSTER_ROLES_H */
