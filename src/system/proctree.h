/*
 * proctree.h - find processes by descent and by mark, and kill them all
 *
 * Jobs without a cgroup need it, and programs that are timed.  The caller is
 * the subreaper of its descendants: when a process dies its children become the
 * caller's, so that all that a job has left behind is, or descends from, a
 * child of the caller, however often it forked and whatever group or session it
 * made.  Processes that an earlier daemon left are known by a variable of their
 * environment.
 *
 * /proc does not show one instant: processes fork while it is read.  Hence all
 * are stopped first, since a stopped process does not fork; round by round
 * until a round finds no new process; then all are killed.
 */
#ifndef PROCTREE_H
#define PROCTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCTREE_MAX 32768 /* processes of the machine: the usual pid_max */

struct proctree_process {
	pid_t pid, parent, group, session;
	char state;  /* of /proc/PID/stat */
	bool marked; /* to be killed */
	uint32_t thread_count;
	uint64_t start_ticks; /* identifies it with pid, as pids are used again
			       */
};

struct proctree {
	unsigned count;
	struct proctree_process processes[PROCTREE_MAX];
};

/* Returns whether to kill this child of ours. */
typedef bool proctree_choice(const struct proctree_process *process,
			     void *context);

/* Reads our living children only, from the list that the kernel may have. */
void proctree_read_children(struct proctree *tree);

/* True if variable, "NAME=value", is in the environment that the program was
 * given. */
bool proctree_has_variable(pid_t pid, const char *variable);

/* Kills the children of ours that choice() returns true for, and all that
 * descend from them.  Returns how many got the signal.  Reap them and call it
 * again until it returns 0: then no process is left. */
unsigned proctree_kill_children(struct proctree *tree, proctree_choice *choice,
				void *context);

/* Does the same with all processes that have variable, except us. */
unsigned proctree_kill_marked(struct proctree *tree, const char *variable);

#endif /* PROCTREE_H */
