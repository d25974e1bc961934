/*
 * rank.h - the rank of this process, the addresses of all, and their secret
 *
 * The rank, the number of ranks and their hosts come from the first of these
 * sources that is there:
 *
 *      options      --nodes and --rank
 *      blinkd       BLINK_RANK, BLINK_NODES, BLINK_HOSTS (a list of hosts in
 *                   rank order; not set if it was too long)
 *      mpirun       Open MPI's: OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE,
 *                   OMPI_COMM_WORLD_LOCAL_SIZE; MPICH's (Hydra): PMI_RANK,
 *                   PMI_SIZE, MPI_LOCALNRANKS.  Before Slurm, whose variables
 *                   are then those of mpirun's own daemons
 *      Slurm        SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST,
 *                   SLURM_STEP_TASKS_PER_NODE, SLURM_DISTRIBUTION (block or
 *                   cyclic), SLURM_NODEID (which must agree with them);
 *                   SLURM_NTASKS may be the whole job's
 *      PMI, PMIx    PMI_RANK, PMI_SIZE; or PMIX_RANK, which no size comes with
 *
 * Hosts are 127.0.0.1 for all if mpirun started all ranks on this machine.
 * --nodes without --rank replaces the hosts: it must list as many as there are
 * ranks.  It is required where no source tells the hosts.
 *
 * The secret, 32 bytes that only the ranks know, comes from the first of these
 * sources that is there:
 *
 *      --key-file   the cluster's key, hashed with the job's name
 *      blinkd       the 32 bytes in the file BLINK_SECRET_FD, the job's own;
 *                   read once, and closed
 *      BLINK_KEY    a FILE, as above
 *      none         only if all hosts are of 127.0.0.0/8 or ::1: rank 0 draws
 *                   it and gives it to the ranks that run as the same user
 *                   (local_secret.h), which rank_learn_secret() waits for
 *      PMI_FD       in place of that, where hosts are of several machines and
 *                   Slurm has started the ranks: rank 0 gives it through Slurm
 *                   (pmi_secret.h), if PMI_RANK and PMI_SIZE are Slurm's.  Not
 *                   with Hydra, which asks nobody who it is
 *
 * The job's name keeps runs with one key apart: --job NAME, BLINK_JOB,
 * SLURM_JOB_ID with SLURM_STEP_ID, PMI_JOBID, or PMIX_NAMESPACE, of the source
 * that the rank comes from.  Hydra and options have none of their own: without
 * --job, runs with one key then have one secret.
 */
#ifndef RANK_H
#define RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "net/address.h"
#include "net/local_secret.h"
#include "net/rank_secret.h"

#define RANK_NODES_MAX 4096

/* The ranks as MPI tells them; their launcher vouches for them, so they need
 * neither hosts nor a key. */
struct rank_given {
	const char *source;
	unsigned rank, node_count;
	unsigned machine_rank, machine_count;
	const char *const *names; /* [node] */
	uint8_t secret[RANK_SECRET_BYTES];
};

struct rank_options {
	/* If it is not NULL, neither the other options nor the environment are
	 * looked at. */
	const struct rank_given *given;
	const char *nodes;    /* --nodes, a host list; NULL */
	const char *rank;     /* --rank; NULL; not without --nodes */
	const char *key_path; /* --key-file; NULL */
	const char *job;      /* --job; NULL */
};

struct rank {
	unsigned rank;
	unsigned node_count; /* 1 .. RANK_NODES_MAX */
	/* [node], owned; NULL if the ranks were given.  The port is that of the
	 * host's command daemon, as the list has it, else ADDRESS_PORT_DEFAULT.
	 */
	struct address *addresses;
	char **names; /* [node], owned: as the list has them, for messages */
	/* The number of lower ranks, and of all ranks, on this rank's machine,
	 * as far as addresses tell: all of 127.0.0.0/8 is one. */
	unsigned machine_rank, machine_count;
	/* Known after rank_learn_secret(). */
	uint8_t secret[RANK_SECRET_BYTES];
	bool is_keyless; /* local is filled then */
	struct local_secret_job local;
	int pmi_fd; /* the launcher's, which passes the secret on; 0: none */
	/* Owned; only on rank 0 of several ranks without a key, else NULL. */
	struct local_secret_server *server;
	const char *source; /* "options", "blinkd", "slurm", "pmi", "mpi" */
};

/*
 * Read the environment, and look names up.  Returns 0, or -errno with *failure
 * filled and nothing to free: EXIT_USAGE for what is missing or contradictory,
 * EXIT_PEER for a host that has no address, EXIT_FILE for the key file,
 * EXIT_RESOURCES; and on rank 0 of several without a key EXIT_PEER if another
 * process holds the job's name.  failure->what lives as long as options and
 * environment do.
 */
int rank_find(struct rank *rank, const struct rank_options *options,
	      struct failure *failure);

/* A launcher's variables in the environment of this process. */
struct rank_launch {
	const char *name; /* the variable that has the number of ranks */
	unsigned rank, node_count;
	bool is_slurm, is_blinkd;
};

/* False: no launcher has started this process, or it does not tell both
 * numbers. */
bool rank_find_launch(struct rank_launch *launch);

/*
 * Wait for the secret if rank 0 gives it; else it is known already.  Rank 0
 * waits, too, where it gives it through a launcher.  Returns 0, or -errno with
 * *failure filled: EXIT_PEER if rank 0 has not come within the deadline, or
 * cannot be told from a process of another user or job; EXIT_RESOURCES.
 */
int rank_learn_secret(struct rank *rank, uint64_t deadline_ns,
		      struct failure *failure);

/* Called after a run has failed: if ranks of two jobs with one name have come
 * to this rank 0, replace *failure by that reason; else leave it. */
void rank_explain(const struct rank *rank, struct failure *failure);

/* Wipe the secret, and stop giving it to other ranks.  Safe on a struct of
 * zeros, and twice. */
void rank_free(struct rank *rank);

#endif /* RANK_H */
