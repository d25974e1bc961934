/*
 * Any text as the value of --roles and as the file that it names: no crash, and
 * what is taken names ranks that may be there.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "programs/blinksort/roles_options.h"

static void require(int condition)
{
	if (!condition)
		abort();
}

static void check(const struct cluster_roles *roles, int error)
{
	struct failure failure;

	require(error == 0 || error == -EINVAL || error == -ERANGE);
	require(cluster_roles_check(roles, RANK_NODES_MAX, &failure) == 0);
	for (unsigned rank = 0; rank < RANK_NODES_MAX; rank++)
		require(cluster_roles_of(roles, rank) <= CLUSTER_ROLES_ALL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cluster_roles list = { 0 }, lines = { 0 };
	char *text = malloc(size + 1);
	unsigned line;

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check(&list, cluster_roles_add_list(&list, text));
	check(&lines, roles_options_read(&lines, text, size, &line));
	require(line >= 1 && line <= size + 1);
	free(text);
	return 0;
}
