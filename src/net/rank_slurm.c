/*
 * rank_slurm.c - which host has which rank, as the variables of Slurm tell
 */
#include "net/rank_slurm.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"

/* Read a text such as "2(x3),1". */
struct slurm_tasks {
	unsigned host_count;
	unsigned task_count;
	unsigned of_host[RANK_NODES_MAX];
};

/* Slurm's counts have 16 bits. */
static bool take_number(const char **at, unsigned *number)
{
	char *end;
	unsigned long value = strtoul(*at, &end, 10);

	if (**at < '0' || **at > '9' || value > UINT16_MAX)
		return false;
	*at = end;
	*number = (unsigned)value;
	return true;
}

static bool parse_slurm_tasks(const char *at, struct slurm_tasks *tasks)
{
	*tasks = (struct slurm_tasks){ 0 };
	do {
		unsigned count, hosts = 1;

		if (!take_number(&at, &count))
			return false;
		if (strncmp(at, "(x", 2) == 0) {
			at += 2;
			if (!take_number(&at, &hosts) || *at++ != ')')
				return false;
		}
		if (hosts > RANK_NODES_MAX - tasks->host_count)
			return false;
		for (; hosts > 0; hosts--) {
			tasks->of_host[tasks->host_count++] = count;
			tasks->task_count += count;
		}
	} while (*at++ == ',');
	return at[-1] == '\0';
}

/* Block: a host gets all its ranks before the next host gets any.  Cyclic: each
 * host gets one rank in turn, until it has all its ranks. */
static void deal_ranks(const struct rank_slurm *slurm,
		       const struct slurm_tasks *tasks, bool cyclic)
{
	unsigned r = 0;

	for (unsigned h = 0; !cyclic && h < tasks->host_count; h++)
		for (unsigned t = 0; t < tasks->of_host[h]; t++)
			slurm->host_of[r++] = h;
	for (unsigned t = 0; cyclic && r < tasks->task_count; t++)
		for (unsigned h = 0; h < tasks->host_count; h++)
			if (t < tasks->of_host[h])
				slurm->host_of[r++] = h;
}

/* The first word says how ranks are dealt to hosts, later words how to sockets.
 * pack and nopack say how many ranks a host gets, and come first if the user
 * has chosen nothing else. */
static int read_distribution(bool *cyclic, struct failure *failure)
{
	static const char *const block[] = { "block", "pack", "nopack" };
	const char *text = getenv("SLURM_DISTRIBUTION");
	char word[16];

	*cyclic = false;
	if (!text)
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, ":,"), text);
	for (size_t i = 0; i < ARRAY_LEN(block); i++)
		if (strcmp(word, block[i]) == 0)
			return 0;
	*cyclic = strcmp(word, "cyclic") == 0;
	if (*cyclic)
		return 0;
	return failure_set(failure, EXIT_USAGE, "SLURM_DISTRIBUTION", 0,
			   "'%.40s': want block or cyclic, or --nodes", text);
}

/* A plugin of Slurm may have dealt the ranks in another way: compare. */
static int check_own_host(const struct rank_slurm *slurm,
			  struct failure *failure)
{
	const char *text = getenv("SLURM_NODEID");
	unsigned host = slurm->host_of[slurm->rank];
	uint64_t own;

	if (!text || parse_u64(text, host, host, &own) == 0)
		return 0;
	return failure_set(failure, EXIT_USAGE, "SLURM_NODEID", 0,
			   "'%.40s': rank %u should be on node %u; give "
			   "--nodes",
			   text, slurm->rank, host);
}

int rank_slurm_lay_out(const struct rank_slurm *slurm, struct failure *failure)
{
	static const char name[] = "SLURM_STEP_TASKS_PER_NODE";
	const char *text = getenv(name);
	struct slurm_tasks tasks;
	bool cyclic;
	int error = read_distribution(&cyclic, failure);

	if (error)
		return error;
	if (!text)
		return failure_set(failure, EXIT_USAGE, name, 0, "is not set");
	if (!parse_slurm_tasks(text, &tasks))
		return failure_set(failure, EXIT_USAGE, name, 0,
				   "'%.40s': want numbers such as 2(x3),1",
				   text);
	if (tasks.host_count != slurm->host_count ||
	    tasks.task_count != slurm->node_count)
		return failure_set(
			failure, EXIT_USAGE, name, 0,
			"'%.40s': not %u ranks (%s) on %zu hosts (%s)", text,
			slurm->node_count, slurm->count_from, slurm->host_count,
			slurm->hosts_from);
	deal_ranks(slurm, &tasks, cyclic);
	return check_own_host(slurm, failure);
}
