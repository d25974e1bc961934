/*
 * secretpool.h - files that hold the secret of a job, used again
 *
 * A file in memory of WIRE_SECRET_BYTES, which whoever is given its descriptor
 * can read to its end, and neither write nor resize: it is sealed, and only our
 * own mapping of it writes.  To make a pipe for the secret, fill it and close
 * its ends costs a start 10 us; to fill such a file again, one system call.
 *
 * The next job's secret is put where the last one's was.  Hence, as with
 * pipepool.h, only he may give a file back to be used again who knows that
 * those who had it are gone.
 */
#ifndef SECRETPOOL_H
#define SECRETPOOL_H

#include <stdint.h>

#include "wire.h"

/* Those of two jobs: each is a descriptor that every new process is given a
 * copy of first, if only to close it. */
#define SECRETPOOL_MAX 2

struct secret {
	int fd;		/* close-on-exec; -1: none */
	uint8_t *bytes; /* mapped */
};

struct secretpool {
	struct secret secrets[SECRETPOOL_MAX];
	unsigned count;
};

/* A file of zeros, its descriptor at the beginning.  0 or -errno. */
int secretpool_take(struct secretpool *pool, struct secret *secret);

/* Back, to be used again or closed, wiped in any case; it becomes none, which
 * may be given, too. */
void secretpool_give(struct secretpool *pool, struct secret *secret);

/* Wipe and close: not to be used again. */
void secret_close(struct secret *secret);

/* Close those that wait. */
void secretpool_close(struct secretpool *pool);

#endif /* SECRETPOOL_H */
