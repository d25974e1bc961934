/*
 * cluster_roles.c - which ranks read, sort and keep, from the entries of
 * --roles
 */
#include "cluster/agreement/cluster_roles.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
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

/* A number or a range, to the ranks of the role. */
static int read_range(const char **text, const char *end,
		      struct cluster_roles *roles, enum cluster_role role)
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
		roles->ranks[role][rank / 64] |= (uint64_t)1 << rank % 64;
	roles->end = MAX(roles->end, last + 1);
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
	/* A range stands behind the colon, and one behind each '+'. */
	at = colon;
	do {
		at++;
		error = read_range(&at, end, roles, role);
	} while (error == 0 && at < end && *at == '+');
	if (error == 0 && at < end)
		error = -EINVAL;
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

unsigned cluster_roles_of(const struct cluster_roles *roles, unsigned rank)
{
	unsigned bits = 0;

	for (unsigned role = 0; role < CLUSTER_ROLES; role++)
		if (!roles->is_named[role] ||
		    (roles->ranks[role][rank / 64] >> rank % 64 & 1))
			bits |= 1u << role;
	return bits;
}

int cluster_roles_check(const struct cluster_roles *roles, unsigned rank_count,
			struct failure *failure)
{
	if (roles->end <= rank_count)
		return 0;
	return failure_set(failure, EXIT_USAGE, "--roles", 0,
			   "there is no rank %u: ranks are numbered from 0 to "
			   "%u",
			   roles->end - 1, rank_count - 1);
}
