/*
 * proctree.h - find processes by descent and by mark, and kill them all
 *
 * For jobs without a cgroup.  We are the subreaper of our descendants: when a
 * process dies its children become ours, so that whatever a job has left behind
 * is, or descends from, a child of ours, however often it forked and whatever
 * group or session it made.  What an earlier daemon left is known by a variable
 * of its environment.
 *
 * /proc shows no one instant, and processes fork while it is read.  Hence all
 * are stopped first, since who is stopped forks no more; round by round until
 * a round finds nobody new; then all are killed.
 */
#ifndef PROCTREE_H
#define PROCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCTREE_MAX 32768 /* processes of the machine: the usual pid_max */

struct proctree_process {
	pid_t pid, parent, group, session;
	char state;  /* of /proc/PID/stat */
	bool marked; /* to be killed */
	uint32_t thread_count;
	uint64_t start_ticks; /* with pid: who it is, pids being used again */
};

struct proctree {
	unsigned count;
	struct proctree_process processes[PROCTREE_MAX];
};

/* Is this child of ours one to kill? */
typedef bool proctree_choice(const struct proctree_process *process,
			     void *context);

/* Has it anything left that can run?  A zombie has not. */
bool proctree_lives(const struct proctree_process *process);

/* Our living children only, from the kernel's list where there is one. */
void proctree_read_children(struct proctree *tree);

/* "NAME=value" is in the environment with which it began its program. */
bool proctree_has_variable(pid_t pid, const char *variable);

/* Kill the children of ours that are chosen, and all that descends from them;
 * returns how many got the signal: 0, when nobody is left.  They are to be
 * reaped, and it is to be called again, until then. */
unsigned proctree_kill_children(struct proctree *tree, proctree_choice *choice,
				void *context);

/* The same with all processes that have variable, but for us. */
unsigned proctree_kill_marked(struct proctree *tree, const char *variable);

#endif /* PROCTREE_H */
