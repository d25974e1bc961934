/*
 * allowance.c - how much of the machine this process may take, and what says
 * so
 */
#include "system/allowance.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/base.h"
#include "system/small_file.h"

/* The number behind the word that begins a line of text. */
static bool find_number(const char *text, const char *word, uint64_t *number)
{
	size_t word_length = strlen(word);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, word, word_length) == 0) {
			*number = strtoull(text + word_length, NULL, 10);
			return true;
		}
	}
	return false;
}

/* --- control groups --------------------------------------------------------
 */

#define TEXT_BYTES 4096

static bool read_in(const char *folder, const char *name, char text[TEXT_BYTES])
{
	return small_file_read(text, TEXT_BYTES, "%s/%s", folder, name);
}

/* A file with one number; UINT64_MAX: there is none, or it is "max". */
static uint64_t number_in(const char *folder, const char *name)
{
	char text[TEXT_BYTES];

	if (!read_in(folder, name, text) || text[0] < '0' || text[0] > '9')
		return UINT64_MAX;
	return strtoull(text, NULL, 10);
}

/* Cached files count as free but for this part of the limit, or for half of
 * them if that is less: programs that run are among them, and what is dirty
 * must be written before it can go.  MemAvailable does the same by the kernel's
 * low watermark. */
#define CACHE_RESERVE_PART 32

static uint64_t free_cache_bytes(const char *folder, const char *prefix,
				 uint64_t limit)
{
	static const char *const lists[] = { "inactive_file ", "active_file " };
	char text[TEXT_BYTES], word[64];
	uint64_t cache = 0;

	if (!read_in(folder, "memory.stat", text))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
		uint64_t bytes = 0;

		snprintf(word, sizeof(word), "%s%s", prefix, lists[i]);
		find_number(text, word, &bytes);
		cache += bytes;
	}
	return cache - MIN(cache / 2, limit / CACHE_RESERVE_PART);
}

/* v1 says a number near 2^63 for none. */
#define NO_LIMIT ((uint64_t)1 << 62)

/* Returns what this one group leaves; UINT64_MAX: it sets no limit. */
static uint64_t left_bytes(const char *folder, uint64_t limit,
			   const char *usage_name, const char *prefix)
{
	uint64_t usage;

	if (limit >= NO_LIMIT)
		return UINT64_MAX;
	usage = number_in(folder, usage_name);
	if (usage == UINT64_MAX)
		return UINT64_MAX;
	usage -= MIN(free_cache_bytes(folder, prefix, limit), usage);
	return limit - MIN(usage, limit);
}

/* memory.high counts, too: above it a process is not ended, but slowed down
 * until it hardly runs. */
static uint64_t left_by_v2(const char *folder)
{
	uint64_t most = number_in(folder, "memory.max");
	uint64_t high = number_in(folder, "memory.high");

	return left_bytes(folder, MIN(most, high), "memory.current", "");
}

static uint64_t left_by_v1(const char *folder)
{
	return left_bytes(folder, number_in(folder, "memory.limit_in_bytes"),
			  "memory.usage_in_bytes", "total_");
}

static uint64_t cpus_of(uint64_t quota, uint64_t period)
{
	if (quota == UINT64_MAX || period == UINT64_MAX || period == 0)
		return UINT64_MAX;
	return MAX(1, DIV_ROUND_UP(quota, period));
}

/* "QUOTA PERIOD", both in microseconds, or "max PERIOD" */
static uint64_t cpus_by_v2(const char *folder)
{
	char text[TEXT_BYTES], *rest;
	uint64_t quota;

	if (!read_in(folder, "cpu.max", text) || text[0] < '0' || text[0] > '9')
		return UINT64_MAX;
	quota = strtoull(text, &rest, 10);
	return cpus_of(quota, strtoull(rest, NULL, 10));
}

/* A quota of -1 is none. */
static uint64_t cpus_by_v1(const char *folder)
{
	return cpus_of(number_in(folder, "cpu.cfs_quota_us"),
		       number_in(folder, "cpu.cfs_period_us"));
}

typedef uint64_t limit_fn(const char *folder);

/* A cgroup controller, and how to read its limit in either version. */
struct controller {
	const char *name;
	const char *v1_mount;
	limit_fn *by_v2, *by_v1;
};

static const struct controller memory_controller = {
	.name = "memory",
	.v1_mount = "/sys/fs/cgroup/memory",
	.by_v2 = left_by_v2,
	.by_v1 = left_by_v1,
};

static const struct controller cpu_controller = {
	.name = "cpu",
	.v1_mount = "/sys/fs/cgroup/cpu",
	.by_v2 = cpus_by_v2,
	.by_v1 = cpus_by_v1,
};

/* The least that the group at path and those above it leave.  In a container
 * the path may not exist, being as seen from outside: the mount itself is then
 * the container's own. */
static uint64_t least_on_path(const char *mount, const char *path,
			      limit_fn *limit)
{
	char folder[PATH_MAX];
	int length = snprintf(folder, sizeof(folder), "%s%s", mount, path);
	uint64_t least = UINT64_MAX;

	if (length >= (int)sizeof(folder))
		return least;
	for (;;) {
		uint64_t left = limit(folder);
		char *slash = strrchr(folder + strlen(mount), '/');

		least = MIN(least, left);
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* Each line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH, "0::PATH" for v2.
 * Where /proc is hidden, the mounts are taken for the container's own. */
static uint64_t least_of_groups(const struct controller *controller)
{
	char text[TEXT_BYTES], *lines = text, *path;
	uint64_t least = UINT64_MAX;

	if (!small_file_read(text, sizeof(text), "/proc/self/cgroup"))
		snprintf(text, sizeof(text), "0::\n1:%s:", controller->name);
	while ((path = strsep(&lines, "\n"))) {
		bool is_v2 = strncmp(path, "0::", 3) == 0;
		uint64_t left = UINT64_MAX;
		char *names, *name;

		strsep(&path, ":");
		names = strsep(&path, ":");
		if (path && is_v2)
			left = least_on_path("/sys/fs/cgroup", path,
					     controller->by_v2);
		while (path && !is_v2 && (name = strsep(&names, ",")))
			if (strcmp(name, controller->name) == 0)
				left = least_on_path(controller->v1_mount, path,
						     controller->by_v1);
		least = MIN(least, left);
	}
	return least;
}

/* --- the machine -----------------------------------------------------------
 */

/* Fill in what sysinfo(2) tells, without cached file data, because /proc is
 * hidden. */
static void read_sysinfo(struct allowance *allowance)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return;
	allowance->memory_bytes =
		((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
	allowance->swap_bytes = (uint64_t)info.freeswap * info.mem_unit;
}

static void read_machine(struct allowance *allowance)
{
	char text[TEXT_BYTES];
	uint64_t available_kib, swap_kib = 0;

	allowance->memory_bytes = UINT64_MAX;
	allowance->swap_bytes = 0;
	if (!small_file_read(text, sizeof(text), "/proc/meminfo") ||
	    !find_number(text, "MemAvailable:", &available_kib)) {
		read_sysinfo(allowance);
		return;
	}
	find_number(text, "SwapFree:", &swap_kib);
	allowance->memory_bytes = available_kib * KIB;
	allowance->swap_bytes = swap_kib * KIB;
}

/* --- resource limits -------------------------------------------------------
 */

static uint64_t left_of_limit(int resource, uint64_t taken_bytes)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur - MIN(limit.rlim_cur, taken_bytes);
}

static void lower(struct allowance *allowance, uint64_t bytes,
		  enum allowance_source source)
{
	if (bytes >= allowance->memory_bytes)
		return;
	allowance->memory_bytes = bytes;
	allowance->memory_source = source;
}

/* Numbers of pages in /proc/self/statm: of all mappings, of what is resident,
 * and what of that is of files; and of what RLIMIT_DATA counts, with the stack.
 */
enum { STATM_ALL, STATM_RESIDENT, STATM_SHARED, STATM_DATA = 5, STATM_COUNT };

static void read_statm(uint64_t bytes[STATM_COUNT])
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[TEXT_BYTES], *next = text;

	memset(bytes, 0, STATM_COUNT * sizeof(*bytes));
	if (small_file_read(text, sizeof(text), "/proc/self/statm"))
		for (unsigned i = 0; i < STATM_COUNT; i++)
			bytes[i] = strtoull(next, &next, 10) * page_bytes;
}

static void lower_to_limits(struct allowance *allowance)
{
	uint64_t bytes[STATM_COUNT];

	read_statm(bytes);
	lower(allowance, left_of_limit(RLIMIT_AS, bytes[STATM_ALL]),
	      ALLOWANCE_ADDRESS_SPACE);
	lower(allowance, left_of_limit(RLIMIT_DATA, bytes[STATM_DATA]),
	      ALLOWANCE_DATA);
}

uint64_t allowance_taken_bytes(void)
{
	uint64_t bytes[STATM_COUNT];

	read_statm(bytes);
	return bytes[STATM_RESIDENT] -
	       MIN(bytes[STATM_RESIDENT], bytes[STATM_SHARED]);
}

/* --- all of them -----------------------------------------------------------
 */

void allowance_read(struct allowance *allowance)
{
	allowance->memory_source = ALLOWANCE_MACHINE;
	read_machine(allowance);
	lower(allowance, least_of_groups(&memory_controller), ALLOWANCE_CGROUP);
	if (allowance->memory_source != ALLOWANCE_MACHINE)
		allowance->swap_bytes = 0;
	allowance->file_bytes = allowance->memory_bytes;
	lower_to_limits(allowance);
}

uint64_t allowance_memory_bytes(void)
{
	struct allowance allowance;

	allowance_read(&allowance);
	return allowance.memory_bytes;
}

unsigned allowance_quota_cpus(void)
{
	return (unsigned)MIN(least_of_groups(&cpu_controller), UINT_MAX);
}

const char *const allowance_source_names[] = { "machine", "cgroup", "RLIMIT_AS",
					       "RLIMIT_DATA" };
