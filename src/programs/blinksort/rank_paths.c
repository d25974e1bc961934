#include "programs/blinksort/rank_paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/template.h"

#define HOST_BYTES_MAX 256

int rank_paths_fill(const struct rank *rank, const char **paths, unsigned count,
		    struct failure *failure)
{
	char host[HOST_BYTES_MAX + 1] = { 0 };
	const struct template_values values = {
		.rank = rank->rank,
		.node_count = rank->node_count,
		.host = host,
	};

	gethostname(host, HOST_BYTES_MAX);
	for (unsigned i = 0; i < count; i++) {
		size_t bytes;
		char *path;

		if (!strchr(paths[i], '%'))
			continue;
		bytes = template_fill(NULL, 0, paths[i], &values) + 1;
		path = malloc(bytes);
		if (!path)
			return failure_no_memory(failure);
		template_fill(path, bytes, paths[i], &values);
		paths[i] = path;
	}
	return 0;
}
