/*
 * Any bytes as the body of a START: no crash, and what is taken keeps the
 * promises of start.h.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shell/start.h"

static void require(int condition)
{
	if (!condition)
		abort();
}

static void require_arguments(const struct start *start)
{
	const char *end = start->text;
	unsigned count = 0;

	for (; start->arguments[count]; count++) {
		require(start->arguments[count] == end);
		end += strlen(end) + 1;
		require(end <= start->text + START_TEXT_BYTES);
	}
	require(count > 0 && count <= START_ARGUMENTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct start start;
	uint8_t *body = malloc(size); /* for the sanitizer to know its end */
	int error;

	require(body || size == 0);
	if (size > 0)
		memcpy(body, data, size);
	error = start_parse(body, size, &start);
	require(error == 0 || error == -EINVAL || error == -E2BIG);
	if (error != -EINVAL) {
		require(start.rank < start.node_count);
		require(start.host[0] != '\0');
		require(!strpbrk(start.hosts, " \t\r\n!&^/"));
		require(start.job == body);
	}
	if (error == 0)
		require_arguments(&start);
	free(body);
	return 0;
}
