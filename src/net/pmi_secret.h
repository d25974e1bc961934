/*
 * pmi_secret.h - the secret of a job that Slurm has started with a PMI: rank 0
 * gives it to the ranks on other machines through Slurm
 *
 * For rank.c; rank.h says when.  The launcher has connected each rank to itself
 * by a Unix socket, PMI_FD, and keeps names with values for its job.  Of its
 * protocol, version 1.1 of PMI, which Slurm's mpi/pmi2 speaks, these lines are
 * used; rank 0 sends put and no get, the other ranks get and no put:
 *
 *      cmd=init pmi_version=1 pmi_subversion=1
 *      cmd=get_my_kvsname
 *      cmd=put kvsname=NAME key=blinksort-secret value=HEX
 *      cmd=barrier_in
 *      cmd=get kvsname=NAME key=blinksort-secret
 *      cmd=finalize
 *
 * The launcher answers each with one line, and barrier_in when all ranks have
 * come.  A secret is as good as the channel that carries it: whoever can ask
 * the launcher for the job's values can take part.  That is why rank.c takes it
 * from Slurm only, which asks over a socket that its processes inherit, and
 * carries it between its machines as it carries all it says.  Hydra speaks the
 * same protocol, but gives the values to any process that reaches its port.
 */
#ifndef PMI_SECRET_H
#define PMI_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"

#define PMI_SECRET_BYTES 32

/* text: the value of PMI_FD.  Returns the descriptor, above 2, or -errno with
 * *failure filled: EXIT_USAGE if that is no socket of this process. */
int pmi_secret_find_fd(const char *text, struct failure *failure);

/*
 * Rank 0 gives this secret, the others get it; once.  0, or -errno with
 * *failure filled: EXIT_PEER if the launcher refuses, says something else, or
 * has not answered all within deadline_ns, as when a rank does not come.
 */
int pmi_secret_share(int fd, bool gives, uint64_t deadline_ns,
		     uint8_t secret[PMI_SECRET_BYTES], struct failure *failure);

#endif /* PMI_SECRET_H */
