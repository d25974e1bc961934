/*
 * keyfile.h - the cluster's key: 32 random bytes as hexadecimal text in a file
 *
 * The file holds 64 digits and a newline or none.  It must be a regular file,
 * not a link, of this user or of root, and nobody else may read or write it
 * (mode & 077 == 0), or it is refused.  Made with mode 0400.
 *
 * "fd:N" instead of a path is a descriptor of such a file, which whoever
 * started us has opened; it is read from its beginning and not left open, so
 * that a program can have a key whose file it may not read.
 */
#ifndef KEYFILE_H
#define KEYFILE_H

#include <stdint.h>

#include "base/failure.h"

#define KEYFILE_KEY_BYTES 32

/* 0 or -errno with *failure filled (the key's text is never part of it). */
int keyfile_read(const char *path, uint8_t key[KEYFILE_KEY_BYTES],
		 struct failure *failure);

/* A new file; an existing one is never replaced.  0 or -errno, as above. */
int keyfile_create(const char *path, struct failure *failure);

#endif /* KEYFILE_H */
