/* topology.c - which CPUs this process may use */
#include "system/topology.h"

#include <sched.h>
#include <string.h>

/* The kernel refuses to fill a set with fewer bits than it has CPUs. */
union cpu_mask {
	cpu_set_t set;
	unsigned char bytes[TOPOLOGY_CPU_NUMBERS / 8];
};

void topology_read(struct topology *topology)
{
	union cpu_mask mask = { .bytes = { 0 } };

	topology->cpu_count = 0;
	if (sched_getaffinity(0, sizeof(mask), &mask.set) == 0) {
		for (unsigned cpu = 0; cpu < TOPOLOGY_CPU_NUMBERS; cpu++) {
			if (topology->cpu_count == TOPOLOGY_CPUS_MAX)
				break;
			if (CPU_ISSET_S(cpu, sizeof(mask), &mask.set))
				topology->cpus[topology->cpu_count++] =
					(uint16_t)cpu;
		}
	}
	/* If the CPUs are not known, run one thread; no harm if it can't be
	 * bound. */
	if (topology->cpu_count == 0) {
		topology->cpus[0] = 0;
		topology->cpu_count = 1;
	}
	topology->node_count = 1;
	topology->nodes[0] = 0;
	memset(topology->node_of, 0, sizeof(topology->node_of));
	topology->unpinned = false;
}

void topology_pin_self(uint16_t cpu)
{
	topology_pin_thread(pthread_self(), cpu);
}

void topology_pin_thread(pthread_t thread, uint16_t cpu)
{
	union cpu_mask mask = { .bytes = { 0 } };

	/* CPU_SET_S() sets no bit for a number too large, and the kernel
	 * refuses an empty mask. */
	CPU_SET_S(cpu, sizeof(mask), &mask.set);
	(void)pthread_setaffinity_np(thread, sizeof(mask), &mask.set);
}

unsigned topology_place_of_self(const struct topology *topology)
{
	int cpu = sched_getcpu();

	for (unsigned i = 0; i < topology->cpu_count; i++)
		if (topology->cpus[i] == cpu)
			return i;
	return 0;
}
