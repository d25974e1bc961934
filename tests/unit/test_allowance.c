/*
 * test_allowance.c - what the machine, control groups and resource limits leave
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/base.h"
#include "fake_root.h"
#include "skip.h"
#include "system/allowance.h"

static void allowance_memory_bytes__here(void **state)
{
	uint64_t bytes = allowance_memory_bytes();

	(void)state;
	assert_true(bytes > 0);
	/* A number of bytes, not of KiB nor of pages nor of nothing. */
	assert_true(bytes < UINT64_C(1) << 50);
}

/* What this process has mapped is taken of the limit. */
static void allowance_memory_bytes__address_space(void **state)
{
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	if (before.rlim_cur != RLIM_INFINITY)
		skip_because("the address space is limited already");
	limit = before;
	limit.rlim_cur = allowance_memory_bytes() / 2;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_true(allowance_memory_bytes() < limit.rlim_cur);
	/* A sanitizer has mapped far more than that. */
	limit.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	assert_int_equal(allowance_memory_bytes(), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
}

#define DATA_BYTES (64 * MIB)

/* What is mapped privately is taken of the limit of data: memory that is mapped
 * and not touched, too. */
static void allowance_memory_bytes__data(void **state)
{
	struct rlimit before, limit;
	struct allowance allowance;
	uint64_t left;
	void *data;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	if (before.rlim_cur != RLIM_INFINITY)
		skip_because("data is limited already");
	allowance_read(&allowance);
	if (allowance.memory_source != ALLOWANCE_MACHINE &&
	    allowance.memory_source != ALLOWANCE_CGROUP)
		skip_because("the address space is limited already");
	limit = before;
	limit.rlim_cur = allowance.memory_bytes / 2;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	allowance_read(&allowance);
	left = allowance.memory_bytes;
	data = mmap(NULL, DATA_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (left > DATA_BYTES) {
		assert_int_equal(allowance.memory_source, ALLOWANCE_DATA);
		assert_true(left < limit.rlim_cur);
		assert_true(data != MAP_FAILED);
		assert_in_range(left - allowance_memory_bytes(), DATA_BYTES,
				DATA_BYTES + MIB);
	}
	if (data != MAP_FAILED)
		munmap(data, DATA_BYTES);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
}

/* --- below another root ----------------------------------------------------
 */

#define MEMINFO                                                                \
	"MemTotal:        8000 kB\nMemFree:          100 kB\n"                 \
	"MemAvailable:    4000 kB\nBuffers:           10 kB\n"                 \
	"SwapTotal:       3000 kB\nSwapFree:         2000 kB\n"

static uint64_t available_bytes(void)
{
	struct allowance allowance;

	allowance_read(&allowance);
	return allowance.memory_bytes;
}

static enum allowance_source source(void)
{
	struct allowance allowance;

	allowance_read(&allowance);
	return allowance.memory_source;
}

/* Where /proc is hidden the kernel still tells what is free. */
static void available__nothing_known(void **state)
{
	struct sysinfo info;

	(void)state;
	assert_int_equal(sysinfo(&info), 0);
	assert_in_range(available_bytes(), 1,
			(uint64_t)info.totalram * info.mem_unit);
	put("sys/fs/cgroup/memory.max", "9000\n");
	put("sys/fs/cgroup/memory.current", "2000\n");
	assert_int_equal(available_bytes(), 7000);
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
	assert_int_equal(available_bytes(), 6000);
}

static void available__swap_of_the_machine(void **state)
{
	struct allowance allowance;

	(void)state;
	put("proc/meminfo", MEMINFO);
	allowance_read(&allowance);
	assert_int_equal(allowance.swap_bytes, 2000 * KIB);
	put("proc/self/cgroup", "0::/a\n");
	put("sys/fs/cgroup/a/memory.max", "1000000\n");
	put("sys/fs/cgroup/a/memory.current", "300000\n");
	allowance_read(&allowance);
	assert_int_equal(allowance.swap_bytes, 0);
}

static void available__no_cgroup(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	assert_int_equal(available_bytes(), 4000 * KIB);
}

static void available__v2_without_limit(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a\n");
	put("sys/fs/cgroup/a/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.current", "5000\n");
	assert_int_equal(available_bytes(), 4000 * KIB);
}

static void available__v2_limit(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
	put("sys/fs/cgroup/a/b/memory.current", "300000\n");
	assert_int_equal(available_bytes(), 700000);
}

/* The parent's is the tighter one. */
static void available__v2_limit_of_parent(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/memory.max", "900000\n");
	put("sys/fs/cgroup/a/memory.current", "800000\n");
	put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
	put("sys/fs/cgroup/a/b/memory.current", "300000\n");
	assert_int_equal(available_bytes(), 100000);
}

static void available__v2_cache_is_free(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a\n");
	put("sys/fs/cgroup/a/memory.max", "1000000\n");
	put("sys/fs/cgroup/a/memory.current", "900000\n");
	put("sys/fs/cgroup/a/memory.stat",
	    "anon 100000\nactive_file 400000\ninactive_file 200000\n");
	/* But for a part of the limit. */
	assert_int_equal(available_bytes(), 700000 - 1000000 / 32);
	put("sys/fs/cgroup/a/memory.stat",
	    "anon 100000\nactive_file 9000\ninactive_file 1000\n");
	/* Or for the half of a small cache. */
	assert_int_equal(available_bytes(), 105000);
}

static void available__v2_high(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a\n");
	put("sys/fs/cgroup/a/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.high", "800000\n");
	put("sys/fs/cgroup/a/memory.current", "300000\n");
	assert_int_equal(available_bytes(), 500000);
	put("sys/fs/cgroup/a/memory.max", "700000\n");
	assert_int_equal(available_bytes(), 400000);
	put("sys/fs/cgroup/a/memory.high", "max\n");
	put("sys/fs/cgroup/a/memory.max", "900000\n");
	assert_int_equal(available_bytes(), 600000);
}

/* The limit was lowered below what is in use. */
static void available__v2_over_limit(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/a\n");
	put("sys/fs/cgroup/a/memory.max", "1000\n");
	put("sys/fs/cgroup/a/memory.current", "2000\n");
	assert_int_equal(available_bytes(), 0);
}

/* In a container: the path is the host's, the mount is the container's. */
static void available__path_not_mounted(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup", "0::/docker/1234\n");
	put("sys/fs/cgroup/memory.max", "500000\n");
	put("sys/fs/cgroup/memory.current", "100000\n");
	assert_int_equal(available_bytes(), 400000);
}

static void available__v1(void **state)
{
	(void)state;
	put("proc/meminfo", MEMINFO);
	put("proc/self/cgroup",
	    "12:hugememory:/h\n11:memory2:/h\n4:cpuset,memory:/m\n0::/\n");
	put("sys/fs/cgroup/memory/h/memory.limit_in_bytes", "1\n");
	put("sys/fs/cgroup/memory/h/memory.usage_in_bytes", "1\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes",
	    "9223372036854771712\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000\n");
	put("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "600000\n");
	put("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "200000\n");
	put("sys/fs/cgroup/memory/m/memory.stat",
	    "cache 1\ninactive_file 7\ntotal_inactive_file 50000\n"
	    "total_active_file 50000\n");
	assert_int_equal(available_bytes(), 500000 - 600000 / 32);
	assert_int_equal(source(), ALLOWANCE_CGROUP);
}

static void available__malformed_lines(void **state)
{
	(void)state;
	put("proc/meminfo", "MemTotal: 3 kB\n");
	put("proc/self/cgroup", "\nx\n0:\n::\n1:memory\n");
	assert_int_equal(source(), ALLOWANCE_MACHINE);
	assert_true(available_bytes() > 0);
}

/* --- quotas ----------------------------------------------------------------
 */

static void quota__none(void **state)
{
	(void)state;
	assert_true(allowance_quota_cpus() == UINT_MAX);
	put("proc/self/cgroup", "0::/a\n3:cpu,cpuacct:/b\n");
	put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
	assert_true(allowance_quota_cpus() == UINT_MAX);
}

static void quota__v2(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
	assert_int_equal(allowance_quota_cpus(), 2);
	put("sys/fs/cgroup/a/cpu.max", "20000 100000\n");
	assert_int_equal(allowance_quota_cpus(), 1);
	put("sys/fs/cgroup/a/cpu.max", "800000 100000\n");
	assert_int_equal(allowance_quota_cpus(), 2);
	put("sys/fs/cgroup/a/b/cpu.max", "150000\n");
	assert_int_equal(allowance_quota_cpus(), 8);
}

static void quota__v1(void **state)
{
	(void)state;
	put("proc/self/cgroup", "3:cpu,cpuacct:/b\n2:cpuset:/c\n");
	put("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "300000\n");
	put("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
	assert_int_equal(allowance_quota_cpus(), 3);
	put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100001\n");
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(allowance_quota_cpus(), 2);
	put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "0\n");
	assert_int_equal(allowance_quota_cpus(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allowance_memory_bytes__here),
		cmocka_unit_test(allowance_memory_bytes__address_space),
		cmocka_unit_test(allowance_memory_bytes__data),
		UNDER_ROOT(available__nothing_known),
		UNDER_ROOT(available__swap_of_the_machine),
		UNDER_ROOT(available__no_cgroup),
		UNDER_ROOT(available__v2_without_limit),
		UNDER_ROOT(available__v2_limit),
		UNDER_ROOT(available__v2_limit_of_parent),
		UNDER_ROOT(available__v2_cache_is_free),
		UNDER_ROOT(available__v2_high),
		UNDER_ROOT(available__v2_over_limit),
		UNDER_ROOT(available__path_not_mounted),
		UNDER_ROOT(available__v1),
		UNDER_ROOT(available__malformed_lines),
		UNDER_ROOT(quota__none),
		UNDER_ROOT(quota__v2),
		UNDER_ROOT(quota__v1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
