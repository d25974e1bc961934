#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "descriptors.h"
#include "shell/job.h"
#include "shell/namespace_filter.h"
#include "shell/process.h"
#include "system/proctree.h"

#define HOUR_MS 3600000u

/* Of this process only: a table kills what is left of its node, and this test
 * may run twice at the same time. */
static char node[32], node_variable[48], other_node[40];
static struct job_table table;
static struct allowlist allow;
static struct proctree tree;
static sigset_t open_mask;
static unsigned secret_begin; /* with this letter */
static uint8_t next_id;
static unsigned ended_count;
static bool use_groups;
static const char *hosts = "node[0-16]";
static char folder[] = "/tmp/blinksort-test-job.XXXXXX";

static void on_child(int signal)
{
	(void)signal;
}

/* --- the table, and jobs in it ------------------------------------------- */

static void begin(const struct job_limits *limits)
{
	assert_int_equal(
		job_table_init(&table, node, &allow, limits, use_groups), 0);
	ended_count = 0;
}

/* Ends this program, and so a case that waits for what never comes.  The whole
 * test takes some 10 s. */
#define CASE_S_MAX 200

static int set_up(void **state)
{
	(void)state;
	alarm(CASE_S_MAX);
	begin(&(struct job_limits){ .timeout_ms_max = 0 });
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	job_table_fini(&table);
	alarm(0);
	return 0;
}

static struct job *start_for(const char *const *arguments, uint32_t lease_ms,
			     uint32_t timeout_ms)
{
	uint8_t id[WIRE_JOB_BYTES] = { 0xab, [15] = ++next_id };
	uint8_t secret[WIRE_SECRET_BYTES];

	for (unsigned i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)('A' + (secret_begin + i) % 26);
	return job_start(&table, &(struct job_start){
					 .id = id,
					 .arguments = arguments,
					 .rank = 3,
					 .node_count = 17,
					 .lease_ms = lease_ms,
					 .timeout_ms = timeout_ms,
					 .host = "node3",
					 .hosts = hosts,
					 .secret = secret,
				 });
}

static struct job *start(const char *const *arguments)
{
	return start_for(arguments, HOUR_MS, 0);
}

static const char *const sleeper[] = { "/bin/sleep", "1000", NULL };

static const char *const *shell(const char *script)
{
	static const char *arguments[4] = { "/bin/sh", "-c" };

	arguments[2] = script;
	return arguments;
}

static void count_end(struct job *job, void *context)
{
	(void)job;
	(void)context;
	ended_count++;
}

/* One turn of a daemon's loop. */
static void turn(void)
{
	struct pollfd fds[JOB_POLL_FDS_MAX];
	unsigned count = job_poll_fds(&table, fds);
	int wait_ms = job_wait_ms(&table);
	struct timespec time = { wait_ms / 1000, wait_ms % 1000 * 1000000L };

	if (ppoll(fds, count, wait_ms < 0 ? NULL : &time, &open_mask) < 0) {
		assert_int_equal(errno, EINTR);
		for (unsigned i = 0; i < count; i++)
			fds[i].revents = 0;
	}
	job_work(&table, fds, count, count_end, NULL);
	job_end_overdue(&table);
}

static void finish(const struct job *job)
{
	while (job->state == WIRE_JOB_RUNNING)
		turn();
}

/* Waits for what is dying or dead yet; for one that lives on it would wait
 * until the test is killed. */
static unsigned children_left(void)
{
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	proctree_read_children(&tree);
	return tree.count;
}

/* All that was written to stdout, at most what is kept; valid until called
 * again. */
static const char *output(const struct job *job, unsigned stream)
{
	static char text[JOB_OUTPUT_BYTES + 1];
	size_t bytes = stream_copy(&job->streams[stream],
				   stream_begin(&job->streams[stream]),
				   (uint8_t *)text, JOB_OUTPUT_BYTES);

	text[bytes] = '\0';
	return text;
}

/* The process numbers that it has printed, one a line, once there are count. */
static void wait_for_pids(const struct job *job, pid_t *pids, unsigned count)
{
	for (;;) {
		const char *text = output(job, JOB_STDOUT);
		unsigned lines = 0;

		for (const char *c = text; *c != '\0'; c++)
			lines += *c == '\n';
		if (lines >= count) {
			char *rest = (char *)text;

			for (unsigned i = 0; i < count; i++)
				pids[i] = (pid_t)strtol(rest, &rest, 10);
			return;
		}
		assert_int_equal(job->state, WIRE_JOB_RUNNING);
		turn();
	}
}

/* Waits as children_left() does. */
static bool is_gone(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* --- ends ---------------------------------------------------------------- */

static void start__exit_status(void **state)
{
	struct job *job = start(shell("exit 7"));

	(void)state;
	assert_int_equal(job->state, WIRE_JOB_RUNNING);
	assert_ptr_equal(job_find(&table, job->id), job);
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_EXITED);
	assert_int_equal(job->code, 7);
	assert_int_equal(ended_count, 1);
	assert_int_equal(table.running_count, 0);
	assert_int_equal(table.started, 1);
	assert_true(job->end_ns > job->begin_ns);
	assert_true(job->max_rss_bytes > 0);
	assert_ptr_equal(job_find(&table, job->id), job);
}

static void start__killed_by_a_signal(void **state)
{
	struct job *job = start(shell("kill -USR1 $$"));

	(void)state;
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_KILLED);
	assert_int_equal(job->code, SIGUSR1);
}

/* Programs outside the allowed folders, or that cannot be executed; link is a
 * symbolic link in an allowed folder that leads out, plain is no program. */
static void start__refused(void **state)
{
	char plain[64], link[64];
	const struct {
		const char *path;
		int error;
	} cases[] = {
		{ "/etc/passwd", EPERM },
		{ "/usr/bin/../../etc/passwd", EPERM },
		{ "/bin/there-is-no-such-program", ENOENT },
		{ "sh", EINVAL },
		{ "", EINVAL },
		{ "/bin/sh/x", ENOTDIR },
		{ plain, EACCES },
		{ link, EPERM },
		{ folder, EPERM },
	};

	(void)state;
	snprintf(plain, sizeof(plain), "%s/plain", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(mknod(plain, S_IFREG | 0644, 0), 0);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct job *job =
			start((const char *[]){ cases[i].path, NULL });

		assert_int_equal(job->state, WIRE_JOB_REFUSED);
		assert_int_equal(job->code, cases[i].error);
	}
	unlink(plain);
	unlink(link);
	assert_int_equal(table.running_count, 0);
	assert_int_equal(table.started, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void start__a_link_within(void **state)
{
	char path[64];
	struct job *job;

	(void)state;
	snprintf(path, sizeof(path), "%s/link", folder);
	assert_int_equal(symlink("/bin/true", path), 0);
	job = start((const char *[]){ path, NULL });
	finish(job);
	unlink(path);
	assert_int_equal(job->state, WIRE_JOB_EXITED);
	assert_int_equal(job->code, 0);
}

static void start__full_table(void **state)
{
	struct job *first = NULL;

	(void)state;
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		struct job *job = start(sleeper);

		assert_int_equal(job->state, WIRE_JOB_RUNNING);
		if (!first)
			first = job;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct job *job = start(sleeper);

		assert_int_equal(job->state, WIRE_JOB_REFUSED);
		assert_int_equal(job->code, EAGAIN);
		/* Asked again when there is room, it is the same. */
		assert_ptr_equal(job_find(&table, job->id), job);
	}
	job_kill(first, WIRE_JOB_CANCELLED, clock_now_ns());
	finish(first);
	assert_int_equal(start(sleeper)->state, WIRE_JOB_RUNNING);
	assert_int_equal(table.running_count, JOBS_MAX);
	job_table_fini(&table);
	assert_int_equal(children_left(), 0);
	set_up(NULL);
}

/* As many are remembered as the table says, those used least recently go. */
static void find__the_oldest_is_forgotten(void **state)
{
	const char *const arguments[] = { "/none", NULL };
	uint8_t first[WIRE_JOB_BYTES], second[WIRE_JOB_BYTES];

	(void)state;
	memcpy(first, start(arguments)->id, sizeof(first));
	memcpy(second, start(arguments)->id, sizeof(second));
	for (unsigned i = 2; i < 2 * JOBS_MAX; i++)
		start(arguments);
	assert_non_null(job_find(&table, first));
	start(arguments);
	assert_non_null(job_find(&table, first));
	assert_null(job_find(&table, second));
	assert_true(job_is_forgotten(&table, second));
	assert_false(job_is_forgotten(&table, first));
}

/* --- what the child is given --------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void start__environment(void **state)
{
	const char *const wanted[] = {
		"BLINK_HOST=node3",
		"BLINK_HOSTS=node[0-16]",
		"BLINK_JOB=",
		node_variable,
		"BLINK_NODES=17",
		"BLINK_RANK=3",
		"BLINK_SECRET_FD=3",
		"HOME=/",
		"LANG=C",
		"PATH=/usr/local/bin:/usr/bin:/bin",
	};
	const char *const arguments[] = { "/usr/bin/env", NULL };
	struct job *job = start(arguments);
	char *lines[32], *rest;
	unsigned count = 0;

	(void)state;
	finish(job);
	rest = (char *)output(job, JOB_STDOUT);
	while (count < ARRAY_LEN(lines) && (lines[count] = strsep(&rest, "\n")))
		if (lines[count][0] != '\0')
			count++;
	assert_int_equal(count, ARRAY_LEN(wanted));
	qsort(lines, count, sizeof(lines[0]), by_text);
	for (unsigned i = 0; i < count; i++) {
		if (i == 2)
			assert_memory_equal(lines[i],
					    "BLINK_JOB=ab0000000000000000", 28);
		else
			assert_string_equal(lines[i], wanted[i]);
	}
}

static void start__hosts_are_not_known(void **state)
{
	const char *const arguments[] = { "/usr/bin/env", NULL };
	struct job *job;

	(void)state;
	hosts = "";
	job = start(arguments);
	hosts = "node[0-16]";
	finish(job);
	assert_null(strstr(output(job, JOB_STDOUT), "BLINK_HOSTS"));
	assert_non_null(strstr(output(job, JOB_STDOUT), node_variable));
}

/* Commands that print what they are given, and what they print. */
static void start__what_it_is_given(void **state)
{
	static const struct {
		const char *arguments[6];
		const char *output;
	} cases[] = {
		/* 0 to 3, and the one that lists them. */
		{ { "/bin/ls", "/proc/self/fd" }, "0\n1\n2\n3\n4\n" },
		{ { "/bin/sh", "-c", "cat && readlink /proc/$$/fd/0" },
		  "/dev/null\n" },
		/* The secret, and then the end. */
		{ { "/bin/sh", "-c", "cat <&$BLINK_SECRET_FD" },
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF" },
		{ { "/usr/bin/printf", "[%s]", "a b", "$HOME;*", "" },
		  "[a b][$HOME;*][]" },
		/* No signal is blocked or ignored, whatever ours do. */
		{ { "/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status" },
		  "SigBlk:\t0000000000000000\n"
		  "SigIgn:\t0000000000000000\n" },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct job *job = start(cases[i].arguments);

		finish(job);
		assert_int_equal(job->code, 0);
		assert_string_equal(output(job, JOB_STDOUT), cases[i].output);
	}
}

/* Whatever other job runs, or has run and has read its own. */
static void start__secret_of_each(void **state)
{
	struct job *slow, *quick, *killed;

	(void)state;
	slow = start(shell("sleep 0.2; cat <&3"));
	secret_begin = 1;
	quick = start(shell("cat <&3"));
	finish(quick);
	finish(slow);
	assert_string_equal(output(slow, JOB_STDOUT),
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF");
	assert_string_equal(output(quick, JOB_STDOUT),
			    "BCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG");
	secret_begin = 2;
	killed = start(shell("cat <&3; kill -KILL $$"));
	finish(killed);
	assert_string_equal(output(killed, JOB_STDOUT),
			    "CDEFGHIJKLMNOPQRSTUVWXYZABCDEFGH");
	secret_begin = 0;
}

static void start__group_and_session(void **state)
{
	const char *const arguments[] = { "/usr/bin/cut", "-d ", "-f5,6",
					  "/proc/self/stat", NULL };

	(void)state;
	for (int own = 0; own < 2; own++) {
		struct job *job;
		char wanted[64];

		table.own_sessions = own;
		job = start(arguments);
		finish(job);
		snprintf(wanted, sizeof(wanted), "%d %d\n", job->pid,
			 own ? job->pid : getsid(0));
		assert_string_equal(output(job, JOB_STDOUT), wanted);
	}
}

/* A process with a terminal, its first in a session of its own, says whether
 * its jobs would have sessions of theirs. */
static void init__session_for_a_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int status;
	pid_t pid;

	(void)state;
	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	for (int terminal = 0; terminal < 2; terminal++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			setsid();
			if (terminal && open(ptsname(master), O_RDWR) < 0)
				_exit(3);
			if (job_table_init(&table, other_node, &allow,
					   &(struct job_limits){ 0 }, false))
				_exit(4);
			_exit(table.own_sessions);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, terminal << 8);
	}
	close(master);
}

static void start__limits(void **state)
{
	struct job *job;

	(void)state;
	job_table_fini(&table);
	begin(&(struct job_limits){ .memory_bytes = 1 * GIB,
				    .file_bytes = 1 * MIB,
				    .process_count = 1234 });
	job = start(shell("ulimit -v; ulimit -f"));
	finish(job);
	/* KiB; blocks of 512 bytes. */
	assert_string_equal(output(job, JOB_STDOUT), "1048576\n2048\n");
}

/* --- output -------------------------------------------------------------- */

static void output__both_streams(void **state)
{
	struct job *job = start(shell("echo out; echo err >&2; printf out"));

	(void)state;
	finish(job);
	assert_string_equal(output(job, JOB_STDOUT), "out\nout");
	assert_string_equal(output(job, JOB_STDERR), "err\n");
	assert_int_equal(job->streams[JOB_STDOUT].total_bytes, 7);
	assert_int_equal(job->streams[JOB_STDERR].total_bytes, 4);
}

/* Numbered lines of 8 bytes: what is kept is the end, all is counted. */
static void output__the_last_is_kept(void **state)
{
	struct job *job = start(shell("seq -w 1000000 1040000"));
	uint8_t part[16];
	const char *text;

	(void)state;
	finish(job);
	assert_int_equal(job->streams[JOB_STDOUT].total_bytes, 8 * 40001);
	text = output(job, JOB_STDOUT);
	assert_int_equal(strlen(text), JOB_OUTPUT_BYTES);
	assert_memory_equal(text, "1031809\n", 8);
	assert_string_equal(text + JOB_OUTPUT_BYTES - 8, "1040000\n");
	/* By offset; one that is gone, or not there yet, gives nothing. */
	assert_int_equal(stream_copy(&job->streams[JOB_STDOUT], 8 * 40000, part,
				     sizeof(part)),
			 8);
	assert_memory_equal(part, "1040000\n", 8);
	assert_int_equal(
		stream_copy(&job->streams[JOB_STDOUT], 0, part, sizeof(part)),
		0);
	assert_int_equal(stream_copy(&job->streams[JOB_STDOUT], 8 * 40001, part,
				     sizeof(part)),
			 0);
}

/* What is still in the pipe when the process ends is not lost. */
static void output__behind_the_end(void **state)
{
	struct job *job = start(shell("printf %60000d 0"));

	(void)state;
	while (!job->reaped && job->state == WIRE_JOB_RUNNING)
		job_work(&table, NULL, 0, NULL, NULL);
	finish(job);
	assert_int_equal(job->streams[JOB_STDOUT].total_bytes, 60000);
}

/* The next job in the same place begins with nothing. */
static void output__of_the_job_before(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * JOBS_MAX + 1; i++) {
		struct job *job = start(shell(i % 2 ? "echo x" : ""));

		finish(job);
		assert_string_equal(output(job, JOB_STDOUT),
				    i % 2 ? "x\n" : "");
	}
}

/* --- killing ------------------------------------------------------------- */

/* By the client's time-out, by the daemon's, or by the lease. */
static void work__time_is_over(void **state)
{
	static const struct {
		uint32_t daemon_ms, asked_ms, lease_ms;
		enum wire_job_state end;
	} cases[] = {
		{ 0, 20, HOUR_MS, WIRE_JOB_TIMED_OUT },
		{ 20, 0, HOUR_MS, WIRE_JOB_TIMED_OUT },
		{ 20, HOUR_MS, HOUR_MS, WIRE_JOB_TIMED_OUT },
		{ 0, 0, 20, WIRE_JOB_LEASE_EXPIRED },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct job *job;

		table.limits.timeout_ms_max = cases[i].daemon_ms;
		job = start_for(sleeper, cases[i].lease_ms, cases[i].asked_ms);
		finish(job);
		assert_int_equal(job->state, cases[i].end);
		assert_true(job->end_ns - job->begin_ns >= 20 * 1000000);
	}
}

static void renew__moves_the_end(void **state)
{
	struct job *job = start_for(sleeper, 1000, 0);

	(void)state;
	assert_int_equal(job->lease_end_ns - job->begin_ns, 1000 * 1000000);
	job_renew(job, job->begin_ns + 5);
	assert_int_equal(job->lease_end_ns - job->begin_ns, 1000 * 1000000 + 5);
}

/* A renewal that comes late, but before job_end_overdue() is called. */
static void renew__before_the_end_is_looked_for(void **state)
{
	struct job *job = start_for(sleeper, 1, 0);

	(void)state;
	while (clock_now_ns() < job->lease_end_ns)
		;
	job_work(&table, NULL, 0, count_end, NULL);
	job_renew(job, job->begin_ns + (uint64_t)HOUR_MS * 1000000);
	job_end_overdue(&table);
	job_kill(job, WIRE_JOB_CANCELLED, clock_now_ns());
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_CANCELLED);
}

static void kill__cancel(void **state)
{
	struct job *job = start(shell("echo $$; exec sleep 1000"));
	pid_t pid;

	(void)state;
	wait_for_pids(job, &pid, 1);
	job_kill(job, WIRE_JOB_CANCELLED, clock_now_ns());
	/* The first reason stays. */
	job_kill(job, WIRE_JOB_TIMED_OUT, clock_now_ns());
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_CANCELLED);
	assert_int_equal(WTERMSIG(job->wait_status), SIGTERM);
	assert_true(is_gone(pid));
	job_kill(job, WIRE_JOB_TIMED_OUT, clock_now_ns());
	assert_int_equal(job->state, WIRE_JOB_CANCELLED);
}

#define CHILD "'echo $$; exec sleep 1000' &)"
#define SLEEP "; echo $$; exec sleep 1000"

/* Each script prints the numbers of its processes: of one that ignores SIGTERM,
 * or is stopped; and of one and its child that has forked twice and made a
 * session, ignores SIGTERM, has cleared its environment, or all of these. */
static void kill__whatever_it_does(void **state)
{
	static const struct {
		const char *script;
		unsigned count;
		int signal; /* that its own process died of, or 0: either */
	} cases[] = {
		{ "trap '' TERM; echo $$; while :; do sleep 0.1; done", 1,
		  SIGKILL },
		{ "echo $$; kill -STOP $$", 1, 0 },
		{ "(setsid sh -c " CHILD SLEEP, 2, 0 },
		{ "(timeout 1000 sh -c " CHILD SLEEP, 2, 0 },
		{ "trap '' TERM; (setsid sh -c " CHILD SLEEP, 2, SIGKILL },
		{ "(setsid env -i /bin/sh -c " CHILD SLEEP, 2, 0 },
		{ "trap '' TERM; (setsid env -i /bin/sh -c " CHILD SLEEP, 2,
		  SIGKILL },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct job *job = start(shell(cases[i].script));
		int signal = cases[i].signal;
		pid_t pids[2];

		wait_for_pids(job, pids, cases[i].count);
		job_kill(job, WIRE_JOB_CANCELLED, clock_now_ns());
		finish(job);
		assert_int_equal(job->state, WIRE_JOB_CANCELLED);
		if (signal)
			assert_int_equal(WTERMSIG(job->wait_status), signal);
		for (unsigned k = 0; k < cases[i].count; k++)
			assert_true(is_gone(pids[k]));
		assert_int_equal(children_left(), 0);
	}
}

/* The job ends when its own process does: the rest must not live on. */
static void end__what_it_leaves_is_killed(void **state)
{
	char fifo[64];
	static const char script[] =
		"(setsid sh -c 'echo $$; echo >$0; exec sleep 1000' $0 &)"
		"; read x <$0; exit 5";
	const char *const arguments[] = { "/bin/sh", "-c", script, fifo, NULL };
	struct job *job;
	pid_t pid;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	job = start(arguments);
	finish(job);
	unlink(fifo);
	assert_int_equal(job->state, WIRE_JOB_EXITED);
	assert_int_equal(job->code, 5);
	wait_for_pids(job, &pid, 1);
	assert_true(is_gone(pid));
	assert_int_equal(children_left(), 0);
}

/* A job's end does not touch the orphans of another job: neither those that
 * have left its group nor those that have cleared the mark, whether the group
 * is in a session of the job's own or not. */
static void end__of_another_job(void **state)
{
	static const char *const orphans[] = {
		"(setsid sh -c " CHILD SLEEP,
		"(env -i /bin/sh -c " CHILD SLEEP,
		/* In a group of its own, but in the session. */
		"(env -i /usr/bin/timeout 1000 /bin/sh -c " CHILD SLEEP,
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(orphans); i++) {
		struct job *stays, *ends;
		pid_t pids[2];

		table.own_sessions = i == 2;
		stays = start(shell(orphans[i]));
		wait_for_pids(stays, pids, 2);
		ends = start(shell("(setsid sleep 1000 &) ; exit 0"));
		finish(ends);
		assert_int_equal(ends->state, WIRE_JOB_EXITED);
		assert_int_equal(stays->state, WIRE_JOB_RUNNING);
		assert_int_equal(kill(pids[0], 0), 0);
		assert_int_equal(kill(pids[1], 0), 0);
		job_kill(stays, WIRE_JOB_CANCELLED, clock_now_ns());
		finish(stays);
		assert_true(is_gone(pids[0]));
		assert_int_equal(children_left(), 0);
	}
}

/* 2^7 processes that all fork at the same time. */
static void kill__a_fork_storm(void **state)
{
	struct job *job = start(shell(
		"f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi"
		"; echo x; exec setsid sleep 1000; }; f 6 & "
		"exec sleep 1000"));

	(void)state;
	while (job->streams[JOB_STDOUT].total_bytes < 40) {
		assert_int_equal(job->state, WIRE_JOB_RUNNING);
		turn();
	}
	job_kill(job, WIRE_JOB_CANCELLED, clock_now_ns());
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_CANCELLED);
	assert_int_equal(children_left(), 0);
}

static void init__kills_what_an_earlier_daemon_left(void **state)
{
	struct job *job =
		start(shell("(setsid sh -c 'echo $$; exec sleep 1000' &)"
			    "; echo $$; exec sleep 1000"));
	struct job_table *other = calloc(1, sizeof(*other));
	pid_t pids[2];

	(void)state;
	assert_non_null(other);
	wait_for_pids(job, pids, 2);
	/* Another node's are none of its business. */
	assert_int_equal(job_table_init(other, other_node, &allow,
					&(struct job_limits){ 0 }, use_groups),
			 0);
	assert_int_equal(kill(pids[0], 0), 0);
	job_table_fini(other);
	assert_int_equal(job_table_init(other, node, &allow,
					&(struct job_limits){ 0 }, use_groups),
			 0);
	finish(job);
	assert_int_equal(job->state, WIRE_JOB_KILLED);
	assert_int_equal(job->code, SIGKILL);
	assert_true(is_gone(pids[0]));
	assert_true(is_gone(pids[1]));
	job_table_fini(other);
	free(other);
}

/* The daemon itself is killed: its jobs' own processes die with it. */
static void start__dies_with_the_daemon(void **state)
{
	int out[2];
	pid_t daemon;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(out), 0);
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		struct job *job = start(shell("exec sleep 1000"));

		if (write(out[1], &job->pid, sizeof(job->pid)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(out[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(kill(pid, 0), 0);
	kill(daemon, SIGKILL);
	assert_int_equal(waitpid(daemon, NULL, 0), daemon);
	/* We are its subreaper. */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(out[0]);
	close(out[1]);
}

static void fini__no_process_is_left(void **state)
{
	struct job *job =
		start(shell("trap '' TERM; (setsid sleep 1000 &); echo $$; "
			    "while :; do sleep 0.1; done"));
	pid_t pid;

	(void)state;
	wait_for_pids(job, &pid, 1);
	job_table_fini(&table);
	assert_true(is_gone(pid));
	assert_int_equal(children_left(), 0);
	set_up(NULL);
}

static void work__descriptors_are_given_back(void **state)
{
	const char *const none[] = { "/none", NULL };
	unsigned before;

	(void)state;
	job_table_prepare(&table);
	before = open_descriptors();
	for (unsigned i = 0; i < 100; i++) {
		start(none);
		finish(start(shell("echo x; (setsid sleep 1000 &)")));
		finish(start(shell("exit 0")));
	}
	job_table_prepare(&table);
	assert_int_equal(open_descriptors(), before);
}

/* A process that a job had passed its descriptors to keeps copies of them:
 * these are as good as what SCM_RIGHTS gives. */
struct kept {
	int output, secret;
};

static struct kept keep(const struct job *job)
{
	const struct stream *out = &job->streams[JOB_STDOUT];

	assert_true(fcntl(out->fd, F_GETFL) & O_NONBLOCK);
	assert_false(fcntl(out->write_fd, F_GETFL) & O_NONBLOCK);
	return (struct kept){
		.output = dup(out->write_fd),
		.secret = dup(job->secret.fd),
	};
}

/* The keeper reads the secret that it has, which must be none by now, writes to
 * the output and moves the offset. */
static void use_kept(struct kept kept)
{
	static const uint8_t zeros[WIRE_SECRET_BYTES];
	uint8_t bytes[2 * WIRE_SECRET_BYTES];

	assert_int_equal(pread(kept.secret, bytes, sizeof(bytes), 0),
			 WIRE_SECRET_BYTES);
	assert_memory_equal(bytes, zeros, sizeof(zeros));
	assert_int_equal(write(kept.output, "injected", 8), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(lseek(kept.secret, 32, SEEK_SET), 32);
	close(kept.output);
	close(kept.secret);
}

static void end__what_was_kept_of_it_is_of_no_use(void **state)
{
	static const char *const ends[] = { "exit 0", "kill -KILL $$" };

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < 2 * ARRAY_LEN(ends); i++) {
		struct job *first = start(shell(ends[i % 2]));
		struct kept kept = keep(first);
		struct job *second;

		finish(first);
		second = start(shell("sleep 0.05; cat <&3; cat <&3 >&2"));
		use_kept(kept);
		finish(second);
		assert_string_equal(output(second, JOB_STDOUT),
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF");
		assert_string_equal(output(second, JOB_STDERR), "");
	}
	signal(SIGPIPE, SIG_DFL);
}

#define JOB_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	JOB_TEST(start__exit_status),
	JOB_TEST(start__killed_by_a_signal),
	JOB_TEST(start__refused),
	JOB_TEST(start__a_link_within),
	JOB_TEST(start__full_table),
	JOB_TEST(find__the_oldest_is_forgotten),
	JOB_TEST(start__environment),
	JOB_TEST(start__hosts_are_not_known),
	JOB_TEST(start__what_it_is_given),
	JOB_TEST(start__secret_of_each),
	JOB_TEST(start__group_and_session),
	JOB_TEST(init__session_for_a_terminal),
	JOB_TEST(start__limits),
	JOB_TEST(output__both_streams),
	JOB_TEST(output__the_last_is_kept),
	JOB_TEST(output__behind_the_end),
	JOB_TEST(output__of_the_job_before),
	JOB_TEST(work__time_is_over),
	JOB_TEST(renew__moves_the_end),
	JOB_TEST(renew__before_the_end_is_looked_for),
	JOB_TEST(kill__cancel),
	JOB_TEST(kill__whatever_it_does),
	JOB_TEST(end__what_it_leaves_is_killed),
	JOB_TEST(end__of_another_job),
	JOB_TEST(kill__a_fork_storm),
	JOB_TEST(init__kills_what_an_earlier_daemon_left),
	JOB_TEST(start__dies_with_the_daemon),
	JOB_TEST(fini__no_process_is_left),
	JOB_TEST(work__descriptors_are_given_back),
	JOB_TEST(end__what_was_kept_of_it_is_of_no_use),
};

static int run(const char *name)
{
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

/* In this process from now on.  False: filters are denied themselves. */
static bool deny_clone3(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &namespace_filter) ==
		       0;
}

int main(void)
{
	const struct sigaction action = { .sa_handler = on_child,
					  .sa_flags = SA_NOCLDSTOP };

	sigset_t block;
	int ret;

	/* What this was started with, such as nohup(1), is not to be seen. */
	process_default_signals();
	snprintf(node, sizeof(node), "test-job-%d:1", (int)getpid());
	snprintf(node_variable, sizeof(node_variable), "BLINK_NODE=%s", node);
	snprintf(other_node, sizeof(other_node), "%s1", node);
	/* What we were given is not ours to test. */
	syscall(SYS_close_range, 3, ~0u, /* CLOSE_RANGE_CLOEXEC */ 4);
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &open_mask);
	sigdelset(&open_mask, SIGCHLD);
	sigaction(SIGCHLD, &action, NULL);
	if (!mkdtemp(folder) || allowlist_add(&allow, "/bin") < 0 ||
	    allowlist_add(&allow, "/usr/bin") < 0 ||
	    allowlist_add(&allow, folder) < 0)
		return 1;
	ret = run("job");
	use_groups = true;
	ret += run("job in a cgroup");
	/* As under systemd's RestrictNamespaces=, and to the end. */
	if (deny_clone3())
		ret += run("job in a cgroup, without clone3");
	allowlist_free(&allow);
	rmdir(folder);
	return ret;
}
