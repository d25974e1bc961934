/*
 * rank_secret.h - the 32 bytes that only the ranks of a job know
 *
 * For rank.c; rank.h says which of the sources is taken when, and is what
 * others include.
 */
#ifndef RANK_SECRET_H
#define RANK_SECRET_H

#include <stdint.h>

#include "base/failure.h"

#define RANK_SECRET_BYTES 32
#define RANK_JOB_PARTS 2

/* Read the 32 bytes that blinkd has left in the file of this descriptor, and
 * close it; text is the value of BLINK_SECRET_FD.  0, or -errno with *failure
 * filled: EXIT_USAGE for what is no secret. */
int rank_secret_read(const char *text, uint8_t secret[RANK_SECRET_BYTES],
		     struct failure *failure);

/*
 * Hash the key of this file with the job's name; its parts may be NULL, each.
 * Without a file (NULL) the hash only stands for the name, and anybody can
 * compute it.  0, or -errno with *failure filled: EXIT_FILE for the file.
 */
int rank_secret_hash(const char *const job[RANK_JOB_PARTS],
		     const char *key_path, uint8_t secret[RANK_SECRET_BYTES],
		     struct failure *failure);

#endif /* RANK_SECRET_H */
