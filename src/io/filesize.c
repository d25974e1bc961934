/* filesize.c - refuses a file that says that it is empty and is not */
#include "io/filesize.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"

int filesize_check(int fd, const struct stat *status, const char *path,
		   struct failure *failure)
{
	char byte;
	ssize_t got;

	if (status->st_size != 0 || !S_ISREG(status->st_mode))
		return 0;
	do
		got = pread(fd, &byte, 1, 0);
	while (got < 0 && errno == EINTR);
	if (got == 0)
		return 0;
	return failure_set(failure, EXIT_FILE, path, got < 0 ? errno : 0,
			   got < 0 ? "cannot read" : "its size is unknown");
}
