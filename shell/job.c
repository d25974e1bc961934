/* job.c - the table of running children: start, limits, lease, output, reap */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "shell/environment.h"
#include "shell/job.h"
#include "shell/job_processes.h"

#define MS_NS UINT64_C(1000000)
#define SLOTS (2 * JOBS_MAX)
#define USED_RUNNING UINT64_MAX
/* The time from one SIGKILL to all processes of a job to the next, if any of
 * them lives on. */
#define KILL_AGAIN_NS (10 * MS_NS)
/* A pipe holds 1 MiB at most (/proc/sys/fs/pipe-max-size), 16 reads; and one
 * more read sees its end. */
#define LAST_READS_MAX 17

/* --- the table ----------------------------------------------------------- */

static bool is_running(const struct job *job)
{
	return job->state == WIRE_JOB_RUNNING;
}

static void add_limit(struct job_table *table, int resource, uint64_t value)
{
	if (value > 0)
		table->process_limits[table->process_limit_count++] =
			(struct process_limit){ resource, value };
}

static void set_limits(struct job_table *table, const struct job_limits *limits)
{
	table->limits = *limits;
	add_limit(table, RLIMIT_AS, limits->memory_bytes);
	add_limit(table, RLIMIT_FSIZE, limits->file_bytes);
	if (!table->groups.counts)
		add_limit(table, RLIMIT_NPROC, limits->process_count);
}

/* A page counts as memory from when a job has written to it. */
static int map_rings(struct job_table *table)
{
	size_t bytes = (size_t)SLOTS * JOB_STREAMS * STREAM_RING_BYTES;
	uint8_t *rings =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (rings == MAP_FAILED)
		return -errno;
	table->rings = rings;
	for (unsigned i = 0; i < SLOTS; i++) {
		for (unsigned k = 0; k < JOB_STREAMS; k++) {
			stream_open(&table->jobs[i].streams[k],
				    (int[2]){ -1, -1 });
			table->jobs[i].streams[k].ring = rings;
			rings += STREAM_RING_BYTES;
		}
	}
	return 0;
}

/* The history is allocated apart from the table, so that its pages that hold no
 * id cost nothing. */
static int alloc_memory(struct job_table *table)
{
	int ret;

	table->history = calloc(1, sizeof(*table->history));
	if (!table->history)
		return -ENOMEM;
	table->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ret = table->null_fd < 0 ? -errno : map_rings(table);
	if (ret == 0)
		return 0;
	if (table->null_fd >= 0)
		close(table->null_fd);
	free(table->history);
	return ret;
}

static void sleep_ms(long ms)
{
	struct timespec time = { .tv_nsec = ms * 1000000 };

	nanosleep(&time, NULL);
}

/* ENXIO says that there is none.  Any other error counts as a terminal: then
 * jobs have sessions, which only cost time. */
static bool have_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	int error = errno;

	if (fd < 0)
		return error != ENXIO;
	close(fd);
	return true;
}

int job_table_init(struct job_table *table, const char *node,
		   const struct allowlist *allow,
		   const struct job_limits *limits, bool use_groups)
{
	int ret;

	memset(table, 0, sizeof(*table));
	table->allow = allow;
	table->groups.fd = -1;
	table->prepared = resources_none;
	if (use_groups)
		jobgroup_open(&table->groups, node, limits->process_count);
	snprintf(table->node_variable, sizeof(table->node_variable),
		 "BLINK_NODE=%s", node);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	job_processes_kill_earlier(table->node_variable);
	set_limits(table, limits);
	table->own_sessions = have_terminal();
	ret = alloc_memory(table);
	if (ret < 0)
		return ret;
	job_table_prepare(table);
	return 0;
}

struct job *job_find(struct job_table *table, const uint8_t id[WIRE_JOB_BYTES])
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct job_slot *slot = &table->slots[i];

		if (slot->used == 0 ||
		    memcmp(slot->id, id, WIRE_JOB_BYTES) != 0)
			continue;
		if (slot->used != USED_RUNNING)
			slot->used = ++table->uses;
		return &table->jobs[i];
	}
	return NULL;
}

bool job_is_forgotten(const struct job_table *table,
		      const uint8_t id[WIRE_JOB_BYTES])
{
	return history_has(table->history, id);
}

/* Takes an empty place, or that of the job that was used least recently.  There
 * is one, since at most half of the places have jobs that run. */
static struct job *take_slot(struct job_table *table, const uint8_t *id)
{
	struct job_slot *oldest = &table->slots[0];
	struct job *job;

	for (unsigned i = 1; i < SLOTS && oldest->used > 0; i++)
		if (table->slots[i].used < oldest->used)
			oldest = &table->slots[i];
	if (oldest->used > 0)
		history_add(table->history, oldest->id);
	memcpy(oldest->id, id, WIRE_JOB_BYTES);
	oldest->used = ++table->uses;
	job = &table->jobs[oldest - table->slots];
	memcpy(job->id, id, WIRE_JOB_BYTES);
	return job;
}

static void clear_job(struct job *job)
{
	struct job fresh = { .group.fd = -1, .secret.fd = -1 };

	memcpy(fresh.id, job->id, WIRE_JOB_BYTES);
	memcpy(fresh.streams, job->streams, sizeof(fresh.streams));
	for (unsigned k = 0; k < JOB_STREAMS; k++)
		stream_open(&fresh.streams[k], (int[2]){ -1, -1 });
	*job = fresh;
}

static void add_running(struct job_table *table, struct job *job)
{
	table->slots[job - table->jobs].used = USED_RUNNING;
	table->running[table->running_count++] = job;
	table->started++;
}

static void remove_running(struct job_table *table, unsigned index)
{
	struct job *job = table->running[index];

	table->slots[job - table->jobs].used = ++table->uses;
	table->running[index] = table->running[--table->running_count];
}

/* --- starting ------------------------------------------------------------ */

void job_table_prepare(struct job_table *table)
{
	/* The daemon prepares nothing while a job runs: the fewer descriptors
	 * it has, the faster a process starts.  An error recurs when the next
	 * job is given its resources. */
	if (table->running_count == 0)
		resources_make(&table->prepared, &table->groups);
}

/* Moves what was prepared to the job, whose process has it. */
static void give_resources(struct job_table *table, struct job *job)
{
	struct resources *prepared = &table->prepared;

	stream_open(&job->streams[JOB_STDOUT], prepared->out);
	stream_open(&job->streams[JOB_STDERR], prepared->err);
	job->secret = prepared->secret;
	job->group = prepared->group;
	*prepared = resources_none;
}

static pid_t start_process(const struct job_table *table,
			   const struct job_start *start, const char *path)
{
	const struct resources *prepared = &table->prepared;
	struct environment environment;

	environment_make(&environment, start, table->node_variable);
	return process_start(&(struct process_request){
		.path = path,
		.arguments = start->arguments,
		.environment = environment.variables,
		.stdin_fd = table->null_fd,
		.stdout_fd = prepared->out[1],
		.stderr_fd = prepared->err[1],
		.secret_fd = prepared->secret.fd,
		.own_session = table->own_sessions,
		.no_namespaces = table->limits.no_namespaces,
		.cgroup_fd = prepared->group.fd,
		.limits = table->process_limits,
		.limit_count = table->process_limit_count,
	});
}

/* Returns the process, or -errno. */
static int launch(struct job_table *table, struct job *job,
		  const struct job_start *start)
{
	char path[PATH_MAX];
	pid_t pid;
	int ret = allowlist_resolve(table->allow, start->arguments[0], path);

	if (ret == 0)
		ret = resources_make(&table->prepared, &table->groups);
	if (ret < 0)
		return ret;
	memcpy(table->prepared.secret.bytes, start->secret, WIRE_SECRET_BYTES);
	pid = start_process(table, start, path);
	if (pid > 0)
		give_resources(table, job);
	else
		resources_close(&table->prepared, &table->groups);
	return pid;
}

/* Returns the shorter of the client's time-out and ours; 0 stands for none. */
static uint32_t timeout_ms(const struct job_table *table, uint32_t asked_ms)
{
	uint32_t max_ms = table->limits.timeout_ms_max;

	if (asked_ms == 0 || (max_ms > 0 && max_ms < asked_ms))
		return max_ms;
	return asked_ms;
}

static struct job *refuse(struct job *job, int error)
{
	job->state = WIRE_JOB_REFUSED;
	job->code = error;
	job->end_ns = clock_now_ns();
	return job;
}

struct job *job_start(struct job_table *table, const struct job_start *start)
{
	uint64_t begin_ns = clock_now_ns();
	struct job *job = take_slot(table, start->id);
	uint32_t time_ms;
	int pid;

	clear_job(job);
	job->begin_ns = begin_ns;
	pid = table->running_count < JOBS_MAX ? launch(table, job, start)
					      : -EAGAIN;
	if (pid < 0)
		return refuse(job, -pid);
	job->state = WIRE_JOB_RUNNING;
	job->pid = pid;
	job->lease_ns = MIN(start->lease_ms, JOB_LEASE_MS_MAX) * MS_NS;
	time_ms = timeout_ms(table, start->timeout_ms);
	job->timeout_end_ns =
		time_ms > 0 ? job->begin_ns + time_ms * MS_NS : UINT64_MAX;
	job_renew(job, job->begin_ns);
	add_running(table, job);
	return job;
}

void job_renew(struct job *job, uint64_t now_ns)
{
	job->lease_end_ns = now_ns + job->lease_ns;
}

/* --- killing ------------------------------------------------------------- */

/* The process is not reaped yet, so that no other group has its number. */
static void terminate(const struct job *job)
{
	kill(-job->pid, SIGTERM);
	/* A process that is stopped gets the signal only when it goes on. */
	kill(-job->pid, SIGCONT);
}

void job_kill(struct job *job, enum wire_job_state ending, uint64_t now_ns)
{
	if (!is_running(job) || job->reaped || job->ending != WIRE_JOB_UNKNOWN)
		return;
	job->ending = ending;
	job->kill_ns = now_ns + JOB_GRACE_MS * MS_NS;
	terminate(job);
}

static void kill_all(struct job_table *table, struct job *job, uint64_t now_ns)
{
	job_processes_kill(table, job);
	job->kill_ns = now_ns + KILL_AGAIN_NS;
}

/* --- reaping ------------------------------------------------------------- */

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u +
	       (uint64_t)time.tv_usec * 1000u;
}

static struct job *find_by_pid(struct job_table *table, pid_t pid)
{
	for (unsigned i = 0; i < table->running_count; i++) {
		struct job *job = table->running[i];

		if (!job->reaped && job->pid == pid)
			return job;
	}
	return NULL;
}

/* The own process of the job has ended. */
static void note_end(struct job *job, int wait_status,
		     const struct rusage *usage)
{
	job->end_ns = clock_now_ns();
	job->reaped = true;
	job->kill_ns = 0;
	job->wait_status = wait_status;
	job->user_ns = timeval_ns(usage->ru_utime);
	job->system_ns = timeval_ns(usage->ru_stime);
	job->max_rss_bytes = (uint64_t)usage->ru_maxrss * KIB;
}

enum reaping {
	REAPED_NONE,
	REAPED_SOME,
	/* We have no child left, and so no job has a process: the usual case
	 * when a job has ended, which saves us looking for processes. */
	REAPED_ALL,
};

static enum reaping reap(struct job_table *table)
{
	enum reaping reaping = REAPED_NONE;
	struct rusage usage;
	int wait_status;
	pid_t pid;

	while ((pid = wait4(-1, &wait_status, WNOHANG | __WALL, &usage)) > 0) {
		struct job *job = find_by_pid(table, pid);

		if (job)
			note_end(job, wait_status, &usage);
		reaping = REAPED_SOME;
	}
	return pid < 0 && errno == ECHILD ? REAPED_ALL : reaping;
}

static void set_final_state(struct job *job)
{
	if (job->ending != WIRE_JOB_UNKNOWN) {
		job->state = job->ending;
	} else if (WIFEXITED(job->wait_status)) {
		job->state = WIRE_JOB_EXITED;
		job->code = WEXITSTATUS(job->wait_status);
	} else {
		job->state = WIRE_JOB_KILLED;
		job->code = WTERMSIG(job->wait_status);
	}
}

/* --- work ---------------------------------------------------------------- */

unsigned job_poll_fds(struct job_table *table, struct pollfd *fds)
{
	unsigned count = 0;

	for (unsigned i = 0; i < table->running_count; i++) {
		struct job *job = table->running[i];

		for (unsigned k = 0; k < JOB_STREAMS; k++) {
			if (job->streams[k].fd < 0)
				continue;
			table->polled[count] = &job->streams[k];
			fds[count++] =
				(struct pollfd){ .fd = job->streams[k].fd,
						 .events = POLLIN };
		}
	}
	return count;
}

void job_end_overdue(struct job_table *table)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < table->running_count; i++) {
		struct job *job = table->running[i];

		if (now_ns >= job->timeout_end_ns)
			job_kill(job, WIRE_JOB_TIMED_OUT, now_ns);
		else if (now_ns >= job->lease_end_ns)
			job_kill(job, WIRE_JOB_LEASE_EXPIRED, now_ns);
	}
}

/* No process is left to write: what is in the pipe is all there will be. */
static void read_last(struct stream *stream)
{
	for (unsigned i = 0; i < LAST_READS_MAX && stream_read(stream); i++)
		;
}

/* True if all processes of the job are gone.  Its own one has been reaped. */
static bool is_alone(struct job_table *table, struct job *job, uint64_t now_ns,
		     enum reaping reaping)
{
	if (reaping == REAPED_ALL)
		return true;
	/* Looking for processes takes long, and nothing has changed. */
	if (reaping == REAPED_NONE && now_ns < job->kill_ns)
		return false;
	if (!job_processes_live(table, job))
		return true;
	if (now_ns >= job->kill_ns)
		kill_all(table, job, now_ns);
	return false;
}

/* Returns whether the job has ended. */
static bool advance(struct job_table *table, struct job *job, uint64_t now_ns,
		    enum reaping reaping)
{
	if (!job->reaped) {
		if (job->ending != WIRE_JOB_UNKNOWN && now_ns >= job->kill_ns)
			kill_all(table, job, now_ns);
		return false;
	}
	if (!is_alone(table, job, now_ns, reaping))
		return false;
	for (unsigned k = 0; k < JOB_STREAMS; k++)
		read_last(&job->streams[k]);
	set_final_state(job);
	return true;
}

static uint64_t next_ns(const struct job *job)
{
	if (job->reaped || job->ending != WIRE_JOB_UNKNOWN)
		return job->kill_ns;
	return MIN(job->lease_end_ns, job->timeout_end_ns);
}

/* Rounds up, so as not to wake too early. */
int job_wait_ms(const struct job_table *table)
{
	uint64_t next = UINT64_MAX;
	uint64_t now_ns;

	for (unsigned i = 0; i < table->running_count; i++)
		next = MIN(next, next_ns(table->running[i]));
	if (next == UINT64_MAX)
		return -1;
	now_ns = clock_now_ns();
	return next <= now_ns ? 0 : (int)((next - now_ns) / MS_NS + 1);
}

/* Call it after the client has been told of the end, since the client waits for
 * that. */
static void release_resources(struct job_table *table, struct job *job)
{
	jobgroup_give(&table->groups, &job->group);
	for (unsigned k = 0; k < JOB_STREAMS; k++)
		stream_close(&job->streams[k]);
	secret_close(&job->secret);
}

void job_work(struct job_table *table, const struct pollfd *fds, unsigned count,
	      job_ended *ended, void *context)
{
	enum reaping reaping;
	uint64_t now_ns;

	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents)
			stream_read(table->polled[i]);
	/* Reap also when no job runs: an orphan of one may have died late. */
	reaping = reap(table);
	now_ns = clock_now_ns();
	/* Backward, since a job that is removed is replaced by the last one,
	 * which has had its turn. */
	for (unsigned i = table->running_count; i-- > 0;) {
		struct job *job = table->running[i];

		if (!advance(table, job, now_ns, reaping))
			continue;
		remove_running(table, i);
		if (ended)
			ended(job, context);
		release_resources(table, job);
	}
}

void job_kill_running(struct job_table *table, enum wire_job_state ending)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < table->running_count; i++)
		job_kill(table->running[i], ending, now_ns);
}

void job_table_fini(struct job_table *table)
{
	job_kill_running(table, WIRE_JOB_CANCELLED);
	for (unsigned i = 0; i < table->running_count; i++)
		table->running[i]->kill_ns = 0;
	while (table->running_count > 0) {
		job_work(table, NULL, 0, NULL, NULL);
		if (table->running_count > 0)
			sleep_ms(1);
	}
	resources_close(&table->prepared, &table->groups);
	jobgroup_close(&table->groups);
	close(table->null_fd);
	free(table->history);
	munmap(table->rings, (size_t)SLOTS * JOB_STREAMS * STREAM_RING_BYTES);
}
