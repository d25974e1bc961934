/*
 * job_processes.h - the processes of a job: are there any left, kill them all
 *
 * By the job's cgroup if it has one (jobgroup.h), else by descent and by mark
 * (proctree.h).
 */
#ifndef JOB_PROCESSES_H
#define JOB_PROCESSES_H

#include <stdbool.h>

#include "shell/job.h"

/* Sends SIGKILL to all processes of the job.  Without a cgroup it also goes to
 * those whose job cannot be told. */
void job_processes_kill(struct job_table *table, struct job *job);

/* True if any process of the job lives.  Its own one has been reaped. */
bool job_processes_live(struct job_table *table, struct job *job);

/* Kills the processes that an earlier daemon of this node left running, known
 * by node_variable in their environment. */
void job_processes_kill_earlier(const char *node_variable);

#endif /* JOB_PROCESSES_H */
