/*
 * topology.h - which CPUs this process may use
 *
 * A machine may have several NUMA nodes: CPUs with memory of their own, which
 * the others reach more slowly.
 */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TOPOLOGY_CPUS_MAX 1024
/* CPU numbers are below this, the most that Debian's kernel is built for
 * (CONFIG_NR_CPUS). */
#define TOPOLOGY_CPU_NUMBERS 8192
/* Bits of the masks that tell nodes apart (numa.h). */
#define TOPOLOGY_NODES_MAX 64

struct topology {
	unsigned cpu_count; /* allowed by affinity and cgroup cpuset: >= 1 */
	/* Their numbers, ascending; node by node once nodes are read. */
	uint16_t cpus[TOPOLOGY_CPUS_MAX];
	/* Nodes with such CPUs.  1: there is but one, or it is not known. */
	unsigned node_count;
	uint8_t nodes[TOPOLOGY_NODES_MAX]; /* their numbers, ascending */
	/* [place in cpus[]]: place in nodes[]; all 0 until nodes are read. */
	uint8_t node_of[TOPOLOGY_CPUS_MAX];
	/* Threads stay where the scheduler puts them: blinksort --pin=no. */
	bool unpinned;
};

void topology_read(struct topology *topology);

/* Reads which nodes the CPUs belong to, once after topology_read(); costs some
 * microseconds.  Where /sys does not tell, or not of each CPU, all of them are
 * of one node. */
void topology_read_nodes(struct topology *topology);

/* The distance of a node's memory, below TOPOLOGY_NODES_MAX, from a node's CPUs
 * as the firmware has it: 10 is its own.  0: it does not tell. */
unsigned topology_distance(unsigned from, unsigned to);

/* Keep the first cpu_count CPUs, at least 1, of a machine with several nodes,
 * and the nodes of these.  Call it when the nodes have been read. */
void topology_keep(struct topology *topology, unsigned cpu_count);

/* Bind the calling thread to one CPU; a refusal is ignored: it only costs. */
void topology_pin_self(uint16_t cpu);
/* Bind another thread of this process, which has not been joined. */
void topology_pin_thread(pthread_t thread, uint16_t cpu);

/* Index in cpus[] of the one that the calling thread is running on; 0 if that
 * can't be told. */
unsigned topology_place_of_self(const struct topology *topology);

#endif /* TOPOLOGY_H */
