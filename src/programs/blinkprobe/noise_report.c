#include "programs/blinkprobe/noise_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static void print_number(const char *key, bool is_known, int64_t number)
{
	if (is_known)
		printf(", \"%s\": %" PRId64, key, number);
	else
		printf(", \"%s\": null", key);
}

/* What a counter has counted between two readings of it. */
static void print_difference(const char *key, uint64_t before, uint64_t after)
{
	print_number(key,
		     before != HOST_COUNTERS_UNKNOWN &&
			     after != HOST_COUNTERS_UNKNOWN,
		     (int64_t)(after - before));
}

static void print_cpu(const struct noise_figures *figures, unsigned i)
{
	const struct noise_cpu *cpu = &figures->cpus[i];
	uint16_t number = figures->topology.cpus[i];

	printf("%s{\"cpu\": %u, \"watched_ns\": %" PRIu64
	       ", \"readings\": %" PRIu64 ", \"lost_ns\": %" PRIu64
	       ", \"lost_percent\": %.4f, \"count\": %" PRIu64
	       ", \"longest_ns\": %" PRIu64,
	       i == 0 ? "" : ", ", number, cpu->watched_ns, cpu->readings,
	       cpu->lost_ns,
	       100 * (double)cpu->lost_ns / (double)cpu->watched_ns, cpu->count,
	       cpu->longest_ns);
	printf(", \"histogram\": [");
	for (unsigned j = 0; j < NOISE_PROBE_BINS; j++)
		printf("%s%" PRIu64, j == 0 ? "" : ", ", cpu->histogram[j]);
	printf("]");
	print_difference("steal_ns", figures->before.steal_ns[number],
			 figures->after.steal_ns[number]);
	print_number("frequency_khz",
		     figures->frequency_khz[i] != HOST_COUNTERS_UNKNOWN,
		     (int64_t)figures->frequency_khz[i]);
	printf("}");
}

void noise_report_print(const struct noise_probe *probe,
			const struct noise_figures *figures)
{
	uint64_t below_ns = NOISE_PROBE_FIRST_BIN_NS;

	printf(", \"time_ns\": %" PRIu64 ", \"threshold_ns\": %" PRIu64
	       ", \"histogram_below_ns\": [",
	       probe->time_ns, probe->threshold_ns);
	for (unsigned i = 0; i < NOISE_PROBE_BINS - 1; i++) {
		printf("%" PRIu64 ", ", below_ns);
		below_ns *= 10;
	}
	printf("null], \"cpus\": [");
	for (unsigned i = 0; i < figures->topology.cpu_count; i++)
		print_cpu(figures, i);
	printf("]");
	print_difference("balloon_inflated_pages",
			 figures->before.balloon_inflated,
			 figures->after.balloon_inflated);
	print_difference("balloon_deflated_pages",
			 figures->before.balloon_deflated,
			 figures->after.balloon_deflated);
	print_difference("memory_change_bytes", figures->before.memory_bytes,
			 figures->after.memory_bytes);
}
