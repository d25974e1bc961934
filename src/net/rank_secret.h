/*
 * rank_secret.h - the 32 bytes that only the ranks of a job know
 *
 * For rank.c; rank.h says which of the sources is taken when, and is what
 * others include.
 */
#ifndef RANK_SECRET_H
#define RANK_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"

#define RANK_SECRET_BYTES 32
#define RANK_JOB_PARTS 2

/* The sources of a secret. */
struct rank_secret_source {
	const char *key_path; /* --key-file; NULL */
	bool by_blinkd;	      /* blinkd has started the rank */
	bool by_slurm;	      /* or srun has, for a message */
	bool has_pmi;	      /* and can pass a secret on */
	/* The parts make the name of the job; each may be NULL. */
	const char *job[RANK_JOB_PARTS];
	/* A rank's host that is not of this machine; NULL: all are. */
	const char *remote_host;
};

/* There is neither a key nor blinkd's secret, and all ranks are on this
 * machine.  The 32 bytes then only stand for the job's name, and anybody can
 * compute them. */
#define RANK_SECRET_IS_NAME 1
/* There is neither a key nor blinkd's secret, and not all ranks are on this
 * machine, but Slurm can pass a secret on.  The 32 bytes are not written. */
#define RANK_SECRET_OF_PMI 2

/*
 * Reads the environment, and the key's file.  0, one of the above, or -errno
 * with *failure filled: EXIT_USAGE for what is missing or is no secret,
 * EXIT_FILE for the file, EXIT_RESOURCES.
 */
int rank_secret_find(const struct rank_secret_source *source,
		     uint8_t secret[RANK_SECRET_BYTES],
		     struct failure *failure);

#endif /* RANK_SECRET_H */
