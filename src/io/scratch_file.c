#include "io/scratch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* Random names of 64 bits that exist already: two are no accident. */
#define HIDDEN_NAME_TRIES 2

/* A hidden file that has its name for a moment only.  The descriptor or -errno.
 */
static int make_and_unlink(int folder_fd, const char *name)
{
	int fd = openat(folder_fd, name,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int error;

	if (fd < 0)
		return -errno;
	if (unlinkat(folder_fd, name, 0) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static int make_hidden(int folder_fd)
{
	sigset_t all, old;
	int fd = -EEXIST;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (unsigned i = 0; i < HIDDEN_NAME_TRIES && fd == -EEXIST; i++) {
		char name[64];
		uint64_t random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			fd = -EIO;
		else {
			snprintf(name, sizeof(name),
				 ".blinksort-scratch-%016" PRIx64, random);
			fd = make_and_unlink(folder_fd, name);
		}
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return fd;
}

/* By O_EXCL it can never get a name. */
static int make_file(int folder_fd)
{
	int fd = openat(folder_fd, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC,
			0600);

	if (fd >= 0)
		return fd;
	/* No O_TMPFILE here: the file system's answer, an old kernel's, and
	 * that of an old kernel's C library. */
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL &&
	    errno != ENOENT)
		return -errno;
	return make_hidden(folder_fd);
}

int scratch_file_make(const char *folder_path)
{
	int folder_fd = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (folder_fd < 0)
		return -errno;
	fd = make_file(folder_fd);
	close(folder_fd);
	return fd;
}
