#include "programs/blinksort/numa_options.h"

#include <string.h>

#include "system/numa.h"

int numa_options_apply(const char *value, struct sorter_config *config,
		       struct failure *failure)
{
	struct topology topology;
	uint64_t nodes;
	int error;

	if (!value || strcmp(value, "auto") == 0)
		return 0;
	if (strcmp(value, "off") == 0) {
		config->ignores_nodes = true;
		return 0;
	}
	topology_read(&topology);
	topology_read_nodes(&topology);
	error = numa_parse(value, &topology, &nodes, failure);
	return error ? error : numa_confine(nodes, &topology, failure);
}
