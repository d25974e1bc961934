/*
 * keyfile.h - the cluster's key: 32 random bytes as hexadecimal text in a file
 *
 * The file holds 64 digits, with or without a newline.  It must be a regular
 * file, not a link, that belongs to this user or to root, and no other user may
 * read or write it (mode & 077 == 0); other files are refused. keyfile_create()
 * gives it mode 0400.
 *
 * "fd:N" instead of a path names a descriptor of such a file, which the parent
 * process has opened.  It is read from the file's beginning and then closed, so
 * that a program can have a key whose file it may not read.
 */
#ifndef KEYFILE_H
#define KEYFILE_H

#include <stdint.h>

#include "base/failure.h"

#define KEYFILE_KEY_BYTES 32

/* Returns 0, or -errno with *failure filled (the key's text is never part of
 * it). */
int keyfile_read(const char *path, uint8_t key[KEYFILE_KEY_BYTES],
		 struct failure *failure);

/* Write a random key into a new file; an existing file is never replaced.
 * Returns the same. */
int keyfile_create(const char *path, struct failure *failure);

#endif /* KEYFILE_H */
