/*
 * host_counters.c - reads what the host of a virtual machine takes from it, as
 * far as the kernel tells, and the frequencies of CPUs
 */
#include "probe/host_counters.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "system/small_file.h"

/* A line of any of the files: no word of one begins a line of another. */
static void take_line(struct host_counters *counters, const char *line)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t number;
	unsigned cpu;

	/* user nice system idle iowait irq softirq steal; the first line, of
	 * all CPUs, has a space where others have a number. */
	if (strncmp(line, "cpu ", 4) != 0 &&
	    sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu,
		   &number) == 2 &&
	    cpu < TOPOLOGY_CPU_NUMBERS)
		counters->steal_ns[cpu] = number * tick_ns;
	else if (sscanf(line, "balloon_inflate %" SCNu64, &number) == 1)
		counters->balloon_inflated = number;
	else if (sscanf(line, "balloon_deflate %" SCNu64, &number) == 1)
		counters->balloon_deflated = number;
	else if (sscanf(line, "MemTotal: %" SCNu64 " kB", &number) == 1)
		counters->memory_bytes = number * KIB;
}

/* The file may be missing. */
static void read_lines(const char *name, struct host_counters *counters)
{
	char path[PATH_MAX];
	char *line = NULL;
	size_t line_bytes = 0;
	FILE *file;

	file = small_file_path(path, "%s", name) ? fopen(path, "re") : NULL;
	if (!file)
		return;
	while (getline(&line, &line_bytes, file) > 0)
		take_line(counters, line);
	free(line);
	fclose(file);
}

void host_counters_read(struct host_counters *counters)
{
	for (unsigned cpu = 0; cpu < TOPOLOGY_CPU_NUMBERS; cpu++)
		counters->steal_ns[cpu] = HOST_COUNTERS_UNKNOWN;
	counters->balloon_inflated = HOST_COUNTERS_UNKNOWN;
	counters->balloon_deflated = HOST_COUNTERS_UNKNOWN;
	counters->memory_bytes = HOST_COUNTERS_UNKNOWN;
	read_lines("/proc/stat", counters);
	read_lines("/proc/vmstat", counters);
	read_lines("/proc/meminfo", counters);
}

uint64_t host_counters_frequency_khz(unsigned cpu)
{
	char text[32];
	uint64_t khz;

	if (!small_file_read(
		    text, sizeof(text),
		    "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
		    cpu) ||
	    sscanf(text, "%" SCNu64, &khz) != 1)
		return HOST_COUNTERS_UNKNOWN;
	return khz;
}
