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
 *      random-write    as write, but the next block is anywhere
 *      chase   one word of a line tells where the next line is, so that one
 *              access waits for the one before: latency, not rate
 *
 * Areas are on huge pages where there are any, as the sorter's memory is, and
 * are written once before the first round: page faults are not measured.
 *
 * On a machine with several NUMA nodes, threads may be kept to the CPUs of one,
 * and their areas to the memory of another.
 */
#ifndef MEMORY_PROBE_H
#define MEMORY_PROBE_H

#include <stdint.h>

#include "base/failure.h"
#include "system/topology.h"

/* The smallest block: memory is moved in lines of this size. */
#define MEMORY_PROBE_LINE_BYTES 64

enum memory_pattern {
	MEMORY_READ,
	MEMORY_WRITE,
	MEMORY_COPY,
	/* These move lines unless they are told a larger block. */
	MEMORY_RANDOM,
	MEMORY_RANDOM_WRITE,
	MEMORY_CHASE,
};

struct memory_probe {
	enum memory_pattern pattern;
	uint64_t area_bytes; /* of each thread: a power of two, 2 blocks or more
			      */
	uint64_t block_bytes; /* a power of two, a line at least; a chase's is
				 one */
	unsigned threads;     /* 1 .. THREAD_POOL_WORKERS_MAX */
	unsigned rounds;
	/* A round goes over the area as often as it takes to move these bytes.
	 */
	uint64_t round_bytes;
	/* Numbers of NUMA nodes, below TOPOLOGY_NODES_MAX; -1: any. */
	int cpu_node;	 /* whose CPUs the threads run on */
	int memory_node; /* whose memory the areas are of, while it has any */
};

struct memory_figures {
	uint64_t *samples_ns; /* [rounds], the caller's */
	/* Indexed by the node's number: bytes of the areas that lie there,
	 * counted after they have been written.  All 0 unless a node was asked
	 * for, or if the kernel does not tell. */
	uint64_t bytes_on[TOPOLOGY_NODES_MAX];
};

/* How many blocks one round of one thread moves. */
uint64_t memory_probe_accesses(const struct memory_probe *probe);

/*
 * A sample is the time of a round: all threads are ready, the first begins, the
 * last ends.  Returns 0, or -errno with *failure filled: EXIT_RESOURCES, or
 * EXIT_USAGE if cpu_node has no CPU that this process may use.
 */
int memory_probe_run(const struct memory_probe *probe,
		     struct memory_figures *figures, struct failure *failure);

#endif /* MEMORY_PROBE_H */
