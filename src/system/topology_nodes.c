/*
 * topology_nodes.c - which NUMA node each CPU belongs to
 */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"
#include "system/small_file.h"
#include "system/topology.h"

#define NODES_FOLDER "/sys/devices/system/node"
#define NOT_KNOWN UINT8_MAX

/* The place of a CPU in cpus[], which are ascending; cpu_count if it is none of
 * them. */
static unsigned place_of(const struct topology *topology, uint64_t cpu)
{
	unsigned low = 0, high = topology->cpu_count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (topology->cpus[middle] < cpu)
			low = middle + 1;
		else
			high = middle;
	}
	return low < topology->cpu_count && topology->cpus[low] == cpu
		       ? low
		       : topology->cpu_count;
}

/* node_of[] of the CPUs of this list that no node has yet: the place of the
 * next node.  So a node that is named twice is not counted twice. */
static bool mark(struct topology *topology, const char *cpus)
{
	bool any = false;
	uint64_t first, last;

	while (*cpus != '\0') {
		if (parse_range(&cpus, UINT16_MAX, &first, &last) < 0)
			return any;
		for (uint64_t cpu = first; cpu <= last; cpu++) {
			unsigned place = place_of(topology, cpu);

			if (place == topology->cpu_count ||
			    topology->node_of[place] != NOT_KNOWN)
				continue;
			topology->node_of[place] =
				(uint8_t)topology->node_count;
			any = true;
		}
	}
	return any;
}

static void read_node(struct topology *topology, unsigned node)
{
	char text[4096];

	if (!small_file_read(text, sizeof(text), NODES_FOLDER "/node%u/cpulist",
			     node))
		return;
	text[strcspn(text, "\n")] = '\0';
	if (mark(topology, text))
		topology->nodes[topology->node_count++] = (uint8_t)node;
}

/* Nodes that are online, as a mask; 0: it is not told. */
static uint64_t online_nodes(void)
{
	char text[1024];
	const char *nodes = text;
	uint64_t first, last, online = 0;

	if (!small_file_read(text, sizeof(text), NODES_FOLDER "/online"))
		return 0;
	text[strcspn(text, "\n")] = '\0';
	while (*nodes != '\0' &&
	       parse_range(&nodes, TOPOLOGY_NODES_MAX - 1, &first, &last) == 0)
		for (uint64_t node = first; node <= last; node++)
			online |= (uint64_t)1 << node;
	return online;
}

/* Node by node, and ascending within a node. */
static void sort_by_node(struct topology *topology)
{
	uint16_t cpus[TOPOLOGY_CPUS_MAX];
	uint8_t node_of[TOPOLOGY_CPUS_MAX];
	unsigned count = 0;

	for (unsigned node = 0; node < topology->node_count; node++)
		for (unsigned i = 0; i < topology->cpu_count; i++)
			if (topology->node_of[i] == node) {
				cpus[count] = topology->cpus[i];
				node_of[count++] = (uint8_t)node;
			}
	memcpy(topology->cpus, cpus, count * sizeof(*cpus));
	memcpy(topology->node_of, node_of, count * sizeof(*node_of));
}

void topology_read_nodes(struct topology *topology)
{
	bool all_known = true;

	topology->node_count = 0;
	memset(topology->node_of, NOT_KNOWN, topology->cpu_count);
	for (uint64_t online = online_nodes(); online; online &= online - 1)
		read_node(topology, (unsigned)__builtin_ctzll(online));
	for (unsigned i = 0; i < topology->cpu_count; i++)
		all_known &= topology->node_of[i] != NOT_KNOWN;
	if (all_known) {
		sort_by_node(topology);
		return;
	}
	topology->node_count = 1;
	topology->nodes[0] = 0;
	memset(topology->node_of, 0, topology->cpu_count);
}

unsigned topology_distance(unsigned from, unsigned to)
{
	char text[1024], *end, *at = text;
	uint64_t online = online_nodes(), bit = (uint64_t)1 << to;

	if (!(online & bit) ||
	    !small_file_read(text, sizeof(text),
			     NODES_FOLDER "/node%u/distance", from))
		return 0;
	for (int before = __builtin_popcountll(online & (bit - 1));; before--) {
		unsigned long distance = strtoul(at, &end, 10);

		if (end == at || before == 0)
			return end == at ? 0 : (unsigned)distance;
		at = end;
	}
}

void topology_keep(struct topology *topology, unsigned cpu_count)
{
	uint8_t new_place[TOPOLOGY_NODES_MAX];
	unsigned count = 0;

	assert(cpu_count > 0 && cpu_count <= topology->cpu_count);
	topology->cpu_count = cpu_count;
	for (unsigned node = 0; node < topology->node_count; node++) {
		if (!memchr(topology->node_of, (int)node, cpu_count))
			continue;
		new_place[node] = (uint8_t)count;
		topology->nodes[count++] = topology->nodes[node];
	}
	topology->node_count = count;
	for (unsigned i = 0; i < cpu_count; i++)
		topology->node_of[i] = new_place[topology->node_of[i]];
}
