/*
 * cluster_schedule.c - in which order ranks send to each other: what the
 * user wants, and what is done
 */
#include "cluster/agreement/cluster_schedule.h"

#include "exchange/model/exchange_model.h"

_Static_assert(RANK_NODES_MAX < 1 << 14, "a side of a grid has 14 bits");

uint32_t cluster_schedule_number(const struct cluster_schedule *wish)
{
	return (uint32_t)wish->kind | (uint32_t)wish->rows << 4 |
	       (uint32_t)wish->columns << 18;
}

enum exchange_schedule
cluster_schedule_first(const struct cluster_schedule *wish, bool on_one_machine)
{
	if (wish->kind == EXCHANGE_ROUNDS || wish->kind == EXCHANGE_ALL_AT_ONCE)
		return wish->kind;
	return on_one_machine ? EXCHANGE_ALL_AT_ONCE : EXCHANGE_ROUNDS;
}

static enum exchange_schedule choose_kind(const struct cluster_schedule *wish,
					  const struct cluster_traffic *traffic)
{
	uint64_t pairs = (uint64_t)traffic->node_count * traffic->node_count;
	enum exchange_schedule kind;

	if (wish->kind == EXCHANGE_GRID)
		return EXCHANGE_GRID;
	if (wish->kind != EXCHANGE_AUTO || traffic->on_one_machine ||
	    traffic->is_external)
		return cluster_schedule_first(wish, traffic->on_one_machine);
	kind = exchange_model_schedule(traffic->byte_count / pairs,
				       traffic->node_count,
				       traffic->thread_count);
	if (kind == EXCHANGE_ALL_AT_ONCE && traffic->is_by_mpi)
		return EXCHANGE_ROUNDS;
	return kind;
}

/* Each rank has a place, and there is a rank in each row and column. */
static bool suits(const struct cluster_schedule *grid, unsigned node_count)
{
	return (uint64_t)grid->rows * grid->columns >= node_count &&
	       (uint64_t)(grid->rows - 1) * grid->columns < node_count &&
	       grid->columns <= node_count;
}

int cluster_schedule_choose(struct cluster_schedule *choice,
			    const struct cluster_schedule *wish,
			    const struct cluster_traffic *traffic,
			    struct failure *failure)
{
	*choice = *wish;
	choice->kind = choose_kind(wish, traffic);
	if (choice->kind != EXCHANGE_GRID)
		return 0;
	if (traffic->is_external)
		return failure_set(failure, EXIT_USAGE, "--schedule=grid", 0,
				   "not beyond memory, where --roles, "
				   "--shared-input and large inputs lead");
	if (choice->rows == 0)
		exchange_model_grid_sides(traffic->node_count, &choice->rows,
					  &choice->columns);
	if (suits(choice, traffic->node_count))
		return 0;
	return failure_set(failure, EXIT_USAGE, "--schedule", 0,
			   "a grid of %ux%u has no place for each of %u ranks, "
			   "or a row or column without a rank",
			   choice->rows, choice->columns, traffic->node_count);
}
