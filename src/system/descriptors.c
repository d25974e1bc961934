/*
 * descriptors.c - how many files this process may have open at once, and files
 * that it opens once more
 */
#include "system/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

/* A system's default limit allows this many files, so it need not be raised. */
#define FILES_FEW 32
/* Descriptors for outputs, scratch files and rings: twice what a sort of one
 * input by 32 threads has open. */
#define FILES_NEEDED 128

/* Raise the soft limit to the hard one if it is below what is wanted.  Returns
 * the soft limit; 0: it is not known. */
static rlim_t provide(rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_cur < wanted && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 0;
	}
	return limit.rlim_cur;
}

void descriptors_raise(unsigned file_count)
{
	if (file_count > FILES_FEW)
		provide((rlim_t)file_count + FILES_NEEDED);
}

bool descriptors_spare(int fd)
{
	const rlim_t wanted = (rlim_t)fd + FILES_NEEDED;

	return provide(wanted) >= wanted;
}

int descriptors_reopen(int fd, int flags)
{
	char self[32];
	int again;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	again = open(self, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}
