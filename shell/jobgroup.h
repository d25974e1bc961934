/*
 * jobgroup.h - a cgroup for each job, where we may make one
 *
 * cgroup v2 alone can kill all processes of a job at once (cgroup.kill: a
 * process that forks meanwhile forks a dead one), whatever they did to hide,
 * and count them (pids.max).  Below the cgroup that the daemon is in, which
 * systemd delegates to it by Delegate=pids:
 *
 *      blinkd-self
 *              holds the daemon, if it is alone in the cgroup above: a cgroup
 *              that gives its children controllers should hold no process.
 *
 *      blinkd-ADDRESS:PORT
 *              belongs to this daemon.  The daemon kills what an earlier one of
 *              the same name left in it.
 *
 *      blinkd-ADDRESS:PORT/0, 1, 2, ...
 *              hold a job each.  They are made when they are first needed, and
 *              used again unless they were killed: Linux 6.18 was seen to kill
 *              a process that starts in such a cgroup after that.
 *
 * Any of these may be missing; then jobs have no group (fd -1), and are killed
 * by way of proctree.h.
 */
#ifndef JOBGROUP_H
#define JOBGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define JOBGROUPS_MAX 64

struct jobgroup {
	int fd; /* the folder, for CLONE_INTO_CGROUP; -1: there is none */
	unsigned number; /* its name */
	bool killed;
};

struct jobgroup_pool {
	int parent_fd; /* the cgroup that the daemon was in; -1: unusable */
	int fd;	       /* blinkd-ADDRESS:PORT, which holds those of the jobs */
	char name[80];
	bool counts; /* there is pids.max */
	uint64_t process_count;
	unsigned made; /* how many were made: the number of the next one */
	unsigned free_count;
	struct jobgroup free[JOBGROUPS_MAX];
};

/* process_count limits the processes of each job, if the kernel can count them;
 * 0 is no limit.  Never fails: the pool may be one that gives no groups. */
void jobgroup_open(struct jobgroup_pool *pool, const char *node,
		   uint64_t process_count);

/* Returns a group without processes; or one with fd -1. */
struct jobgroup jobgroup_take(struct jobgroup_pool *pool);

/* Gives a group back, in which no process is left; its fd becomes -1. */
void jobgroup_give(struct jobgroup_pool *pool, struct jobgroup *group);

/* Sends SIGKILL to all processes of the group.  False: there is no group, or
 * the kernel cannot do it (before Linux 5.14). */
bool jobgroup_kill(struct jobgroup *group);

bool jobgroup_is_empty(const struct jobgroup *group);

/* Call it when all groups have been given back. */
void jobgroup_close(struct jobgroup_pool *pool);

#endif /* JOBGROUP_H */
