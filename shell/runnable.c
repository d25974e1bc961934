#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "shell/runnable.h"
#include "system/topology.h"

void runnable_open(struct runnable *runnable)
{
	struct topology topology;

	topology_read(&topology);
	*runnable = (struct runnable){
		.fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
		.cpu_count = topology.cpu_count,
	};
}

/* The fourth of "0.20 0.18 0.12 2/90 11206" are those of now. */
bool runnable_all_run(const struct runnable *runnable)
{
	char text[128];
	ssize_t bytes = pread(runnable->fd, text, sizeof(text) - 1, 0);
	const char *field = text;

	text[MAX(bytes, 0)] = '\0';
	for (unsigned i = 0; i < 3 && field; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	return field && *field != '\0' &&
	       strtoul(field, NULL, 10) <= runnable->cpu_count;
}

void runnable_close(struct runnable *runnable)
{
	if (runnable->fd >= 0)
		close(runnable->fd);
	runnable->fd = -1;
}
