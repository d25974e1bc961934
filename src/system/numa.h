/*
 * numa.h - on which NUMA node threads run and memory lies
 *
 * By the system calls mbind(2), set_mempolicy(2) and move_pages(2): libnuma
 * reads files of /proc and /sys before main(), which takes a sixth of the time
 * of a small sort.  A refusal of the kernel is ignored where memory is placed:
 * it only costs.
 *
 * A set of nodes is a mask: bit n is node n.
 */
#ifndef NUMA_H
#define NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct failure;
struct topology;

/*
 * numactl's syntax: "all", or numbers and ranges such as 0,2-3; behind "!" they
 * are the nodes that are not meant, behind "+" places among those with CPUs
 * that this process may use.  topology has its nodes read.  0 with *nodes not
 * empty, or -EINVAL with *failure filled (EXIT_USAGE).
 */
int numa_parse(const char *text, const struct topology *topology,
	       uint64_t *nodes, struct failure *failure);

/* Confine this process, which has one thread yet, to these nodes' CPUs, and to
 * their memory while there is any.  0, or -errno with *failure filled:
 * EXIT_USAGE if a node has no CPU that the process may use, EXIT_RESOURCES if
 * the kernel refuses. */
int numa_confine(uint64_t nodes, const struct topology *topology,
		 struct failure *failure);

/* Nodes of the topology's CPUs. */
uint64_t numa_nodes_of(const struct topology *topology);

/* Pages of this memory come from these nodes in turn, or from this node while
 * it has any.  Whole pages only, and none that has been touched. */
void numa_interleave(void *memory, size_t bytes, uint64_t nodes);
void numa_prefer(void *memory, size_t bytes, unsigned node);

/* Pages that this thread makes from now on, such as those of a file's page
 * cache, come from this node while it has any; -1: again from those that
 * numa_confine() was told, or else from the one it runs on. */
void numa_prefer_new(int node);

/* Nodes whose memory this process may have; 0: the kernel does not tell. */
uint64_t numa_memory_nodes(void);

/* The node that this thread runs on, or -1. */
int numa_node_of_self(void);

/* The node of the disk of this device number (st_rdev), or that the file system
 * of this number (st_dev) lies on, or -1: not known, as on machines with one
 * node. */
int numa_node_of_disk(uint64_t device);

/* The node of the device behind this network interface, or -1: not known, as of
 * loopback and on machines with one node. */
int numa_node_of_interface(const char *name);

/* Adds the bytes of this memory that have been touched to
 * bytes_on[TOPOLOGY_NODES_MAX], by each page's node.  False: the kernel does
 * not tell, as in a container that may not ask. */
bool numa_count(const void *memory, size_t bytes, uint64_t *bytes_on);

#endif /* NUMA_H */
