/*
 * history.h - the ids of the last HISTORY_JOBS jobs that were added
 *
 * A START must not start a job twice, however late it is repeated.  While the
 * table of jobs has the result, the job is found there; when the result makes
 * room for another, its id is added here.  Ids are kept in the order in which
 * they came, with a hash table to find them by.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "shell/wire.h"

/* A client repeats a START at most every 20 ms and gives up after seconds.  A
 * daemon that starts and ends 2000 jobs a second takes half a minute to end
 * HISTORY_JOBS, a power of two. */
#define HISTORY_JOBS 65536

/* 1.5 MiB, of which the kernel gives the pages as they are first written: about
 * 24 bytes a job.  All zeros is a history without jobs.  A link is a position
 * in ids plus 1; 0 ends a chain.  A new id becomes the head of its chain, so
 * that the oldest id is the last of its chain. */
struct history {
	uint8_t ids[HISTORY_JOBS][WIRE_JOB_BYTES]; /* [count % HISTORY_JOBS] */
	uint32_t heads[HISTORY_JOBS];		   /* of the chains, by hash */
	uint32_t next[HISTORY_JOBS];		   /* of ids[i] */
	uint64_t count;				   /* ever added */
};

/* Adds an id that the history does not have; the oldest one makes room. */
void history_add(struct history *history, const uint8_t id[WIRE_JOB_BYTES]);

bool history_has(const struct history *history,
		 const uint8_t id[WIRE_JOB_BYTES]);

#endif /* HISTORY_H */
