#include "programs/blinkprobe/memory_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static void print_node(const char *key, int node)
{
	if (node < 0)
		printf(", \"%s\": null", key);
	else
		printf(", \"%s\": %d", key, node);
}

/* Where the areas lie; null: nobody has asked, or the kernel does not tell. */
static void print_places(const uint64_t *bytes_on)
{
	bool any = false;

	fputs(", \"numa\": ", stdout);
	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++) {
		if (bytes_on[i] == 0)
			continue;
		printf("%s{\"node\": %u, \"memory_bytes\": %" PRIu64 "}",
		       any ? ", " : "[", i, bytes_on[i]);
		any = true;
	}
	fputs(any ? "]" : "null", stdout);
}

void memory_report_print(const struct memory_probe *probe,
			 const struct memory_figures *figures)
{
	printf(", \"area_bytes\": %" PRIu64 ", \"block_bytes\": %" PRIu64
	       ", \"threads\": %u, \"thread_bytes\": %" PRIu64
	       ", \"thread_accesses\": %" PRIu64,
	       probe->area_bytes, probe->block_bytes, probe->threads,
	       memory_probe_moved_bytes(probe), memory_probe_accesses(probe));
	print_node("cpu_node", probe->cpu_node);
	print_node("memory_node", probe->memory_node);
	print_places(figures->bytes_on);
}
