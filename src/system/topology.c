#include "system/topology.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "system/small_file.h"

/* The kernel refuses to fill a set with fewer bits than it has CPUs. */
union cpu_mask {
	cpu_set_t set;
	unsigned char bytes[TOPOLOGY_CPU_NUMBERS / 8];
};

void topology_read(struct topology *topology)
{
	union cpu_mask mask = { .bytes = { 0 } };

	topology->cpu_count = 0;
	if (sched_getaffinity(0, sizeof(mask), &mask.set) == 0) {
		for (unsigned cpu = 0; cpu < TOPOLOGY_CPU_NUMBERS; cpu++) {
			if (topology->cpu_count == TOPOLOGY_CPUS_MAX)
				break;
			if (CPU_ISSET_S(cpu, sizeof(mask), &mask.set))
				topology->cpus[topology->cpu_count++] =
					(uint16_t)cpu;
		}
	}
	/* Not known: one thread, and no harm if it can't be bound. */
	if (topology->cpu_count == 0) {
		topology->cpus[0] = 0;
		topology->cpu_count = 1;
	}
	topology->node_count = 1;
	topology->nodes[0] = 0;
	memset(topology->node_of, 0, sizeof(topology->node_of));
}

void topology_pin_self(uint16_t cpu)
{
	union cpu_mask mask = { .bytes = { 0 } };

	/* Of a number too large it sets none, and the kernel refuses that. */
	CPU_SET_S(cpu, sizeof(mask), &mask.set);
	(void)sched_setaffinity(0, sizeof(mask), &mask.set);
}

void topology_pin_thread(pthread_t thread, uint16_t cpu)
{
	union cpu_mask mask = { .bytes = { 0 } };

	CPU_SET_S(cpu, sizeof(mask), &mask.set);
	(void)pthread_setaffinity_np(thread, sizeof(mask), &mask.set);
}

unsigned topology_place_of_self(const struct topology *topology)
{
	int cpu = sched_getcpu();

	for (unsigned i = 0; i < topology->cpu_count; i++)
		if (topology->cpus[i] == cpu)
			return i;
	return 0;
}

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

/* How one kind of cgroup calls its files. */
struct cgroup_kind {
	const char *mount; /* below the root */
	const char *limit;
	const char *usage;
	const char *idle_cache; /* in memory.stat */
};

static const struct cgroup_kind cgroup_v2 = {
	.mount = "/sys/fs/cgroup",
	.limit = "memory.max",
	.usage = "memory.current",
	.idle_cache = "inactive_file ",
};

static const struct cgroup_kind cgroup_v1 = {
	.mount = "/sys/fs/cgroup/memory",
	.limit = "memory.limit_in_bytes",
	.usage = "memory.usage_in_bytes",
	.idle_cache = "total_inactive_file ",
};

static bool read_cgroup_file(const char *folder, const char *name, char *text,
			     size_t text_bytes)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/%s", folder, name);

	return length < (int)sizeof(path) &&
	       small_file_read(path, text, text_bytes);
}

/* What this one cgroup leaves; UINT64_MAX: it sets no limit. */
static uint64_t cgroup_left_bytes(const struct cgroup_kind *kind,
				  const char *folder)
{
	char text[4096];
	uint64_t limit, usage, idle_cache = 0;

	/* v2 says "max" for none, v1 a number near 2^63. */
	if (!read_cgroup_file(folder, kind->limit, text, sizeof(text)) ||
	    !find_number(text, "", &limit) || text[0] == 'm')
		return UINT64_MAX;
	if (!read_cgroup_file(folder, kind->usage, text, sizeof(text)) ||
	    !find_number(text, "", &usage))
		return UINT64_MAX;
	if (read_cgroup_file(folder, "memory.stat", text, sizeof(text)))
		find_number(text, kind->idle_cache, &idle_cache);
	usage -= MIN(idle_cache, usage);
	return limit - MIN(usage, limit);
}

/* The least that the cgroup at path and those above it leave.  In a container
 * the path may not exist, being as seen from outside: the mount itself is then
 * the container's own. */
static uint64_t cgroup_path_left_bytes(const struct cgroup_kind *kind,
				       const char *root, const char *path)
{
	char folder[PATH_MAX];
	uint64_t least = UINT64_MAX;
	size_t mount_length = strlen(root) + strlen(kind->mount);
	int length = snprintf(folder, sizeof(folder), "%s%s%s", root,
			      kind->mount, path);

	if (length >= (int)sizeof(folder))
		return least;
	for (;;) {
		uint64_t left = cgroup_left_bytes(kind, folder);
		char *slash = strrchr(folder + mount_length, '/');

		least = MIN(least, left);
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* v1's "4:cpuset,memory:/path": is memory among the controllers? */
static bool names_memory(const char *controllers)
{
	size_t length = strcspn(controllers, ":");

	while (length > 0) {
		size_t word = strcspn(controllers, ",:");

		if (word == 6 && memcmp(controllers, "memory", 6) == 0)
			return true;
		word += controllers[word] == ',';
		word = MIN(word, length);
		controllers += word;
		length -= word;
	}
	return false;
}

/* Each line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH. */
static uint64_t cgroups_left_bytes(const char *root)
{
	char text[4096], path[PATH_MAX];
	uint64_t least = UINT64_MAX;
	char *line, *rest;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (!small_file_read(path, text, sizeof(text)))
		return least;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		const char *controllers = strchr(line, ':');
		const char *cgroup =
			controllers ? strchr(controllers + 1, ':') : NULL;
		const struct cgroup_kind *kind;
		uint64_t left;

		if (!cgroup)
			continue;
		if (strncmp(line, "0::", 3) == 0)
			kind = &cgroup_v2;
		else if (names_memory(controllers + 1))
			kind = &cgroup_v1;
		else
			continue;
		left = cgroup_path_left_bytes(kind, root, cgroup + 1);
		least = MIN(least, left);
	}
	return least;
}

static uint64_t meminfo_available_bytes(const char *root)
{
	char text[1024], path[PATH_MAX];
	uint64_t available_kib;

	/* MemAvailable is the third line. */
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	if (!small_file_read(path, text, sizeof(text)) ||
	    !find_number(text, "MemAvailable:", &available_kib))
		return UINT64_MAX;
	return available_kib * KIB;
}

uint64_t topology_available_bytes_under(const char *root)
{
	uint64_t machine = meminfo_available_bytes(root);
	uint64_t cgroups = cgroups_left_bytes(root);

	return MIN(machine, cgroups);
}

/* What RLIMIT_AS leaves of the addresses. */
static uint64_t address_space_left_bytes(void)
{
	unsigned long pages = 0;
	struct rlimit limit;
	char text[128];

	if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	/* The first number is that of all pages. */
	if (small_file_read("/proc/self/statm", text, sizeof(text)))
		pages = strtoul(text, NULL, 10);
	return limit.rlim_cur -
	       MIN(limit.rlim_cur, pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

uint64_t topology_available_bytes(void)
{
	uint64_t free_bytes = topology_available_bytes_under("");
	uint64_t address_bytes = address_space_left_bytes();

	return MIN(free_bytes, address_bytes);
}
