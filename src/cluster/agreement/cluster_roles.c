/*
 * cluster_roles.c - which ranks read, sort and keep, from the entries of
 * --roles
 */
#include "cluster/agreement/cluster_roles.h"

#include <errno.h>
#include <string.h>

#include "base/failure.h"

const char *const cluster_role_names[CLUSTER_ROLES] = {
	[CLUSTER_ROLE_READ] = "read",
	[CLUSTER_ROLE_SORT] = "sort",
	[CLUSTER_ROLE_KEEP] = "keep",
};

/* --- texts ---------------------------------------------------------------- */

/* The number that the text begins with; *text goes on behind it. */
static int read_rank(const char **text, const char *end, unsigned *rank)
{
	const char *at = *text;
	unsigned number = 0;

	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (unsigned)(*at - '0');
		if (number >= RANK_NODES_MAX)
			return -ERANGE;
	}
	if (at == *text)
		return -EINVAL;
	*text = at;
	*rank = number;
	return 0;
}

/* A number or a range, to the bits. */
static int read_range(const char **text, const char *end, uint64_t *bits)
{
	unsigned first = 0, last;
	int error = read_rank(text, end, &first);

	last = first;
	if (error == 0 && *text < end && **text == '-') {
		++*text;
		error = read_rank(text, end, &last);
	}
	if (error)
		return error;
	if (last < first)
		return -ERANGE;
	for (unsigned rank = first; rank <= last; rank++)
		bits[rank / 64] |= (uint64_t)1 << rank % 64;
	return 0;
}

/* CLUSTER_ROLES: it is none of them. */
static enum cluster_role find_role(const char *name, size_t byte_count)
{
	unsigned role = 0;

	while (role < CLUSTER_ROLES &&
	       (strlen(cluster_role_names[role]) != byte_count ||
		memcmp(cluster_role_names[role], name, byte_count) != 0))
		role++;
	return (enum cluster_role)role;
}

int cluster_roles_add(struct cluster_roles *roles, const char *entry,
		      size_t byte_count)
{
	const char *end = entry + byte_count;
	const char *colon = memchr(entry, ':', byte_count);
	const char *at;
	enum cluster_role role;
	int error;

	if (!colon)
		return -EINVAL;
	role = find_role(entry, (size_t)(colon - entry));
	if (role == CLUSTER_ROLES)
		return -EINVAL;
	at = colon + 1;
	error = read_range(&at, end, roles->ranks[role]);
	while (error == 0 && at < end) {
		if (*at++ != '+')
			return -EINVAL;
		error = read_range(&at, end, roles->ranks[role]);
	}
	if (error == 0)
		roles->is_named[role] = true;
	return error;
}

int cluster_roles_add_list(struct cluster_roles *roles, const char *list)
{
	for (;;) {
		size_t length = strcspn(list, ",");
		int error = cluster_roles_add(roles, list, length);

		if (error || list[length] == '\0')
			return error;
		list += length + 1;
	}
}

/* --- ranks ---------------------------------------------------------------- */

static bool is_in(const struct cluster_roles *roles, unsigned role,
		  unsigned rank)
{
	return roles->ranks[role][rank / 64] >> rank % 64 & 1;
}

unsigned cluster_roles_of(const struct cluster_roles *roles, unsigned rank)
{
	unsigned bits = 0;

	for (unsigned role = 0; role < CLUSTER_ROLES; role++)
		if (!roles->is_named[role] || is_in(roles, role, rank))
			bits |= 1u << role;
	return bits;
}

/* The highest rank that an entry names; -1: there is none. */
static int highest_rank(const struct cluster_roles *roles)
{
	for (int rank = RANK_NODES_MAX - 1; rank >= 0; rank--)
		for (unsigned role = 0; role < CLUSTER_ROLES; role++)
			if (is_in(roles, role, (unsigned)rank))
				return rank;
	return -1;
}

int cluster_roles_check(const struct cluster_roles *roles, unsigned rank_count,
			struct failure *failure)
{
	int highest = highest_rank(roles);

	if (highest < (int)rank_count)
		return 0;
	return failure_set(failure, EXIT_USAGE, "--roles", 0,
			   "there is no rank %d: ranks are numbered from 0 to "
			   "%u",
			   highest, rank_count - 1);
}
