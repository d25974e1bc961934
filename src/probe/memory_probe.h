/*
 * memory_probe.h - how fast memory is, by pattern, area and block
 *
 * One round of each thread goes once over the bytes of an area of its own, in
 * blocks:
 *
 *      read    in order, added up
 *      write   in order, by ordinary stores
 *      copy    the lower half of the area to the upper one, in order; moved
 *              bytes are counted once
 *      random  as read, but the next block is anywhere: many are under way
 *      chase   one word of a line tells where the next line is, so that one
 *              access waits for the one before: latency, not rate
 *
 * Areas are on huge pages where there are any, as the sorter's memory is, and
 * are written once before the first round: page faults are not measured.
 */
#ifndef MEMORY_PROBE_H
#define MEMORY_PROBE_H

#include <stdint.h>

#include "base/failure.h"

/* The smallest block of "random": memory is moved in lines of this size. */
#define MEMORY_PROBE_LINE_BYTES 64
#define MEMORY_PROBE_THREADS_MAX 256

enum memory_pattern {
	MEMORY_READ,
	MEMORY_WRITE,
	MEMORY_COPY,
	MEMORY_RANDOM,
	MEMORY_CHASE,
};

struct memory_probe {
	enum memory_pattern pattern;
	uint64_t area_bytes; /* of each thread: a power of two, 2 blocks or more
			      */
	uint64_t block_bytes; /* a power of two, a line at least */
	unsigned threads;     /* 1 .. MEMORY_PROBE_THREADS_MAX */
	unsigned rounds;
	/* A round goes over the area as often as it takes to move these bytes.
	 */
	uint64_t round_bytes;
};

/* What one round of one thread moves, and in how many accesses. */
uint64_t memory_probe_moved_bytes(const struct memory_probe *probe);
uint64_t memory_probe_accesses(const struct memory_probe *probe);

/*
 * Fills samples_ns with the time of each round: all threads are ready, the
 * first begins, the last ends.  Returns 0, or -errno with *failure filled
 * (EXIT_RESOURCES).
 */
int memory_probe_run(const struct memory_probe *probe, uint64_t *samples_ns,
		     struct failure *failure);

#endif /* MEMORY_PROBE_H */
