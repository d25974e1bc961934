#include <string.h>

#include "shell/environment.h"
#include "shell/job.h"

static char *put_text(char *to, const char *text)
{
	size_t bytes = strlen(text);

	memcpy(to, text, bytes + 1);
	return to + bytes;
}

static void put_number(char *to, uint32_t value)
{
	char digits[12];
	char *begin = digits + sizeof(digits) - 1;

	*begin = '\0';
	do {
		*--begin = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put_text(to, begin);
}

void environment_mark(const uint8_t id[WIRE_JOB_BYTES],
		      char mark[ENVIRONMENT_MARK_BYTES])
{
	static const char digits[16] = "0123456789abcdef";
	char *to = put_text(mark, "BLINK_JOB=");

	for (unsigned i = 0; i < WIRE_JOB_BYTES; i++) {
		*to++ = digits[id[i] >> 4];
		*to++ = digits[id[i] & 15];
	}
	*to = '\0';
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

	put_number(put_text(environment->rank, "BLINK_RANK="), start->rank);
	put_number(put_text(environment->nodes, "BLINK_NODES="),
		   start->node_count);
	put_text(put_text(environment->host, "BLINK_HOST="), start->host);
	put_text(put_text(environment->hosts, "BLINK_HOSTS="), start->hosts);
	environment_mark(start->id, environment->mark);
	memcpy(environment->variables, variables, sizeof(variables));
}
