/*
 * rank_slurm.h - which host has which rank, as the variables of Slurm tell
 *
 * For rank.c; rank.h lists the variables.
 */
#ifndef RANK_SLURM_H
#define RANK_SLURM_H

#include "base/failure.h"
#include "net/rank.h"

struct rank_slurm {
	/* The caller fills in these. */
	unsigned rank, node_count;
	size_t host_count;	/* of the step's list of hosts */
	const char *count_from; /* the variables of both counts, for messages */
	const char *hosts_from;
	unsigned *host_of; /* [node_count], of each rank: index of its host */
};

/* Fill host_of[].  0, or -errno with *failure filled: EXIT_USAGE if the
 * variables contradict each other. */
int rank_slurm_lay_out(const struct rank_slurm *slurm, struct failure *failure);

#endif /* RANK_SLURM_H */
