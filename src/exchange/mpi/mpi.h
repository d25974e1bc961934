/*
 * mpi.h - an exchange over MPI, another transport of exchange.h
 *
 * Compiled for blinksort-mpi only, by the mpicc of the MPI that it is linked
 * with.  It uses functions of MPI 3.1 and no function that waits, but for
 * MPI_Init_thread and MPI_Finalize: when these take too long, the process says
 * so and ends with EXIT_PEER.
 *
 * A rank tells the others where it stands in short messages, the notes
 * (mpi_notes.c), and sends records in chunks (mpi_chunks.c).  MPI delivers what
 * is sent, and in order, so that each note is sent once.
 *
 * Ranks wait for single ranks by notes of these, not for all by MPI_Ibarrier or
 * MPI_Iallgather: so a rank knows which other it waits for, can name that one,
 * and a failure ends the wait.
 */
#ifndef EXCHANGE_MPI_H
#define EXCHANGE_MPI_H

#include "exchange/exchange.h"
#include "net/rank.h"

/* This process's part in MPI, from MPI_Init_thread to MPI_Finalize. */
struct mpi_world;

/*
 * Start MPI.  Returns 0, or -errno with *failure filled: EXIT_USAGE if MPI sees
 * other ranks than the launcher has started, as it does if that is the launcher
 * of another MPI; EXIT_PEER if the other ranks do not answer within the
 * deadline; EXIT_RESOURCES.  If *world is not NULL then, the caller prints the
 * failure and calls mpi_world_end().
 */
int mpi_world_start(struct mpi_world **world, uint64_t deadline_ns,
		    struct failure *failure);

/* What MPI tells of the ranks; it lives as long as the world. */
const struct rank_given *mpi_world_ranks(const struct mpi_world *world);
/* The time that MPI_Init_thread has taken. */
uint64_t mpi_world_init_ns(const struct mpi_world *world);

/*
 * End MPI, once the exchange is closed.  After a failure the process has
 * printed its message, and waits a second at most for all others to have done
 * so, since a launcher kills all ranks when the first one ends badly.  Does not
 * return if MPI cannot be ended in order: then all ranks are aborted with
 * status.  Returns the time that MPI_Finalize has taken.
 */
uint64_t mpi_world_end(struct mpi_world *world, enum exit_status status);

/* The first line of MPI_Get_library_version(), also before MPI is started.
 * Valid until the next call. */
const char *mpi_library(void);

/* Open the exchange and say hello.  NULL with *failure filled. */
struct exchange *mpi_open(struct mpi_world *world,
			  const struct exchange_options *options,
			  struct failure *failure);

#endif /* EXCHANGE_MPI_H */
