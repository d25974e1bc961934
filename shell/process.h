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
 * Some of a start needs no program, and nearly all of one that has to join a
 * cgroup without clone3().  It may be done ahead, by a process that then waits
 * to be told its program: a standby.  It shares our memory until it runs that,
 * as a thread would, and so does nothing meanwhile but sleep; of our
 * descriptors it holds none.
 *
 * Only for programs of one thread: the stack of the new process is static, or
 * the standby's own.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_SECRET_FD 3
#define PROCESS_LIMITS_MAX 8
#define PROCESS_STACK_BYTES 16384

struct process_limit {
	int resource; /* RLIMIT_AS ...: soft and hard limit become value */
	uint64_t value;
};

/* All that a process is given but its program. */
struct process_place {
	int stdin_fd, stdout_fd, stderr_fd; /* become 0, 1, 2; all above 2 */
	int secret_fd;			    /* becomes PROCESS_SECRET_FD */
	bool own_session;
	int cgroup_fd; /* the folder of the cgroup to start it in, or -1 */
	const struct process_limit *limits;
	unsigned limit_count;
};

struct process_program {
	const char *path;	      /* for execve(): no search */
	const char *const *arguments; /* both ended by NULL */
	const char *const *environment;
};

/* What a new process reads and writes as long as it shares our memory. */
struct process_birth {
	const struct process_place *place;
	const struct process_program *program;
	pid_t parent;
	int error;	   /* an errno value: why there is no program */
	uint32_t released; /* may it run its program?  What it sleeps on */
	uint32_t shares;   /* our memory; the kernel makes it 0 */
};

/* Stays where it is while it has a process. */
struct process_standby {
	pid_t pid; /* 0: none */
	struct process_place place;
	struct process_birth birth;
	_Alignas(16) uint8_t stack[PROCESS_STACK_BYTES];
};

/* What we ignore, the programs we start would ignore, too.  Whoever started us
 * may have ignored some (nohup(1) does), and the two that the C library keeps
 * for itself: set all to their default.  Once, before any handler. */
void process_default_signals(void);

/* The new process, which runs its program now, or -errno and there is none. */
pid_t process_start(const struct process_place *place,
		    const struct process_program *program);

/*
 * Make standby, which has none, one of this place: the limits are borrowed,
 * the descriptors may be closed, since it is given copies.  Returns before all
 * is done; what fails is seen by process_release().  0, or -errno and there is
 * none.
 */
int process_prepare(struct process_standby *standby,
		    const struct process_place *place);

/* As process_start(), by a standby, which has none then; 0: it had none, or
 * that had died. */
pid_t process_release(struct process_standby *standby,
		      const struct process_program *program);

/* Kill it, if there is one. */
void process_dismiss(struct process_standby *standby);

#endif /* PROCESS_H */
