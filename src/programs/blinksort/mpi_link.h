/*
 * mpi_link.h - whether this program is linked with MPI, and what it does then
 *
 * blinksort-mpi is linked with mpi_link.c, all other programs get
 * without_mpi.c from the library.
 */
#ifndef MPI_LINK_H
#define MPI_LINK_H

#include "cluster/cluster.h"

/* What a run has to tell of MPI. */
struct mpi_report {
	uint64_t init_ns, finalize_ns;
};

/* Which MPI, in one line; NULL if there is none. */
const char *mpi_link_library(void);

static inline bool mpi_link_is_there(void)
{
	return mpi_link_library() != NULL;
}

/* Start MPI, and make the sort use it: its ranks, and its messages.  Returns 0,
 * or -errno with *failure filled.  In either case call mpi_link_end().
 * A program that is not linked with MPI becomes the blinksort-mpi beside it,
 * which gets the words: those of the command line, with the program's name. */
int mpi_link_begin(char **words, struct cluster_config *config,
		   struct mpi_report *report, struct failure *failure);

/* End MPI; failures have been printed.  Does not return if that was not in
 * order.  Returns status. */
int mpi_link_end(int status, struct mpi_report *report);

#endif /* MPI_LINK_H */
