/*
 * secret.h - the file in memory that holds the secret of one job
 *
 * A process that has the descriptor of the file can read its WIRE_SECRET_BYTES
 * up to the end, and can neither write nor resize it: the file is sealed, and
 * only the daemon's own mapping writes to it.  So the file can be made before
 * the job is known, and it takes no system call to fill it at the start.
 *
 * Each job has a file of its own.  Processes that the job has passed its
 * descriptor to may keep it, and with it the open file, whose offset all of
 * them share; the daemon cannot see whether there are such processes.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdint.h>

#include "shell/wire.h"

struct secret {
	int fd;		/* close-on-exec; -1: none */
	uint8_t *bytes; /* the mapping: WIRE_SECRET_BYTES */
};

/* Makes a new file of zeros, with the offset at its beginning.  0, or -errno
 * and there is no file. */
int secret_open(struct secret *secret);

/* Overwrites the file with zeros, which processes that have a descriptor of it
 * see, too, and closes it.  Does nothing if there is no file. */
void secret_close(struct secret *secret);

#endif /* SECRET_H */
