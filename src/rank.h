/*
 * rank.h - which of how many we are, where the others are, what we all know
 *
 * From, the first that there is:
 *
 *      --nodes and --rank
 *      blinkd       BLINK_RANK, BLINK_NODES, BLINK_HOSTS (a list of hosts as
 *                   blinksh was given it, in rank order), BLINK_JOB
 *      Slurm        SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NODELIST and
 *                   SLURM_STEP_TASKS_PER_NODE (block distribution)
 *      PMI, PMIx    PMI_RANK, PMI_SIZE; OMPI_COMM_WORLD_RANK, _SIZE; or
 *                   PMIX_RANK with the size of OMPI_COMM_WORLD_SIZE; hosts only
 *                   if all ranks run on this machine (MPI_LOCALNRANKS or
 *                   OMPI_COMM_WORLD_LOCAL_SIZE equals the size): 127.0.0.1 for
 *                   all; else --nodes is asked for
 *
 * The secret, 32 bytes that all ranks know and nobody else:
 *
 *      blinkd       on the descriptor BLINK_SECRET_FD; the job's own
 *      --key FILE   (or BLINK_KEY) the cluster's key file, hashed with the
 * job's name: SLURM_JOB_ID.SLURM_STEP_ID, PMI_JOBID, PMIX_NAMESPACE or PMIX's
 * OMPI_MCA_orte_ess_jobid, --job NAME none         only if all hosts are of
 * 127.0.0.0/8 or ::1: hashed from the job's name, which guards against
 * accidents, not people
 */
#ifndef RANK_H
#define RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "failure.h"

#define RANK_NODES_MAX 128
#define RANK_SECRET_BYTES 32

struct rank_options {
	const char *nodes;    /* --nodes, a host list; NULL */
	const char *rank;     /* --rank; NULL */
	const char *key_path; /* --key; NULL */
	const char *job;      /* --job; NULL */
};

struct rank {
	unsigned rank;
	unsigned node_count; /* 1 .. RANK_NODES_MAX */
	/* Of each rank: where it can be reached; the port is that of its
	 * command daemon, if it was written, else ADDRESS_PORT_DEFAULT. */
	struct address *addresses; /* owned */
	char **names; /* owned: as the list has them, for messages */
	/* Lower ranks on this rank's address, and all ranks on it: they share
	 * its ports.  All of 127.0.0.0/8 is one machine but many addresses. */
	unsigned address_rank, address_count;
	/* The same of machines as far as addresses tell: loopback is one. */
	unsigned machine_rank, machine_count;
	uint8_t secret[RANK_SECRET_BYTES];
	const char *source; /* "options", "blinkd", "slurm", "pmi" */
};

/* Reads the environment, and looks names up.  0 or -errno with *failure filled:
 * EXIT_USAGE for what is missing or contradicts itself, EXIT_PEER for a host
 * that has no address. */
int rank_find(struct rank *rank, const struct rank_options *options,
	      struct failure *failure);
void rank_free(struct rank *rank);

#endif /* RANK_H */
