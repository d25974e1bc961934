/* numa.c - on which NUMA node threads run and memory lies */
#include "system/numa.h"

#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/parse.h"
#include "system/small_file.h"
#include "system/topology.h"

/* linux/mempolicy.h has it since Linux 5.15. */
#define PREFERRED_MANY 5
/* The kernel takes one bit less than it is told. */
#define MASK_BITS (TOPOLOGY_NODES_MAX + 1)
/* The most that Linux is built for (CONFIG_NODES_SHIFT). */
#define NODES_OF_KERNELS 1024
#define CPU_SET_BYTES (TOPOLOGY_CPU_NUMBERS / 8)
/* Pages that one call looks up. */
#define PAGES_AT_ONCE 512

#define WANTED "want auto, off, all or nodes such as 0-1"

/* The nodes that numa_confine() was told, for the policy that threads begin
 * with; 0: it was not called.  Written while there is one thread. */
static uint64_t confined_nodes;

/* --- sets of nodes ----------------------------------------------------------
 */

uint64_t numa_nodes_of(const struct topology *topology)
{
	uint64_t nodes = 0;

	for (unsigned i = 0; i < topology->node_count; i++)
		nodes |= (uint64_t)1 << topology->nodes[i];
	return nodes;
}

static int reject(const char *text, const char *why, struct failure *failure)
{
	return failure_set(failure, EXIT_USAGE, "--numa", 0, "'%.40s': %s",
			   text, why);
}

int numa_parse(const char *text, const struct topology *topology,
	       uint64_t *nodes, struct failure *failure)
{
	uint64_t all = numa_nodes_of(topology), set = 0, first, last;
	bool is_inverted = text[0] == '!';
	bool is_relative = text[is_inverted] == '+';
	const char *list = text + is_inverted + is_relative;

	if (strcmp(list, "all") == 0 && !is_relative) {
		set = all;
		list = "";
	} else if (*list == '\0') {
		return reject(text, WANTED, failure);
	}
	while (*list != '\0') {
		int error = parse_range(&list, TOPOLOGY_NODES_MAX - 1, &first,
					&last);

		if (error)
			return reject(text,
				      error == -ERANGE
					      ? "nodes go from 0 to 63, the "
						"lower one first"
					      : WANTED,
				      failure);
		for (uint64_t node = first; node <= last; node++) {
			if (!is_relative)
				set |= (uint64_t)1 << node;
			else if (node < topology->node_count)
				set |= (uint64_t)1 << topology->nodes[node];
			else
				return reject(text,
					      "there are not so many nodes",
					      failure);
		}
	}
	if (is_inverted)
		set = all & ~set;
	if (set == 0)
		return reject(text, "no node is left", failure);
	*nodes = set;
	return 0;
}

/* Take this thread's new pages from these nodes; 0: from the one it runs on.
 * One node is preferred by MPOL_PREFERRED also before Linux 5.15. */
static void prefer_new_of(uint64_t nodes)
{
	int policy = nodes & (nodes - 1) ? PREFERRED_MANY : MPOL_PREFERRED;

	if (nodes == 0)
		(void)syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	else
		(void)syscall(SYS_set_mempolicy, policy, &nodes, MASK_BITS);
}

/* --- where threads run ------------------------------------------------------
 */

int numa_confine(uint64_t nodes, const struct topology *topology,
		 struct failure *failure)
{
	uint64_t others = nodes & ~numa_nodes_of(topology);
	unsigned char cpus[CPU_SET_BYTES] = { 0 };

	if (others)
		return failure_set(failure, EXIT_USAGE, "--numa", 0,
				   "node %d has no CPU that this process may "
				   "use",
				   __builtin_ctzll(others));
	for (unsigned i = 0; i < topology->cpu_count; i++) {
		unsigned cpu = topology->cpus[i];

		if (nodes >> topology->nodes[topology->node_of[i]] & 1)
			cpus[cpu / 8] |= (unsigned char)(1 << cpu % 8);
	}
	if (syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus) < 0)
		return failure_set(failure, EXIT_RESOURCES, "--numa", errno,
				   "cannot run on the nodes' CPUs only");
	confined_nodes = nodes;
	prefer_new_of(nodes);
	return 0;
}

/* --- where memory lies ------------------------------------------------------
 */

static void bind_pages(void *memory, size_t bytes, int policy, uint64_t nodes)
{
	uintptr_t begin = ROUND_UP((uintptr_t)memory, PAGE_BYTES);
	uintptr_t end =
		((uintptr_t)memory + bytes) & ~(uintptr_t)(PAGE_BYTES - 1);

	if (begin < end)
		(void)syscall(SYS_mbind, begin, end - begin, policy, &nodes,
			      MASK_BITS, 0);
}

void numa_interleave(void *memory, size_t bytes, uint64_t nodes)
{
	bind_pages(memory, bytes, MPOL_INTERLEAVE, nodes);
}

void numa_prefer(void *memory, size_t bytes, unsigned node)
{
	bind_pages(memory, bytes, MPOL_PREFERRED, (uint64_t)1 << node);
}

void numa_prefer_new(int node)
{
	prefer_new_of(node < 0 ? confined_nodes : (uint64_t)1 << node);
}

uint64_t numa_memory_nodes(void)
{
	/* The kernel refuses a mask of fewer bits than it has nodes. */
	uint64_t nodes[NODES_OF_KERNELS / 64] = { 0 };

	if (syscall(SYS_get_mempolicy, NULL, nodes, 8 * sizeof(nodes), NULL,
		    MPOL_F_MEMS_ALLOWED) < 0)
		return 0;
	return nodes[0];
}

int numa_node_of_self(void)
{
	unsigned node;

	if (syscall(SYS_getcpu, NULL, &node, NULL) < 0 ||
	    node >= TOPOLOGY_NODES_MAX)
		return -1;
	return (int)node;
}

/* A partition lies in a disk, which lies in a target, which lies in a
 * controller on a bus: the innermost of these that tells a node knows it.  link
 * leads to the device's folder. */
static int node_around(const char *link)
{
	char folder[PATH_MAX], text[32], *path, *end;
	uint64_t node;

	if (!realpath(link, folder))
		return -1;
	path = folder + strlen(small_file_root);
	do {
		if (small_file_read(text, sizeof(text), "%s/numa_node", path)) {
			text[strcspn(text, "\n")] = '\0';
			return parse_u64(text, 0, TOPOLOGY_NODES_MAX - 1,
					 &node) == 0
				       ? (int)node
				       : -1;
		}
		end = strrchr(path, '/');
		if (end)
			*end = '\0';
	} while (end);
	return -1;
}

int numa_node_of_disk(uint64_t device)
{
	char path[PATH_MAX];

	return small_file_path(path, "/sys/dev/block/%u:%u", major(device),
			       minor(device))
		       ? node_around(path)
		       : -1;
}

int numa_node_of_interface(const char *name)
{
	char path[PATH_MAX];

	return small_file_path(path, "/sys/class/net/%s/device", name)
		       ? node_around(path)
		       : -1;
}

bool numa_count(const void *memory, size_t bytes, uint64_t *bytes_on)
{
	uintptr_t page = ROUND_UP((uintptr_t)memory, PAGE_BYTES);
	uintptr_t end = (uintptr_t)memory + bytes;

	while (page + PAGE_BYTES <= end) {
		uintptr_t pages[PAGES_AT_ONCE];
		int nodes[PAGES_AT_ONCE];
		unsigned count = 0;

		for (; count < PAGES_AT_ONCE && page + PAGE_BYTES <= end;
		     page += PAGE_BYTES)
			pages[count++] = page;
		/* A call without target nodes tells where pages are, and moves
		 * none. */
		if (syscall(SYS_move_pages, 0, (unsigned long)count, pages,
			    NULL, nodes, 0) < 0)
			return false;
		for (unsigned i = 0; i < count; i++)
			if (nodes[i] >= 0 && nodes[i] < TOPOLOGY_NODES_MAX)
				bytes_on[nodes[i]] += PAGE_BYTES;
	}
	return true;
}
