/* run_probe.c - runs a program once, and measures it */
#include "probe/run_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
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
/* The first start of a process takes some 20 us longer than the next. */
#define WARM_UPS 3

/* --- signals that end the program ------------------------------------------
 *
 * They are blocked from before the start on, and taken one by one: so none
 * comes too early, and no handler runs in memory that a new process shares.
 */

static const int ending_signals[] = { SIGINT, SIGHUP, SIGTERM, SIGALRM };

/* What our parent has us ignore, the program ignores, too, and goes on; but for
 * SIGCHLD: the kernel would let nobody wait for what has ended. */
static void block_signals(sigset_t *set)
{
	struct sigaction action;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (unsigned i = 0; i < ARRAY_LEN(ending_signals); i++) {
		sigaction(ending_signals[i], NULL, &action);
		if (action.sa_handler != SIG_IGN)
			sigaddset(set, ending_signals[i]);
	}
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
		return EVENT_COUNTERS_UNKNOWN;
	return bytes;
}

static struct io_bytes io_bytes_now(void)
{
	char text[512];

	if (!small_file_read(text, sizeof(text), "/proc/self/io"))
		text[0] = '\0';
	return (struct io_bytes){ .read = field(text, "\nread_bytes"),
				  .written = field(text, "\nwrite_bytes") };
}

static uint64_t difference(uint64_t before, uint64_t after)
{
	return after == EVENT_COUNTERS_UNKNOWN ? after : after - before;
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

/* --- the start --------------------------------------------------------------
 *
 * This file calls clone(2) as posix_spawn(3) does, but that of musl takes a
 * pipe for the errno of a failing execve(2), some 9 us more.  The new process
 * shares our memory until it executes the program, while we sleep: it makes
 * system calls only, since a function of the C library might change what is
 * ours.
 */

#define STACK_BYTES 16384
/* The size of the kernel's sigset_t, which is not that of the C library. */
#define KERNEL_SIGSET_BYTES 8

/* Sanitizers would take the new process's stack for an overflow of ours. */
#define UNINSTRUMENTED                                                         \
	__attribute__((no_sanitize("address")))                                \
	__attribute__((no_sanitize("thread")))                                 \
	__attribute__((no_sanitize("undefined")))

struct image {
	const char *path;
	char *const *argv;
	int stdout_fd;
	int error; /* an errno value: why there is no program */
};

static _Alignas(16) uint8_t stack[STACK_BYTES];

UNINSTRUMENTED static int execute(void *context)
{
	const uint64_t no_signals = 0;
	struct image *image = context;

	/* A program that signals its own group does not reach us. */
	syscall(SYS_setpgid, 0, 0);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL,
		KERNEL_SIGSET_BYTES);
	if (syscall(SYS_dup3, image->stdout_fd, STDOUT_FILENO, 0) >= 0)
		syscall(SYS_execve, image->path, image->argv, environ);
	image->error = errno;
	return 127;
}

/* Returns the process, which runs its program now; or -errno. */
static pid_t start(const char *path, char *const *argv, int stdout_fd)
{
	struct image image = { .path = path,
			       .argv = argv,
			       .stdout_fd = stdout_fd };
	pid_t pid = clone(execute, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | SIGCHLD, &image);

	if (pid < 0)
		return -errno;
	if (image.error) {
		waitpid(pid, NULL, 0);
		return -image.error;
	}
	return pid;
}

/* --- the program ---------------------------------------------------------- */

/* Sends the first time SIGTERM, and each next time SIGKILL. */
static void end_program(pid_t pid, bool *is_ending)
{
	kill(pid, *is_ending ? SIGKILL : SIGTERM);
	*is_ending = true;
	alarm(GRACE_S);
}

static void wait_for(pid_t pid, const sigset_t *signals,
		     struct run_figures *figures)
{
	bool is_ending = false;

	for (;;) {
		int signal = sigwaitinfo(signals, NULL);

		if (signal == SIGALRM && !is_ending)
			figures->timed_out = true;
		if (signal > 0 && signal != SIGCHLD)
			end_program(pid, &is_ending);
		if (wait4(pid, &figures->wait_status, WNOHANG | WUNTRACED,
			  NULL) <= 0)
			continue;
		if (!WIFSTOPPED(figures->wait_status))
			return;
		figures->stopped_by = WSTOPSIG(figures->wait_status);
		kill(pid, SIGKILL);
	}
}

/* Between the readings of the clock.  Returns 0, or an errno value. */
static int run(const struct run_probe *probe, int stdout_fd,
	       const sigset_t *signals, struct run_figures *figures)
{
	pid_t pid;

	figures->begin_unix_ns = clock_read_ns(CLOCK_REALTIME);
	figures->begin_ns = clock_now_ns();
	pid = start(probe->path, probe->argv, stdout_fd);
	if (pid < 0)
		return -pid;
	wait_for(pid, signals, figures);
	figures->end_ns = clock_now_ns();
	return 0;
}

/* Goes the same way with a program that ends at once. */
static void warm_up(int stdout_fd)
{
	static char self[] = "/proc/self/exe", nothing[] = "nothing";
	char *const argv[] = { self, nothing, NULL };

	for (unsigned i = 0; i < WARM_UPS; i++) {
		pid_t pid = start(self, argv, stdout_fd);

		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

static struct rusage usage_since(const struct rusage *before)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	timersub(&usage.ru_utime, &before->ru_utime, &usage.ru_utime);
	timersub(&usage.ru_stime, &before->ru_stime, &usage.ru_stime);
	usage.ru_minflt -= before->ru_minflt;
	usage.ru_majflt -= before->ru_majflt;
	usage.ru_nvcsw -= before->ru_nvcsw;
	usage.ru_nivcsw -= before->ru_nivcsw;
	return usage;
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
	struct rusage usage;
	sigset_t signals;
	int error;

	if (fd < 0)
		return fd;
	block_signals(&signals);
	if (probe->parent && !follow(probe->parent))
		return failure_set(failure, EXIT_WRONG, "--parent", 0,
				   "has ended");
	warm_up(fd);
	event_counters_open(&probe->counters);
	getrusage(RUSAGE_CHILDREN, &usage);
	before = io_bytes_now();
	set_timeout(probe->timeout_ms);
	error = run(probe, fd, &signals, figures);
	set_timeout(0);
	close(fd);
	if (error)
		return failure_set(failure, EXIT_FILE, probe->path, error,
				   "cannot start");
	figures->left_processes = end_left_processes();
	figures->usage = usage_since(&usage);
	after = io_bytes_now();
	figures->read_bytes = difference(before.read, after.read);
	figures->written_bytes = difference(before.written, after.written);
	for (unsigned i = 0; i < probe->counters.count; i++)
		figures->counts[i] = event_counters_read(&probe->counters, i);
	return 0;
}
