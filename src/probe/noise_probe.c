/*
 * noise_probe.c - measures how much of each CPU others take from a thread that
 * needs it
 */
#include "probe/noise_probe.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/clock.h"

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

int noise_probe_run(const struct noise_probe *probe,
		    struct noise_figures *figures, struct failure *failure)
{
	static struct watcher watchers[TOPOLOGY_CPUS_MAX];
	static pthread_barrier_t barrier;
	const struct topology *topology = &figures->topology;
	int error = 0;

	topology_read(&figures->topology);
	host_counters_read(&figures->before);
	pthread_barrier_init(&barrier, NULL, topology->cpu_count);
	for (unsigned i = 0; i < topology->cpu_count && error == 0; i++) {
		watchers[i] = (struct watcher){
			.probe = probe,
			.barrier = &barrier,
			.number = topology->cpus[i],
			.cpu = &figures->cpus[i],
		};
		error = pthread_create(&watchers[i].thread, NULL, watcher_main,
				       &watchers[i]);
	}
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, error,
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
