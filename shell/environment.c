/* environment.c - the environment variables that a job is given */
#include <string.h>

#include "shell/environment.h"
#include "shell/job.h"

static char *put_text(char *to, const char *text)
{
	size_t bytes = strlen(text);

	memcpy(to, text, bytes + 1);
	return to + bytes;
}

void environment_mark(const uint8_t id[WIRE_JOB_BYTES],
		      char mark[ENVIRONMENT_MARK_BYTES])
{
	format_hex(put_text(mark, "BLINK_JOB="), id, WIRE_JOB_BYTES);
}

void environment_make(struct environment *environment,
		      const struct job_start *start, const char *node_variable)
{
	const char *variables[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"HOME=/",
		"LANG=C",
		"BLINK_SECRET_FD=3",
		environment->rank,
		environment->nodes,
		environment->host,
		environment->mark,
		node_variable,
		start->hosts[0] != '\0' ? environment->hosts : NULL,
		NULL,
	};

	format_u128(put_text(environment->rank, "BLINK_RANK="), start->rank);
	format_u128(put_text(environment->nodes, "BLINK_NODES="),
		    start->node_count);
	put_text(put_text(environment->host, "BLINK_HOST="), start->host);
	put_text(put_text(environment->hosts, "BLINK_HOSTS="), start->hosts);
	environment_mark(start->id, environment->mark);
	memcpy(environment->variables, variables, sizeof(variables));
}
