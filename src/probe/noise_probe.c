/*
 * noise_probe.c - measures how much of each CPU others take from a thread that
 * needs it
 */
#include "probe/noise_probe.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/small_file.h"

/* --- what the host takes -------------------------------------------------- */

/* Calls take with each line of a file of this name, which may be missing. */
static void read_lines(const char *name,
		       void (*take)(struct host_counters *, const char *),
		       struct host_counters *counters)
{
	char path[PATH_MAX];
	char *line = NULL;
	size_t line_bytes = 0;
	FILE *file;

	file = small_file_path(path, "%s", name) ? fopen(path, "re") : NULL;
	if (!file)
		return;
	while (getline(&line, &line_bytes, file) > 0)
		take(counters, line);
	free(line);
	fclose(file);
}

static void take_stat(struct host_counters *counters, const char *line)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t ticks;
	unsigned cpu;

	/* user nice system idle iowait irq softirq steal; the first line, of
	 * all CPUs, has a space where others have a number. */
	if (strncmp(line, "cpu ", 4) != 0 &&
	    sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu,
		   &ticks) == 2 &&
	    cpu < TOPOLOGY_CPU_NUMBERS)
		counters->steal_ns[cpu] = ticks * tick_ns;
}

static void take_vmstat(struct host_counters *counters, const char *line)
{
	uint64_t pages;

	if (sscanf(line, "balloon_inflate %" SCNu64, &pages) == 1)
		counters->balloon_inflated = pages;
	else if (sscanf(line, "balloon_deflate %" SCNu64, &pages) == 1)
		counters->balloon_deflated = pages;
}

static void take_meminfo(struct host_counters *counters, const char *line)
{
	uint64_t kib;

	if (sscanf(line, "MemTotal: %" SCNu64 " kB", &kib) == 1)
		counters->memory_bytes = kib * KIB;
}

void host_counters_read(struct host_counters *counters)
{
	for (unsigned cpu = 0; cpu < TOPOLOGY_CPU_NUMBERS; cpu++)
		counters->steal_ns[cpu] = HOST_COUNTERS_UNKNOWN;
	counters->balloon_inflated = HOST_COUNTERS_UNKNOWN;
	counters->balloon_deflated = HOST_COUNTERS_UNKNOWN;
	counters->memory_bytes = HOST_COUNTERS_UNKNOWN;
	read_lines("/proc/stat", take_stat, counters);
	read_lines("/proc/vmstat", take_vmstat, counters);
	read_lines("/proc/meminfo", take_meminfo, counters);
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

/* --- gaps ----------------------------------------------------------------- */

struct watcher {
	const struct noise_probe *probe;
	pthread_barrier_t *barrier;
	pthread_t thread;
	uint16_t number; /* of the CPU */
	bool was_elsewhere;
	struct noise_cpu *cpu;
};

static void add_gap(struct noise_cpu *cpu, uint64_t gap_ns)
{
	uint64_t limit_ns = NOISE_PROBE_FIRST_BIN_NS;
	unsigned bin = 0;

	while (bin < NOISE_PROBE_BINS - 1 && gap_ns >= limit_ns) {
		limit_ns *= 10;
		bin++;
	}
	cpu->histogram[bin]++;
	cpu->count++;
	cpu->lost_ns += gap_ns;
	cpu->longest_ns = MAX(cpu->longest_ns, gap_ns);
}

void noise_probe_watch(const struct noise_probe *probe,
		       uint64_t (*now_ns)(void), struct noise_cpu *cpu)
{
	uint64_t begin_ns, before_ns, at_ns;

	*cpu = (struct noise_cpu){ 0 };
	begin_ns = before_ns = now_ns();
	do {
		at_ns = now_ns();
		cpu->readings++;
		if (at_ns - before_ns > probe->threshold_ns)
			add_gap(cpu, at_ns - before_ns);
		before_ns = at_ns;
	} while (at_ns - begin_ns < probe->time_ns);
	cpu->watched_ns = at_ns - begin_ns;
}

static bool is_elsewhere(const struct watcher *watcher)
{
	int cpu = sched_getcpu();

	/* Not known is not elsewhere. */
	return cpu >= 0 && cpu != watcher->number;
}

static void *watcher_main(void *argument)
{
	struct watcher *watcher = argument;

	topology_pin_self(watcher->number);
	pthread_barrier_wait(watcher->barrier);
	watcher->was_elsewhere = is_elsewhere(watcher);
	noise_probe_watch(watcher->probe, clock_now_ns, watcher->cpu);
	watcher->was_elsewhere |= is_elsewhere(watcher);
	return NULL;
}

static int start_watchers(struct watcher *watchers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int error = pthread_create(&watchers[i].thread, NULL,
					   watcher_main, &watchers[i]);

		if (error)
			return -error;
	}
	return 0;
}

int noise_probe_run(const struct noise_probe *probe,
		    struct noise_figures *figures, struct failure *failure)
{
	static struct watcher watchers[TOPOLOGY_CPUS_MAX];
	static pthread_barrier_t barrier;
	const struct topology *topology = &figures->topology;
	int error;

	topology_read(&figures->topology);
	for (unsigned i = 0; i < topology->cpu_count; i++)
		watchers[i] = (struct watcher){
			.probe = probe,
			.barrier = &barrier,
			.number = topology->cpus[i],
			.cpu = &figures->cpus[i],
		};
	host_counters_read(&figures->before);
	pthread_barrier_init(&barrier, NULL, topology->cpu_count);
	error = start_watchers(watchers, topology->cpu_count);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "%u threads", topology->cpu_count);
	for (unsigned i = 0; i < topology->cpu_count; i++)
		pthread_join(watchers[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
	/* It may not bind threads, or a CPU has gone offline. */
	for (unsigned i = 0; i < topology->cpu_count; i++)
		if (watchers[i].was_elsewhere)
			return failure_set(
				failure, EXIT_RESOURCES, "noise", 0,
				"the thread that was to watch CPU %u "
				"ran on another",
				topology->cpus[i]);
	for (unsigned i = 0; i < topology->cpu_count; i++)
		figures->frequency_khz[i] =
			host_counters_frequency_khz(topology->cpus[i]);
	host_counters_read(&figures->after);
	return 0;
}
