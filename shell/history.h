/*
 * history.h - the ids of jobs whose results are gone
 *
 * A START must not start a job twice, however late it is repeated.  While the
 * table of jobs has the result, the id is known from there; when the result
 * makes room for another, its id comes here.  The last HISTORY_JOBS of them are
 * kept, in the order in which they came, with a hash table to find them by.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "shell/wire.h"

/* A client repeats a START at most every 20 ms and gives up after seconds.  A
 * daemon that starts and ends 2000 jobs a second takes half a minute for as
 * many.  It is a power of two. */
#define HISTORY_JOBS 65536

/* 1.5 MiB, of which the kernel gives the pages as they are first written: about
 * 24 bytes a job.  All zeros: no job.  Links are positions in ids + 1, 0 ends a
 * chain; since a new id goes to the head of its chain, the oldest is the last.
 */
struct history {
	uint8_t ids[HISTORY_JOBS][WIRE_JOB_BYTES]; /* [count % HISTORY_JOBS] */
	uint32_t heads[HISTORY_JOBS];		   /* of the chains, by hash */
	uint32_t next[HISTORY_JOBS];		   /* of ids[i] */
	uint64_t count;				   /* ever added */
};

/* Of a job that was not added lately; the oldest one makes room. */
void history_add(struct history *history, const uint8_t id[WIRE_JOB_BYTES]);

bool history_has(const struct history *history,
		 const uint8_t id[WIRE_JOB_BYTES]);

#endif /* HISTORY_H */
