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
#include "shell/job.h"
#include "shell/proctree.h"

#define MS_NS UINT64_C(1000000)
#define SLOTS (2 * JOBS_MAX)
#define USED_RUNNING UINT64_MAX
/* Between one SIGKILL to all of a job and the next, if any live on. */
#define KILL_AGAIN_NS (10 * MS_NS)
/* What a pipe holds at most (/proc/sys/fs/pipe-max-size is 1 MiB), and once
 * more to see its end. */
#define LAST_READS_MAX 17
/* Jobs in a row whose ends found the machine free, if it is to be called that.
 */
#define FREE_COUNT_MIN 4
/* Then those starts are over; and to set a timer of so long costs nothing,
 * where one of 4 ms costs 16 daemons of one machine a tenth of a launch. */
#define QUIET_NS (100 * MS_NS)

static struct proctree tree;

static const struct job_supply no_supply = {
	.out = { -1, -1 },
	.err = { -1, -1 },
	.secret.fd = -1,
	.group.fd = -1,
};

/* --- the table -------------------------------------------------------------
 */

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
	add_limit(table, RLIMIT_NOFILE, limits->open_files);
	if (!table->groups.counts)
		add_limit(table, RLIMIT_NPROC, limits->process_count);
}

/* Pages are touched, and count, once a job has written to them. */
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

/* The history apart from the table, so that pages without ids cost nothing. */
static int get_room(struct job_table *table)
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

/* Bounded: one that cannot die, being in the kernel for good, must not keep us
 * from our work. */
static void kill_leftovers(const char *node_variable)
{
	for (unsigned i = 0; i < 100; i++) {
		if (proctree_kill_marked(&tree, node_variable) == 0)
			return;
		sleep_ms(2);
	}
}

/* ENXIO is the kernel's word for none.  Not knowing is as good as having one:
 * sessions only cost. */
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
	table->supply = no_supply;
	if (use_groups)
		jobgroup_open(&table->groups, node, limits->process_count);
	snprintf(table->node_variable, sizeof(table->node_variable),
		 "BLINK_NODE=%s", node);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	kill_leftovers(table->node_variable);
	set_limits(table, limits);
	table->own_sessions = have_terminal();
	runnable_open(&table->runnable);
	ret = get_room(table);
	if (ret < 0) {
		runnable_close(&table->runnable);
		return ret;
	}
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

/* An empty place, or that of the job that was used least recently: at most half
 * of the places have jobs that run. */
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

/* --- starting --------------------------------------------------------------
 */

static void close_pair(int pair[2])
{
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	pair[0] = pair[1] = -1;
}

/* Its standby, too. */
static void close_supply(struct job_table *table)
{
	struct job_supply *supply = &table->supply;

	process_dismiss(&table->standby);
	table->standby_due_ns = 0;
	close_pair(supply->out);
	close_pair(supply->err);
	secret_close(&supply->secret);
	jobgroup_give(&table->groups, &supply->group);
	*supply = no_supply;
}

static int make_supply(struct job_table *table)
{
	struct job_supply *supply = &table->supply;
	int ret;

	if (supply->made)
		return 0;
	*supply = no_supply;
	ret = stream_make_pipe(supply->out);
	if (ret == 0)
		ret = stream_make_pipe(supply->err);
	if (ret == 0)
		ret = secret_open(&supply->secret);
	if (ret < 0) {
		close_supply(table);
		return ret;
	}
	supply->group = jobgroup_take(&table->groups);
	supply->made = true;
	return 0;
}

/* The job's process has it. */
static void spend_supply(struct job_table *table, struct job *job)
{
	struct job_supply *supply = &table->supply;

	stream_open(&job->streams[JOB_STDOUT], supply->out);
	stream_open(&job->streams[JOB_STDERR], supply->err);
	job->secret = supply->secret;
	job->group = supply->group;
	*supply = no_supply;
	table->standby_due_ns = 0;
}

static struct process_place place_of(const struct job_table *table)
{
	const struct job_supply *supply = &table->supply;

	return (struct process_place){
		.stdin_fd = table->null_fd,
		.stdout_fd = supply->out[1],
		.stderr_fd = supply->err[1],
		.secret_fd = supply->secret.fd,
		.own_session = table->own_sessions,
		.cgroup_fd = supply->group.fd,
		.limits = table->process_limits,
		.limit_count = table->process_limit_count,
	};
}

/* The last of many to be ready finds the machine free, though it is not: others
 * are about to be told to start something, too. */
static bool is_machine_free(struct job_table *table)
{
	if (runnable_all_run(&table->runnable))
		table->free_count++;
	else
		table->free_count = 0;
	return table->free_count >= FREE_COUNT_MIN;
}

/* One that cannot be made is not tried again until a job has run. */
static void prepare_standby(struct job_table *table)
{
	struct process_place place = place_of(table);

	if (table->standby.pid > 0 || clock_now_ns() < table->standby_due_ns)
		return;
	if (table->standby_due_ns == 0 && !is_machine_free(table))
		table->standby_due_ns = clock_now_ns() + QUIET_NS;
	else if (process_prepare(&table->standby, &place) < 0)
		table->standby_due_ns = UINT64_MAX;
}

/* Only while no job runs: the fewer descriptors the daemon has the faster a
 * process starts, and a standby would look like a process of the job. */
void job_table_prepare(struct job_table *table)
{
	if (table->running_count == 0 && make_supply(table) == 0)
		prepare_standby(table);
}

static char *put_text(char *to, const char *text)
{
	size_t bytes = strlen(text);

	memcpy(to, text, bytes + 1);
	return to + bytes;
}

static void put_number(char *to, uint32_t value)
{
	char digits[12];
	char *begin = digits + sizeof(digits) - 1;

	*begin = '\0';
	do {
		*--begin = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put_text(to, begin);
}

static void put_id(char *to, const uint8_t id[WIRE_JOB_BYTES])
{
	static const char digits[16] = "0123456789abcdef";

	for (unsigned i = 0; i < WIRE_JOB_BYTES; i++) {
		*to++ = digits[id[i] >> 4];
		*to++ = digits[id[i] & 15];
	}
	*to = '\0';
}

struct environment {
	char rank[32], nodes[32], job[64], host[16 + START_HOST_BYTES_MAX];
	char hosts[16 + START_HOSTS_BYTES_MAX];
	const char *variables[11];
};

static void make_environment(struct environment *environment,
			     const struct job_table *table,
			     const struct job_start *start)
{
	const char *variables[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=/",
		"LANG=C",
		"BLINK_SECRET_FD=3",
		environment->rank,
		environment->nodes,
		environment->host,
		environment->job,
		table->node_variable,
		start->hosts[0] != '\0' ? environment->hosts : NULL,
		NULL,
	};

	put_number(put_text(environment->rank, "BLINK_RANK="), start->rank);
	put_number(put_text(environment->nodes, "BLINK_NODES="),
		   start->node_count);
	put_text(put_text(environment->host, "BLINK_HOST="), start->host);
	put_text(put_text(environment->hosts, "BLINK_HOSTS="), start->hosts);
	put_id(put_text(environment->job, "BLINK_JOB="), start->id);
	memcpy(environment->variables, variables, sizeof(variables));
}

static pid_t start_process(struct job_table *table,
			   const struct process_program *program)
{
	struct process_place place = place_of(table);
	pid_t pid = process_release(&table->standby, program);

	return pid != 0 ? pid : process_start(&place, program);
}

/* The process, or -errno. */
static int launch(struct job_table *table, struct job *job,
		  const struct job_start *start)
{
	struct environment environment;
	char path[PATH_MAX];
	pid_t pid;
	int ret = allowlist_resolve(table->allow, start->arguments[0], path);

	if (ret == 0)
		ret = make_supply(table);
	if (ret < 0)
		return ret;
	make_environment(&environment, table, start);
	memcpy(table->supply.secret.bytes, start->secret, WIRE_SECRET_BYTES);
	pid = start_process(table, &(struct process_program){
					   .path = path,
					   .arguments = start->arguments,
					   .environment = environment.variables,
				   });
	if (pid > 0)
		spend_supply(table, job);
	else
		close_supply(table);
	return pid;
}

/* The shorter of the client's and ours, 0 standing for none. */
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

/* --- killing ---------------------------------------------------------------
 */

/* Its process is not reaped yet, so that the group's number is still its. */
static void terminate(const struct job *job)
{
	kill(-job->pid, SIGTERM);
	/* One that is stopped sees it only when it goes on. */
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

struct ascription {
	struct job_table *table;
	const struct job *job;
};

static bool has_mark(pid_t pid, const struct job *job)
{
	char variable[64];

	put_id(put_text(variable, "BLINK_JOB="), job->id);
	return proctree_has_variable(pid, variable);
}

/* Whose is it?  NULL: nobody can tell. */
static const struct job *job_of(const struct job_table *table,
				const struct proctree_process *process)
{
	for (unsigned i = 0; i < table->running_count; i++) {
		const struct job *job = table->running[i];

		if (process->pid == job->pid || process->group == job->pid ||
		    process->session == job->pid)
			return job;
	}
	for (unsigned i = 0; i < table->running_count; i++)
		if (has_mark(process->pid, table->running[i]))
			return table->running[i];
	return NULL;
}

static bool is_to_die(const struct proctree_process *process, void *context)
{
	const struct ascription *ascription = context;
	const struct job *owner = job_of(ascription->table, process);

	return !owner || owner == ascription->job;
}

static void kill_all(struct job_table *table, struct job *job, uint64_t now_ns)
{
	struct ascription ascription = { table, job };

	/* At once, and nobody of the group can fork away from it. */
	if (!job->reaped)
		kill(-job->pid, SIGKILL);
	if (!jobgroup_kill(&job->group))
		proctree_kill_children(&tree, is_to_die, &ascription);
	job->kill_ns = now_ns + KILL_AGAIN_NS;
}

static bool has_survivors(struct job_table *table, struct job *job)
{
	struct ascription ascription = { table, job };

	if (job->group.fd >= 0)
		return !jobgroup_is_empty(&job->group);
	proctree_read_children(&tree);
	for (unsigned i = 0; i < tree.count; i++)
		if (is_to_die(&tree.processes[i], &ascription))
			return true;
	return false;
}

/* --- reaping ---------------------------------------------------------------
 */

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

/* Its own process has ended. */
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
	/* We have no child left, hence no job a process: the usual case when a
	 * job has ended, which costs no look at anything. */
	REAPED_ALL,
};

/* It is reaped: somebody killed it, or it could not be given what it needs, and
 * no more can the next one. */
static void lose_standby(struct job_table *table)
{
	table->standby.pid = 0;
	table->standby_due_ns = table->standby.birth.error
					? UINT64_MAX
					: clock_now_ns() + QUIET_NS;
}

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
		else if (pid == table->standby.pid)
			lose_standby(table);
		reaping = REAPED_SOME;
	}
	return pid < 0 && errno == ECHILD ? REAPED_ALL : reaping;
}

static void conclude(struct job *job)
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

/* --- work ------------------------------------------------------------------
 */

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

/* Nobody is left to write; what is in the pipe is all there will be. */
static void read_last(struct stream *stream)
{
	for (unsigned i = 0; i < LAST_READS_MAX && stream_read(stream); i++)
		;
}

/* Of a job whose process has been reaped: true if all others are gone too. */
static bool is_alone(struct job_table *table, struct job *job, uint64_t now_ns,
		     enum reaping reaping)
{
	if (reaping == REAPED_ALL)
		return true;
	/* Looking is dear, and nothing has changed. */
	if (reaping == REAPED_NONE && now_ns < job->kill_ns)
		return false;
	if (!has_survivors(table, job))
		return true;
	if (now_ns >= job->kill_ns)
		kill_all(table, job, now_ns);
	return false;
}

/* True if it has ended. */
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
	conclude(job);
	return true;
}

static uint64_t next_ns(const struct job *job)
{
	if (job->reaped || job->ending != WIRE_JOB_UNKNOWN)
		return job->kill_ns;
	return MIN(job->lease_end_ns, job->timeout_end_ns);
}

/* Rounded up, so as not to wake too early. */
int job_wait_ms(const struct job_table *table)
{
	uint64_t next = UINT64_MAX;
	uint64_t now_ns;

	if (table->running_count == 0 && table->standby.pid == 0)
		next = table->standby_due_ns;
	for (unsigned i = 0; i < table->running_count; i++)
		next = MIN(next, next_ns(table->running[i]));
	if (next == UINT64_MAX)
		return -1;
	now_ns = clock_now_ns();
	return next <= now_ns ? 0 : (int)((next - now_ns) / MS_NS + 1);
}

/* After the job's end was told, which its client waits for. */
static void give_back(struct job_table *table, struct job *job)
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
	/* Also when no job runs: one of its orphans may have died late. */
	reaping = reap(table);
	now_ns = clock_now_ns();
	/* Backward: whoever takes the place of one removed has had his turn. */
	for (unsigned i = table->running_count; i-- > 0;) {
		struct job *job = table->running[i];

		if (!advance(table, job, now_ns, reaping))
			continue;
		remove_running(table, i);
		if (ended)
			ended(job, context);
		give_back(table, job);
	}
}

static void kill_running(struct job_table *table)
{
	uint64_t now_ns = clock_now_ns();

	for (unsigned i = 0; i < table->running_count; i++) {
		job_kill(table->running[i], WIRE_JOB_CANCELLED, now_ns);
		table->running[i]->kill_ns = 0;
	}
}

void job_table_fini(struct job_table *table)
{
	kill_running(table);
	while (table->running_count > 0) {
		job_work(table, NULL, 0, NULL, NULL);
		if (table->running_count > 0)
			sleep_ms(1);
	}
	close_supply(table);
	jobgroup_close(&table->groups);
	runnable_close(&table->runnable);
	close(table->null_fd);
	free(table->history);
	munmap(table->rings, (size_t)SLOTS * JOB_STREAMS * STREAM_RING_BYTES);
}
