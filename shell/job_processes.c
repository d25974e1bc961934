/*
 * job_processes.c - the processes of a job: are there any left, kill them
 * all
 */
#include <signal.h>
#include <time.h>

#include "shell/environment.h"
#include "shell/job_processes.h"
#include "system/proctree.h"

/* The tree is static because it is large; each call fills it anew. */
static struct proctree tree;

/* Gives up after 100 rounds: a process that cannot die, being stuck in the
 * kernel, must not keep the daemon from its work. */
void job_processes_kill_earlier(const char *node_variable)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (unsigned i = 0; i < 100; i++) {
		if (proctree_kill_marked(&tree, node_variable) == 0)
			return;
		nanosleep(&pause, NULL);
	}
}

struct membership {
	struct job_table *table;
	const struct job *job;
};

static bool has_mark(pid_t pid, const struct job *job)
{
	char mark[ENVIRONMENT_MARK_BYTES];

	environment_mark(job->id, mark);
	return proctree_has_variable(pid, mark);
}

/* Returns the job that the process belongs to, or NULL if that cannot be told.
 */
static const struct job *job_of(const struct job_table *table,
				const struct proctree_process *process)
{
	for (unsigned i = 0; i < table->running_count; i++) {
		const struct job *job = table->running[i];

		if (process->pid == job->pid || process->group == job->pid ||
		    process->session == job->pid)
			return job;
	}
	for (unsigned i = 0; i < table->running_count; i++)
		if (has_mark(process->pid, table->running[i]))
			return table->running[i];
	return NULL;
}

static bool is_to_die(const struct proctree_process *process, void *context)
{
	const struct membership *membership = context;
	const struct job *owner = job_of(membership->table, process);

	return !owner || owner == membership->job;
}

void job_processes_kill(struct job_table *table, struct job *job)
{
	struct membership membership = { table, job };

	/* SIGKILL to the group takes effect at once: no process of the group
	 * can fork away. */
	if (!job->reaped)
		kill(-job->pid, SIGKILL);
	if (!jobgroup_kill(&job->group))
		proctree_kill_children(&tree, is_to_die, &membership);
}

bool job_processes_live(struct job_table *table, struct job *job)
{
	struct membership membership = { table, job };

	if (job->group.fd >= 0)
		return !jobgroup_is_empty(&job->group);
	proctree_read_children(&tree);
	for (unsigned i = 0; i < tree.count; i++)
		if (is_to_die(&tree.processes[i], &membership))
			return true;
	return false;
}
