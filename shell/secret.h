/*
 * secret.h - the file in memory that holds the secret of one job
 *
 * A process that has the file's descriptor can read its WIRE_SECRET_BYTES to
 * the end, and can neither write nor resize it: the file is sealed, and only
 * the daemon's own mapping writes to it.  So the file is made before the job is
 * known, and to fill it takes no system call of the start.
 *
 * A file is of one job and of no other.  Processes that the job has passed its
 * descriptor to may keep it, and with it the open file whose offset all of them
 * share; the daemon cannot see whether there are any.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdint.h>

#include "shell/wire.h"

struct secret {
	int fd;		/* close-on-exec; -1: none */
	uint8_t *bytes; /* the mapping: WIRE_SECRET_BYTES */
};

/* A new file of zeros, its offset at the beginning.  0, or -errno and the
 * secret is none. */
int secret_open(struct secret *secret);

/* Overwrite with zeros, also for those that have a descriptor of the file, and
 * close.  The secret becomes none; one that is none stays so. */
void secret_close(struct secret *secret);

#endif /* SECRET_H */
