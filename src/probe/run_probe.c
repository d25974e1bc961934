/* run_probe.c - runs a program once, and measures it */
#include "probe/run_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/proctree.h"
#include "system/small_file.h"

/* A program that has not ended this long after SIGTERM gets SIGKILL. */
#define GRACE_S 2
/* Processes that were killed are waited for: they may have much memory to give
 * back.  Those of another user, as by sudo, may not be killed. */
#define LEFT_WAIT_NS ((uint64_t)10 * 1000000000)

/* --- signals that end the program ------------------------------------------
 *
 * They are blocked but while the program runs.  The handler acts itself, so
 * that none is lost between the last look at a flag and the wait.
 */

static const int ending_signals[] = { SIGINT, SIGHUP, SIGTERM, SIGALRM };
static volatile sig_atomic_t program, is_ending, is_timed_out;

static void end_program(int number)
{
	int saved = errno;

	if (number == SIGALRM && !is_ending)
		is_timed_out = 1;
	kill((pid_t)program, is_ending ? SIGKILL : SIGTERM);
	is_ending = 1;
	alarm(GRACE_S);
	errno = saved;
}

/* What our parent has us ignore, the program ignores, too, and goes on; but for
 * SIGCHLD: the kernel would let nobody wait for what has ended. */
static void catch_signals(sigset_t *set)
{
	struct sigaction action = { .sa_handler = end_program };
	struct sigaction before;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(set);
	for (unsigned i = 0; i < ARRAY_LEN(ending_signals); i++) {
		sigaction(ending_signals[i], NULL, &before);
		if (before.sa_handler == SIG_IGN)
			continue;
		sigaction(ending_signals[i], &action, NULL);
		sigaddset(set, ending_signals[i]);
	}
	/* It is waited for when processes are left. */
	sigaddset(set, SIGCHLD);
	sigprocmask(SIG_BLOCK, set, NULL);
}

static void set_timeout(uint64_t timeout_ms)
{
	struct itimerval timer = {
		.it_value = { .tv_sec = (time_t)(timeout_ms / 1000),
			      .tv_usec =
				      (suseconds_t)(timeout_ms % 1000 * 1000) },
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* --- bytes ---------------------------------------------------------------- */

struct io_bytes {
	uint64_t read, written;
};

static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long bytes;

	/* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
	if (!at || sscanf(at + strlen(name), ": %llu", &bytes) != 1)
		return RUN_PROBE_UNKNOWN;
	return bytes;
}

static struct io_bytes io_bytes_now(void)
{
	char text[512];

	if (!small_file_read("/proc/self/io", text, sizeof(text)))
		text[0] = '\0';
	return (struct io_bytes){ .read = field(text, "\nread_bytes"),
				  .written = field(text, "\nwrite_bytes") };
}

static uint64_t difference(uint64_t before, uint64_t after)
{
	return after == RUN_PROBE_UNKNOWN ? after : after - before;
}

/* --- processes that are left ---------------------------------------------- */

static bool is_any(const struct proctree_process *process, void *context)
{
	(void)process;
	(void)context;
	return true;
}

/* Reaps what has ended.  Returns true if children are left. */
static bool reap(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
	return pid == 0;
}

/* Returns how many there were.  One that was forked while they were killed is
 * killed in the next round. */
static unsigned end_left_processes(void)
{
	static struct proctree tree;
	const struct timespec round = { .tv_nsec = 100000000 };
	uint64_t begin_ns = clock_now_ns();
	unsigned count = 0;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (reap() && clock_now_ns() - begin_ns < LEFT_WAIT_NS) {
		unsigned killed = proctree_kill_children(&tree, is_any, NULL);

		count = MAX(count, killed);
		sigtimedwait(&child, NULL, &round);
	}
	return count;
}

/* --- the program ---------------------------------------------------------- */

/* Returns the signal that has stopped it on the way, or 0. */
static int wait_for(pid_t pid, int *status)
{
	int stopped_by = 0;

	for (;;) {
		if (wait4(pid, status, WUNTRACED, NULL) < 0)
			continue; /* EINTR: end_program() has run */
		if (!WIFSTOPPED(*status))
			return stopped_by;
		stopped_by = WSTOPSIG(*status);
		kill(pid, SIGKILL);
	}
}

/* The program leads a process group, so that one that signals its own group
 * does not reach us.  Returns 0, or an errno value. */
static int run(const struct run_probe *probe, int stdout_fd,
	       const sigset_t *blocked, struct run_figures *figures)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	struct timespec now;
	sigset_t none;
	pid_t pid;
	int error;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
						      POSIX_SPAWN_SETPGROUP);
	clock_gettime(CLOCK_REALTIME, &now);
	figures->begin_unix_ns =
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	figures->begin_ns = clock_now_ns();
	error = posix_spawn(&pid, probe->argv[0], &actions, &attributes,
			    probe->argv, environ);
	if (error == 0) {
		program = pid;
		sigprocmask(SIG_UNBLOCK, blocked, NULL);
		figures->stopped_by = wait_for(pid, &figures->wait_status);
		figures->end_ns = clock_now_ns();
		sigprocmask(SIG_BLOCK, blocked, NULL);
	}
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return error;
}

/* Returns a descriptor, or -errno with *failure filled. */
static int prepare(struct run_probe *probe, struct failure *failure)
{
	int fd = open(probe->stdout_path,
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return failure_set(failure, EXIT_FILE, probe->stdout_path,
				   errno, "");
	if (probe->directory && chdir(probe->directory) < 0)
		return failure_set(failure, EXIT_FILE, probe->directory, errno,
				   "");
	/* The program gets no descriptor but the first three. */
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	event_counters_open(&probe->counters);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return fd;
}

/* A parent that ended before it was asked for the signal sends none. */
static bool follow(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) == 0 &&
	       getppid() == parent;
}

int run_probe_run(struct run_probe *probe, struct run_figures *figures,
		  struct failure *failure)
{
	int fd = prepare(probe, failure);
	struct io_bytes before, after;
	sigset_t blocked;
	int error;

	if (fd < 0)
		return fd;
	catch_signals(&blocked);
	if (probe->parent && !follow(probe->parent))
		return failure_set(failure, EXIT_WRONG, "--parent", 0,
				   "has ended");
	before = io_bytes_now();
	set_timeout(probe->timeout_ms);
	error = run(probe, fd, &blocked, figures);
	set_timeout(0);
	close(fd);
	if (error)
		return failure_set(failure, EXIT_FILE, probe->argv[0], error,
				   "cannot start");
	figures->timed_out = is_timed_out;
	figures->left_processes = end_left_processes();
	getrusage(RUSAGE_CHILDREN, &figures->usage);
	after = io_bytes_now();
	figures->read_bytes = difference(before.read, after.read);
	figures->written_bytes = difference(before.written, after.written);
	for (unsigned i = 0; i < probe->counters.count; i++)
		figures->counts[i] = event_counters_read(&probe->counters, i);
	return 0;
}
