/*
 * mpi_link.c - of a program that is linked with MPI
 */
#include "programs/blinksort/mpi_link.h"

#include "exchange/mpi/mpi.h"

static struct mpi_world *world;

const char *mpi_link_library(void)
{
	return mpi_library();
}

static struct exchange *open_exchange(void *context,
				      const struct exchange_options *options,
				      struct failure *failure)
{
	return mpi_open(context, options, failure);
}

int mpi_link_begin(char **words, struct cluster_config *config,
		   struct mpi_report *report, struct failure *failure)
{
	int error = mpi_world_start(&world, config->deadline_ns, failure);

	(void)words;
	if (error)
		return error;
	config->rank.given = mpi_world_ranks(world);
	config->open_exchange = open_exchange;
	config->exchange_context = world;
	report->init_ns = mpi_world_init_ns(world);
	return 0;
}

int mpi_link_end(int status, struct mpi_report *report)
{
	if (world)
		report->finalize_ns =
			mpi_world_end(world, (enum exit_status)status);
	world = NULL;
	return status;
}
