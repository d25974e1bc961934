/*
 * idle_cpus.c - whether this machine has a CPU for each process that wants
 * one
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "shell/idle_cpus.h"
#include "system/topology.h"

void idle_cpus_open(struct idle_cpus *idle_cpus)
{
	struct topology topology;

	topology_read(&topology);
	*idle_cpus = (struct idle_cpus){
		.fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
		.cpu_count = topology.cpu_count,
	};
}

/* The fourth of "0.20 0.18 0.12 2/90 11206" are those of now. */
bool idle_cpus_available(const struct idle_cpus *idle_cpus)
{
	char text[128];
	ssize_t bytes = pread(idle_cpus->fd, text, sizeof(text) - 1, 0);
	const char *field = text;

	text[MAX(bytes, 0)] = '\0';
	for (unsigned i = 0; i < 3 && field; i++) {
		field = strchr(field, ' ');
		field = field ? field + 1 : NULL;
	}
	return field && *field != '\0' &&
	       strtoul(field, NULL, 10) <= idle_cpus->cpu_count;
}

void idle_cpus_close(struct idle_cpus *idle_cpus)
{
	if (idle_cpus->fd >= 0)
		close(idle_cpus->fd);
	idle_cpus->fd = -1;
}
