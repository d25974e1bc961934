/*
 * without_mpi.c - of a program that is not linked with MPI
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "programs/blinksort/mpi_link.h"

#define OTHER "blinksort-mpi"

const char *mpi_link_library(void)
{
	return NULL;
}

/* The other program's path, in the folder of this one.  False: it is too long,
 * or there is no /proc. */
static bool find_other(char path[PATH_MAX])
{
	ssize_t bytes =
		readlink("/proc/self/exe", path, PATH_MAX - sizeof(OTHER));
	char *name;

	if (bytes <= 0 || bytes == PATH_MAX - sizeof(OTHER))
		return false;
	path[bytes] = '\0';
	name = strrchr(path, '/');
	if (!name)
		return false;
	memcpy(name + 1, OTHER, sizeof(OTHER));
	return true;
}

int mpi_link_begin(char **words, struct cluster_config *config,
		   struct mpi_report *report, struct failure *failure)
{
	char path[PATH_MAX];

	(void)config, (void)report;
	if (find_other(path))
		execv(path, words);
	else
		errno = ENOENT;
	return failure_set(failure, EXIT_USAGE, "--transport=mpi",
			   errno == ENOENT ? 0 : errno,
			   errno == ENOENT ? "no " OTHER
					     " beside this program: "
					     "make mpi builds it"
					   : "cannot start " OTHER);
}

int mpi_link_end(int status, struct mpi_report *report)
{
	(void)report;
	return status;
}
