/*
 * roles_choice.c - tries numbers of ranks for each role
 */
#include "cluster/external/roles_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agreement/cluster_agree.h"
#include "external/external_request.h"

static void suppose_hellos(const struct roles_choice *choice,
			   const struct cluster_roles *roles,
			   struct cluster_hello *hellos)
{
	unsigned readers = 0, nth = 0;

	for (unsigned i = 0; i < choice->rank_count; i++) {
		hellos[i] = (struct cluster_hello){
			.roles = cluster_roles_of(roles, i),
			.shared_records = CLUSTER_NOT_SHARED,
		};
		readers += hellos[i].roles >> CLUSTER_ROLE_READ & 1;
	}
	for (unsigned i = 0; i < choice->rank_count; i++)
		if (cluster_roles_have(hellos[i].roles, CLUSTER_ROLE_READ))
			hellos[i].record_count =
				choice->whole_records / readers +
				(nth++ < choice->whole_records % readers);
}

static void find_groups(struct roles_choice *choice,
			const struct cluster_hello *hellos,
			struct external_ranks *work)
{
	memset(choice->groups, 0, sizeof(choice->groups));
	for (unsigned i = 0; i < choice->rank_count; i++) {
		uint64_t roles = hellos[i].roles;
		struct external_ranks ranks =
			cluster_work_of(hellos, choice->rank_count, i, false);

		if (choice->groups[roles].rank_count++ == 0 ||
		    ranks.kept_records > work[roles].kept_records)
			work[roles] = ranks;
	}
}

static void take_longest(struct external_forecast *all,
			 const struct external_forecast *group)
{
	all->ns = 0;
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		if (group->passes[p].ns >= all->passes[p].ns)
			all->passes[p] = group->passes[p];
		all->ns += all->passes[p].ns;
	}
}

/* Of many choices, one that has too little memory is not asked how much would
 * suffice: that takes long. */
static int predict(struct roles_choice *choice,
		   const struct cluster_roles *roles,
		   const struct external_config *config, bool is_tried,
		   struct external_explanation *explanation,
		   struct failure *failure)
{
	const struct external_request all = explanation->request;
	struct external_ranks work[ARRAY_LEN(choice->groups)] = { 0 };
	struct cluster_hello hellos[CLUSTER_ROLES_RANKS_MAX];
	bool is_plain;
	int error;

	suppose_hellos(choice, roles, hellos);
	error = cluster_check_roles(hellos, choice->rank_count, &is_plain,
				    failure);
	find_groups(choice, hellos, work);
	explanation->forecast = (struct external_forecast){ 0 };
	for (unsigned g = 0; g < ARRAY_LEN(work) && error == 0; g++) {
		struct roles_group *group = &choice->groups[g];
		struct external_request request = all;
		struct external_plan plan;

		if (group->rank_count == 0)
			continue;
		request.ranks = work[g];
		request.record_count = work[g].planned_records;
		error = is_tried ? external_plan_make(&plan, &request)
				 : external_request_plan(&request, config,
							 &plan, failure);
		if (error)
			break;
		external_model_forecast(&group->forecast, &plan, &request,
					&explanation->rates);
		take_longest(&explanation->forecast, &group->forecast);
		if (!work[g].gives_runs) {
			explanation->request = request;
			explanation->plan = plan;
		}
	}
	return error;
}

/* 1, 2, 3, 4, 6, 8, 12, 16 and so on, and the largest. */
static unsigned next_count(unsigned count, uint64_t most)
{
	unsigned step = 1;

	while (4 * step <= count)
		step *= 2;
	return (unsigned)(count < most ? MIN(count + step, most) : most + 1);
}

/* Bits of a place: the keepers are the first ranks, not the last ones; and
 * which ranks do not sort. */
enum { KEEPERS_FIRST = 1, NO_READERS = 2, NO_KEEPERS = 4, PLACES = 8 };

/* Write the roles as --roles takes them.  False: no rank would sort. */
static bool write_list(struct roles_choice *choice, unsigned readers,
		       unsigned keepers, unsigned place)
{
	unsigned begin = place & NO_READERS ? readers : 0;
	unsigned end = choice->rank_count;
	unsigned keeper = place & KEEPERS_FIRST ? 0 : end - keepers;

	if (place & NO_KEEPERS && keeper == 0)
		begin = MAX(begin, keepers);
	else if (place & NO_KEEPERS)
		end = keeper;
	snprintf(choice->list, sizeof(choice->list),
		 "read:0-%u,sort:%u-%u,keep:%u-%u", readers - 1, begin, end - 1,
		 keeper, keeper + keepers - 1);
	return begin < end;
}

/* Of equally fast choices, the later one is taken: more ranks have roles. */
static void try_places(struct roles_choice *best, uint64_t *best_ns,
		       unsigned readers, unsigned keepers,
		       const struct external_config *config,
		       const struct external_explanation *explanation)
{
	for (unsigned place = PLACES; place-- > 0;) {
		struct external_explanation tried = *explanation;
		struct roles_choice choice = *best;
		struct cluster_roles roles = { 0 };
		struct failure failure;

		if (!write_list(&choice, readers, keepers, place) ||
		    cluster_roles_add_list(&roles, choice.list) < 0 ||
		    predict(&choice, &roles, config, true, &tried, &failure) <
			    0 ||
		    tried.forecast.ns > *best_ns)
			continue;
		*best = choice;
		*best_ns = tried.forecast.ns;
	}
}

int roles_choice_make(struct roles_choice *choice,
		      const struct external_config *config,
		      struct external_explanation *explanation,
		      struct failure *failure)
{
	uint64_t readers_max = MIN(choice->readers_max, choice->rank_count);
	uint64_t keepers_max = MIN(choice->keepers_max, choice->rank_count);
	struct cluster_roles roles = *choice->roles;
	uint64_t best_ns = UINT64_MAX;

	if (choice->rank_count > CLUSTER_ROLES_RANKS_MAX)
		return failure_set(failure, EXIT_USAGE, "--roles", 0,
				   "%u ranks: roles may differ among %d",
				   choice->rank_count, CLUSTER_ROLES_RANKS_MAX);
	if (roles.is_auto &&
	    (explanation->rates.both == 0 || explanation->rates.link == 0))
		return failure_set(failure, EXIT_USAGE, "--roles", 0,
				   "auto needs --disk-rates and --link-rate");
	for (unsigned r = 1; roles.is_auto && r <= readers_max;
	     r = next_count(r, readers_max))
		for (unsigned k = 1; k <= keepers_max;
		     k = next_count(k, keepers_max))
			try_places(choice, &best_ns, r, k, config, explanation);
	if (roles.is_auto && cluster_roles_add_list(&roles, choice->list) < 0)
		return failure_set(failure, EXIT_RESOURCES, "memory", 0,
				   "too little, whatever the roles are");
	return cluster_roles_check(&roles, choice->rank_count, failure) < 0
		       ? -EINVAL
		       : predict(choice, &roles, config, false, explanation,
				 failure);
}
