/* cluster_keepers.c - which rank keeps whose runs */
#include "cluster/agreement/cluster_keepers.h"

#include "base/base.h"

_Static_assert(RANK_NODES_MAX <= 1 << 16, "a rank is two bytes");

static bool has(const struct cluster_hello *hello, enum cluster_role role)
{
	return cluster_roles_have(hello->roles, role);
}

/* The next keeper behind rank k; the same one, if there is none. */
static unsigned next_keeper(const struct cluster_hello *hellos,
			    unsigned node_count, unsigned k)
{
	for (unsigned i = k + 1; i < node_count; i++)
		if (has(&hellos[i], CLUSTER_ROLE_KEEP))
			return i;
	return k;
}

static unsigned first_keeper(const struct cluster_hello *hellos,
			     unsigned node_count)
{
	return has(&hellos[0], CLUSTER_ROLE_KEEP)
		       ? 0
		       : next_keeper(hellos, node_count, 0);
}

void cluster_keepers_choose(const struct cluster_hello *hellos,
			    unsigned node_count, uint16_t *keeper)
{
	unsigned k = first_keeper(hellos, node_count), keepers = 0;
	uint64_t kept[RANK_NODES_MAX], whole = 0;

	for (unsigned i = 0; i < node_count; i++) {
		bool keeps = has(&hellos[i], CLUSTER_ROLE_KEEP);

		kept[i] = keeps ? hellos[i].record_count : 0;
		whole += hellos[i].record_count;
		keepers += keeps;
	}
	for (unsigned i = 0; i < node_count; i++) {
		uint64_t records = hellos[i].record_count;

		keeper[i] = (uint16_t)i;
		if (has(&hellos[i], CLUSTER_ROLE_KEEP))
			continue;
		/* A keeper has its part when half of the next input would be
		 * too much. */
		while (kept[k] + records / 2 >= whole / MAX(1, keepers) &&
		       next_keeper(hellos, node_count, k) != k)
			k = next_keeper(hellos, node_count, k);
		keeper[i] = (uint16_t)k;
		kept[k] += records;
	}
}

bool cluster_keepers_is_source(const struct cluster_hello *hellos,
			       const uint16_t *keeper, unsigned rank)
{
	return keeper[rank] != rank && hellos[rank].record_count > 0;
}

unsigned cluster_keepers_parts(const struct cluster_hello *hellos,
			       unsigned node_count, const uint16_t *keeper,
			       unsigned rank)
{
	unsigned parts = 0;
	bool goes_on = false;

	for (unsigned i = 0; i < node_count; i++) {
		if (hellos[i].record_count == 0)
			continue;
		parts += keeper[i] == rank && !goes_on;
		goes_on = keeper[i] == rank;
	}
	return parts;
}
