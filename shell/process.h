/*
 * process.h - start a program by the cheapest safe way
 *
 * The new process is made by clone3(2) with CLONE_VM and CLONE_VFORK, as
 * vfork(2) and posix_spawn(3) do: nothing is copied, so that the cost does not
 * grow with the caller's memory, and a failing execve(2) tells its errno
 * through that memory.  The process gets a process group of its own, no signal
 * handler, an empty signal mask, the descriptors 0 to 3 and no other (the
 * caller's are all close-on-exec), and dies with the thread that started it
 * (PR_SET_PDEATHSIG).  A signal that the caller ignores is ignored by the
 * program, too: call process_default_signals() first.
 *
 * The process gets a session of its own only if the caller asks for one, to
 * keep the program from the caller's terminal: for each session the kernel
 * makes a group for the scheduler (sched_autogroup) and frees it later, which
 * costs an eighth of a start when many start at once.
 *
 * Only a program of one thread may call process_start(): the stack of the new
 * process is static.
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

/* The caller owns all that the pointers point to. */
struct process_request {
	const char *path;	      /* for execve(), which does not search */
	const char *const *arguments; /* both are ended by NULL */
	const char *const *environment;
	int stdin_fd, stdout_fd, stderr_fd; /* become 0, 1, 2; all above 2 */
	int secret_fd;			    /* becomes PROCESS_SECRET_FD */
	bool own_session;
	bool no_namespaces; /* namespace_filter.h */
	int cgroup_fd;	    /* the folder of the cgroup to start it in, or -1 */
	const struct process_limit *limits;
	unsigned limit_count;
};

/* Sets all signals to their default, since the programs that we start would
 * ignore what we ignore: our parent may have ignored some (nohup(1) does), and
 * the C library keeps two for itself.  Call it once, before setting handlers.
 */
void process_default_signals(void);

/* Returns the new process, which runs its program now; or -errno, and there is
 * no process. */
pid_t process_start(const struct process_request *request);

#endif /* PROCESS_H */
