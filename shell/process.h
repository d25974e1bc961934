/*
 * process.h - start a program by the cheapest safe way
 *
 * clone3(2) with CLONE_VM and CLONE_VFORK, as vfork(2) and posix_spawn(3) do:
 * nothing is copied, so that the cost does not grow with our own memory, and a
 * failing execve(2) tells its errno through that memory.  The process gets a
 * process group of its own, none of our handlers (what we ignore it ignores,
 * too: blinkd ignores nothing), an empty signal mask, descriptors 0 to 3 and
 * nothing else (ours are all close-on-exec), and dies with the thread that
 * started it (PR_SET_PDEATHSIG).
 *
 * A session of its own it gets only if asked for, which is to keep it from our
 * terminal: with each session the kernel makes a group for the scheduler
 * (sched_autogroup), and frees it later, which costs an eighth of a start when
 * many start at once.
 *
 * Only for programs of one thread: the stack of the new process is static.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_SECRET_FD 3
#define PROCESS_LIMITS_MAX 8

struct process_limit {
	int resource; /* RLIMIT_AS ...: soft and hard limit become value */
	uint64_t value;
};

struct process {
	const char *path;	      /* for execve(): no search */
	const char *const *arguments; /* both ended by NULL */
	const char *const *environment;
	int stdin_fd, stdout_fd, stderr_fd; /* become 0, 1, 2; all above 2 */
	int secret_fd;			    /* becomes PROCESS_SECRET_FD */
	bool own_session;
	int cgroup_fd; /* the folder of the cgroup to start it in, or -1 */
	const struct process_limit *limits;
	unsigned limit_count;
};

/* What we ignore, the programs we start would ignore, too.  Whoever started us
 * may have ignored some (nohup(1) does), and the two that the C library keeps
 * for itself: set all to their default.  Once, before any handler. */
void process_default_signals(void);

/* The new process, which runs its program now, or -errno and there is none. */
pid_t process_start(const struct process *process);

#endif /* PROCESS_H */
