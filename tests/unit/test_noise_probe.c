/*
 * test_noise_probe.c - gaps in readings of a clock, and what a host takes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/base.h"
#include "fake_root.h"
#include "probe/noise_probe.h"

/* A clock that says what stands in an array. */
static const uint64_t *clock_ns;

static uint64_t scripted_ns(void)
{
	return *clock_ns++;
}

static struct noise_cpu watch(uint64_t time_ns, uint64_t threshold_ns,
			      const uint64_t *readings_ns)
{
	const struct noise_probe probe = { time_ns, threshold_ns };
	struct noise_cpu cpu;

	clock_ns = readings_ns;
	noise_probe_watch(&probe, scripted_ns, &cpu);
	return cpu;
}

static void watch__of_a_still_cpu_finds_no_gap(void **state)
{
	static const uint64_t readings_ns[] = { 1000, 1020, 1040,
						1060, 1100, 9999 };
	struct noise_cpu cpu = watch(100, 40, readings_ns);

	(void)state;
	assert_int_equal(cpu.watched_ns, 100);
	assert_int_equal(cpu.readings, 4);
	assert_int_equal(cpu.count, 0);
	assert_int_equal(cpu.lost_ns, 0);
	assert_int_equal(cpu.longest_ns, 0);
	for (unsigned i = 0; i < NOISE_PROBE_BINS; i++)
		assert_int_equal(cpu.histogram[i], 0);
}

static void watch__counts_gaps_with_their_whole_length(void **state)
{
	/* 41 of 40 is a gap; so is the last, which ends after the time. */
	static const uint64_t readings_ns[] = {
		0, 20, 61, 81, 121, 141, 500, 0
	};
	struct noise_cpu cpu = watch(200, 40, readings_ns);

	(void)state;
	assert_int_equal(cpu.watched_ns, 500);
	assert_int_equal(cpu.readings, 6);
	assert_int_equal(cpu.count, 2);
	assert_int_equal(cpu.lost_ns, 41 + 359);
	assert_int_equal(cpu.longest_ns, 359);
	assert_int_equal(cpu.histogram[0], 2);
}

static void watch__sorts_gaps_by_length(void **state)
{
	static const uint64_t gaps_ns[] = { 9999,    10000,    99999,
					    100000,  999999,   1000000,
					    9999999, 10000000, 5000000000 };
	static const uint64_t wanted[NOISE_PROBE_BINS] = { 1, 2, 2, 2, 2 };
	uint64_t readings_ns[ARRAY_LEN(gaps_ns) + 1] = { 7 }, lost_ns = 0;
	struct noise_cpu cpu;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(gaps_ns); i++) {
		readings_ns[i + 1] = readings_ns[i] + gaps_ns[i];
		lost_ns += gaps_ns[i];
	}
	cpu = watch(lost_ns, 5000, readings_ns);
	assert_memory_equal(cpu.histogram, wanted, sizeof(wanted));
	assert_int_equal(cpu.count, ARRAY_LEN(gaps_ns));
	assert_int_equal(cpu.lost_ns, lost_ns);
	assert_int_equal(cpu.lost_ns, cpu.watched_ns);
	assert_int_equal(cpu.longest_ns, 5000000000);
}

/* No time is asserted: only that figures agree with each other. */
static void run__watches_every_cpu(void **state)
{
	const struct noise_probe probe = { 2000000, 5000 };
	static struct noise_figures figures;
	struct topology topology;
	struct failure failure;

	(void)state;
	topology_read(&topology);
	assert_int_equal(noise_probe_run(&probe, &figures, &failure), 0);
	assert_int_equal(figures.topology.cpu_count, topology.cpu_count);
	for (unsigned i = 0; i < topology.cpu_count; i++) {
		const struct noise_cpu *cpu = &figures.cpus[i];
		uint64_t gaps = 0;

		assert_int_equal(figures.topology.cpus[i], topology.cpus[i]);
		assert_true(cpu->watched_ns >= probe.time_ns);
		assert_true(cpu->readings > 0);
		assert_true(cpu->lost_ns <= cpu->watched_ns);
		assert_true(cpu->longest_ns <= cpu->lost_ns);
		for (unsigned j = 0; j < NOISE_PROBE_BINS; j++)
			gaps += cpu->histogram[j];
		assert_int_equal(gaps, cpu->count);
	}
}

/* --- a made-up proc/ and sys/ ----------------------------------------------
 */

static void counters__are_what_the_kernel_tells(void **state)
{
	static struct host_counters counters;
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	(void)state;
	put("proc/stat", "cpu  1 2 3 4 5 6 7 800 9 10\n"
			 "cpu0 1 2 3 4 5 6 7 8 9 10\n"
			 "cpu3 1 2 3 4 5 6 7 80 9 10\n"
			 "cpu9999 1 2 3 4 5 6 7 81 9 10\n"
			 "intr 77 1 2 3\n");
	put("proc/vmstat", "nr_balloon_pages 5\n"
			   "balloon_inflate 300\n"
			   "balloon_deflate 20\n"
			   "balloon_migrate 7\n");
	put("proc/meminfo", "MemTotal:     4096 kB\n"
			    "MemFree:      1 kB\n");
	put("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq",
	    "2450000\n");
	host_counters_read(&counters);
	assert_int_equal(counters.steal_ns[0], 8 * tick_ns);
	assert_int_equal(counters.steal_ns[3], 80 * tick_ns);
	assert_int_equal(counters.steal_ns[1], HOST_COUNTERS_UNKNOWN);
	assert_int_equal(counters.balloon_inflated, 300);
	assert_int_equal(counters.balloon_deflated, 20);
	assert_int_equal(counters.memory_bytes, 4 << 20);
	assert_int_equal(host_counters_frequency_khz(3), 2450000);
	assert_int_equal(host_counters_frequency_khz(0), HOST_COUNTERS_UNKNOWN);
}

static void counters__that_are_not_there_are_unknown(void **state)
{
	static struct host_counters counters;

	(void)state;
	host_counters_read(&counters);
	assert_int_equal(counters.steal_ns[0], HOST_COUNTERS_UNKNOWN);
	assert_int_equal(counters.memory_bytes, HOST_COUNTERS_UNKNOWN);
	/* A kernel without the balloon, and a line cut short */
	put("proc/vmstat", "nr_free_pages 5\n");
	put("proc/stat", "cpu0 1 2 3\n");
	put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
	    "<unsupported>\n");
	host_counters_read(&counters);
	assert_int_equal(counters.steal_ns[0], HOST_COUNTERS_UNKNOWN);
	assert_int_equal(counters.balloon_inflated, HOST_COUNTERS_UNKNOWN);
	assert_int_equal(counters.balloon_deflated, HOST_COUNTERS_UNKNOWN);
	assert_int_equal(host_counters_frequency_khz(0), HOST_COUNTERS_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watch__of_a_still_cpu_finds_no_gap),
		cmocka_unit_test(watch__counts_gaps_with_their_whole_length),
		cmocka_unit_test(watch__sorts_gaps_by_length),
		cmocka_unit_test(run__watches_every_cpu),
		UNDER_ROOT(counters__are_what_the_kernel_tells),
		UNDER_ROOT(counters__that_are_not_there_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
