/*
 * jobgroup.h - a cgroup for each job, where we may make one
 *
 * What cgroup v2 can do and nothing else can: kill all processes of a job at
 * once (cgroup.kill: who forks meanwhile forks a dead process), whatever they
 * did to hide, and count them (pids.max).  Below the cgroup we are in, which
 * systemd makes ours by Delegate=pids:
 *
 *      blinkd-self            we, if we are alone there: a cgroup that gives
 *                             its children controllers should hold no process
 *      blinkd-ADDRESS:PORT    of this daemon; what an earlier one of the same
 *                             name left in there is killed
 *      blinkd-.../0 ...       one for each of the jobs that run at the same
 *                             time; made when first needed, and used again
 *                             unless it was killed: Linux 6.18 was seen to kill
 *                             whoever starts in it after that
 *
 * Any of this may be missing; then jobs have no group (fd -1), and are killed
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
	int parent_fd; /* the cgroup that ours is in; -1: we may make none */
	int fd;	       /* ours, which holds those of the jobs */
	char name[80];
	bool counts; /* there is pids.max */
	uint64_t process_count;
	unsigned made; /* ever: the next one's number */
	unsigned free_count;
	struct jobgroup free[JOBGROUPS_MAX];
};

/* process_count: for each job, if it can be had; 0: no limit.  Never fails: the
 * pool may be one that has no groups. */
void jobgroup_open(struct jobgroup_pool *pool, const char *node,
		   uint64_t process_count);

/* A group without processes; or one with fd -1. */
struct jobgroup jobgroup_take(struct jobgroup_pool *pool);

/* Give it back: it has no process.  It becomes none. */
void jobgroup_give(struct jobgroup_pool *pool, struct jobgroup *group);

/* SIGKILL to all.  False: there is no group, or the kernel cannot (before
 * Linux 5.14). */
bool jobgroup_kill(struct jobgroup *group);

bool jobgroup_is_empty(const struct jobgroup *group);

/* All groups were given back. */
void jobgroup_close(struct jobgroup_pool *pool);

#endif /* JOBGROUP_H */
