/*
 * job.h - the table of running children: start, limits, lease, output, reap
 *
 * A job is one process per node (process.h): execve of an absolute path with
 * the arguments as they are: no shell, no PATH, and an environment of exactly
 *
 *      PATH=/usr/local/bin:/usr/bin:/bin   HOME=/   LANG=C
 *      BLINK_RANK, BLINK_NODES   this node's rank, and the number of nodes
 *      BLINK_HOST                what the client calls this node
 *      BLINK_HOSTS               all nodes in the order of their ranks, as a
 *                                list of hosts; missing if it was too long to
 *                                send
 *      BLINK_SECRET_FD=3         a file of 32 bytes that all processes of
 *                                the job have in common (secret.h)
 *      BLINK_JOB                 the id, in hexadecimal
 *      BLINK_NODE                "address:port" of the daemon
 *
 * Its stdin is /dev/null; of stdout and stderr the last JOB_OUTPUT_BYTES are
 * kept.  A job ends when its own process does: what that process leaves behind
 * is killed.
 *
 * The pipes of the output and the file of the secret are made for this job and
 * closed at its end (resources.h).  A job may pass them to processes that do
 * not belong to it, and these may keep them; the next job has others.
 *
 * To kill a job is to kill every process of it.  Its process group gets SIGTERM
 * first; JOB_GRACE_MS later, or when its own process has ended, all its
 * processes get SIGKILL: by the job's cgroup if it has one (jobgroup.h), else
 * by descent and by mark (proctree.h).  A process whose job cannot be told,
 * because it has left the process group and cleared the mark, is killed with
 * the first job that ends.
 *
 * If the daemon has a terminal, jobs get sessions of their own and so none
 * (process.h).
 *
 * All functions belong to one thread.  A caller that polls must also be woken
 * by SIGCHLD: by a descriptor, or by blocking the signal except in ppoll().
 */
#ifndef JOB_H
#define JOB_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shell/allowlist.h"
#include "shell/history.h"
#include "shell/process.h"
#include "shell/resources.h"
#include "shell/start.h"
#include "shell/stream.h"
#include "shell/wire.h"

#define JOBS_MAX 64 /* running; of as many others the end is remembered */
#define JOB_OUTPUT_BYTES STREAM_RING_BYTES
#define JOB_GRACE_MS 500
#define JOB_LEASE_MS_MAX 600000 /* whatever the client asks for */
#define JOB_ARGUMENTS_MAX START_ARGUMENTS_MAX
#define JOB_POLL_FDS_MAX (2 * JOBS_MAX)

/* 0 stands for no limit. */
struct job_limits {
	uint64_t memory_bytes;	/* of each process: RLIMIT_AS */
	uint64_t process_count; /* of the job: pids.max of its cgroup; where it
				 * has none, of our user: RLIMIT_NPROC */
	uint64_t file_bytes;	/* of each file: RLIMIT_FSIZE */
	uint32_t timeout_ms_max;
	bool no_namespaces; /* jobs may make none (namespace_filter.h) */
};

enum { JOB_STDOUT, JOB_STDERR, JOB_STREAMS };

struct job {
	uint8_t id[WIRE_JOB_BYTES];
	enum wire_job_state state; /* UNKNOWN: an empty place in the table */
	int code;		   /* as wire.h says */
	pid_t pid;
	int wait_status;
	bool reaped; /* its own process; others of the job may live yet */
	enum wire_job_state ending; /* why we kill it, or UNKNOWN */
	uint64_t begin_ns;	    /* CLOCK_MONOTONIC, before the start */
	uint64_t end_ns;	    /* after the reap */
	uint64_t lease_ns, lease_end_ns;
	uint64_t timeout_end_ns; /* UINT64_MAX: never */
	uint64_t kill_ns;	 /* when to send SIGKILL, again */
	uint64_t user_ns, system_ns, max_rss_bytes;
	struct stream streams[JOB_STREAMS];
	struct secret secret;
	struct jobgroup group;
};

struct job_start {
	const uint8_t *id;
	const char *const *arguments; /* ended by NULL; substituted already */
	uint32_t rank, node_count, lease_ms, timeout_ms; /* 0: no time-out */
	const char *host;      /* at most START_HOST_BYTES_MAX bytes */
	const char *hosts;     /* at most START_HOSTS_BYTES_MAX; "": unknown */
	const uint8_t *secret; /* WIRE_SECRET_BYTES */
};

/* Every request is looked up in slots, which are kept apart from the jobs so
 * that the search takes few lines of the cache. */
struct job_slot {
	uint8_t id[WIRE_JOB_BYTES];
	uint64_t used; /* 0: empty; UINT64_MAX: running; else a count: the job
			* that was used least recently is forgotten first */
};

struct job_table {
	struct job_slot slots[2 * JOBS_MAX];
	struct job jobs[2 * JOBS_MAX];
	struct job *running[JOBS_MAX];
	unsigned running_count;
	uint64_t started;
	uint64_t uses;
	const struct allowlist *allow;
	struct job_limits limits;
	struct process_limit process_limits[PROCESS_LIMITS_MAX];
	unsigned process_limit_count;
	char node_variable[96];	   /* BLINK_NODE=... */
	struct resources prepared; /* for the next job */
	struct history *history;   /* ids of jobs that have left the slots */
	struct jobgroup_pool groups;
	int null_fd;
	bool own_sessions; /* for the jobs: we have a terminal */
	uint8_t *rings;	   /* of all streams; one mapping */
	struct stream *polled[JOB_POLL_FDS_MAX];
};

/* node marks our jobs: what an earlier daemon of this node left running is
 * killed first.  allow is borrowed.  use_groups: make a cgroup for each job, if
 * that is possible.  All memory is allocated here.  0 or -errno. */
int job_table_init(struct job_table *table, const char *node,
		   const struct allowlist *allow,
		   const struct job_limits *limits, bool use_groups);

/* Makes ready what the next job will be given, if no job runs.  No client waits
 * for it: call it after the clients have been told of their jobs' ends. */
void job_table_prepare(struct job_table *table);

/* Finds a job by its id, running or remembered; NULL if it is unknown. */
struct job *job_find(struct job_table *table, const uint8_t id[WIRE_JOB_BYTES]);

/* True if there was a job of this id that job_find() does not know any more,
 * for the last HISTORY_JOBS of them.  Such a job must not be started again. */
bool job_is_forgotten(const struct job_table *table,
		      const uint8_t id[WIRE_JOB_BYTES]);

/* Starts a job whose id the table does not know.  Always returns a job, whose
 * state is RUNNING or REFUSED (code: errno, EPERM if the program is not
 * allowed, EAGAIN if JOBS_MAX are running). */
struct job *job_start(struct job_table *table, const struct job_start *start);

void job_renew(struct job *job, uint64_t now_ns);

/* Begins to kill the job, and notes why.  A job that is ending already, or has
 * ended, is left alone. */
void job_kill(struct job *job, enum wire_job_state ending, uint64_t now_ns);

/* Begins to kill all jobs that run. */
void job_kill_running(struct job_table *table, enum wire_job_state ending);

/* Fills fds for poll(2), JOB_POLL_FDS_MAX of them, and returns how many. */
unsigned job_poll_fds(struct job_table *table, struct pollfd *fds);

typedef void job_ended(struct job *job, void *context);

/*
 * Call it after each poll: it drains output (bounded work), reaps, and sends
 * the SIGKILLs that are due.  It calls ended(job, context) for each job that
 * has just ended: reaped, with none of its processes left, and its output
 * drained. fds are those of job_poll_fds().
 */
void job_work(struct job_table *table, const struct pollfd *fds, unsigned count,
	      job_ended *ended, void *context);

/* Ends the jobs whose lease or time is over.  This is apart from job_work() so
 * that a renewal that waits in the socket can be read first. */
void job_end_overdue(struct job_table *table);

/* Milliseconds until these two must be called again, or -1: no limit. */
int job_wait_ms(const struct job_table *table);

/* Kills and reaps all jobs; returns when none is left. */
void job_table_fini(struct job_table *table);

#endif /* JOB_H */
