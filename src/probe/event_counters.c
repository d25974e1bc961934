/* event_counters.c - counts events by perf_event_open(2) */
#include "probe/event_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "system/small_file.h"

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

struct event {
	const char *name;
	uint32_t type;
	uint64_t config;
};

static const struct event events[] = {
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	/* Any machine has these two. */
	{ "page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "task_clock_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
};

static const struct event *find(const char *name, unsigned length)
{
	for (unsigned i = 0; i < ARRAY_LEN(events); i++)
		if (strlen(events[i].name) == length &&
		    memcmp(events[i].name, name, length) == 0)
			return &events[i];
	return NULL;
}

bool event_counters_add(struct event_counters *counters, const char *name,
			unsigned length)
{
	const struct event *event = find(name, length);

	for (unsigned i = 0; event && i < counters->count; i++)
		if (counters->names[i] == event->name)
			return false;
	if (!event || counters->count == EVENT_COUNTERS_MAX)
		return false;
	counters->names[counters->count++] = event->name;
	return true;
}

/* Returns a descriptor, or -errno. */
static int open_one(const char *name, bool user_only)
{
	const struct event *event = find(name, (unsigned)strlen(name));
	struct perf_event_attr attributes = {
		.type = event->type,
		.size = sizeof(attributes),
		.config = event->config,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
		.exclude_kernel = user_only,
		.exclude_hv = user_only,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Returns -errno of the first that the kernel has refused, or 0. */
static int open_all(struct event_counters *counters)
{
	int error = 0;

	for (unsigned i = 0; i < counters->count; i++) {
		int fd = open_one(counters->names[i], counters->user_only);

		counters->fds[i] = fd < 0 ? -1 : fd;
		if (fd < 0 && error == 0)
			error = fd;
	}
	return error;
}

static void close_all(struct event_counters *counters)
{
	for (unsigned i = 0; i < counters->count; i++)
		if (counters->fds[i] >= 0)
			close(counters->fds[i]);
}

void event_counters_open(struct event_counters *counters)
{
	int error = open_all(counters);

	if (error == -EACCES || error == -EPERM) {
		close_all(counters);
		counters->user_only = true;
		error = open_all(counters);
	}
	counters->error = -error;
}

uint64_t event_counters_read(struct event_counters *counters, unsigned i)
{
	struct {
		uint64_t count, enabled_ns, running_ns;
	} found;

	if (counters->fds[i] < 0 ||
	    read(counters->fds[i], &found, sizeof(found)) != sizeof(found))
		return EVENT_COUNTERS_UNKNOWN;
	if (found.running_ns < found.enabled_ns) {
		counters->shared = true;
		return EVENT_COUNTERS_UNKNOWN;
	}
	return found.count;
}

const char *event_counters_explain(const struct event_counters *counters)
{
	static char text[128];
	char paranoid[16] = "";

	switch (counters->error) {
	case 0:
		return counters->shared ? "others use the counters, too" : NULL;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "this machine does not count them; virtual machines "
		       "seldom do";
	case EACCES:
	case EPERM:
		small_file_read(paranoid, sizeof(paranoid), PARANOID);
		snprintf(text, sizeof(text),
			 "the kernel does not let us: " PARANOID
			 " is %.*s (wanted: 2 or less)",
			 (int)strcspn(paranoid, "\n"), paranoid);
		return text;
	default:
		return strerror(counters->error);
	}
}
