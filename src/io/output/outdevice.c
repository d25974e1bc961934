/*
 * outdevice.c - opens a block device to overwrite it with the output
 */
#include "io/output/outdevice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/format.h"
#include "io/loopdevice.h"
#include "io/pipe.h"
#include "system/small_file.h"

/* When a program closes a device that it has written to, udev locks the device
 * for some milliseconds, to look at it; and when a program is killed, its
 * io_uring closes the device only when all writes have ended, up to 45 ms after
 * the process. */
#define FREE_TRIES 200
/* Ranks hold an input for some microseconds. */
#define EXCLUSION_TRIES 20
#define PAUSE_NS 10000000

static int refuse(struct failure *failure, const char *path, int error,
		  const char *reason)
{
	return failure_set(failure, EXIT_FILE, path, error, "%s", reason);
}

static void pause_shortly(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	nanosleep(&pause, NULL);
}

/* --- other users of the device -------------------------------------------- */

/* Some kernels open a read-only device for writing, so ask sysfs. */
static bool is_read_only(const struct stat *status)
{
	char text[8];

	return small_file_read(text, sizeof(text), "/sys/dev/block/%u:%u/ro",
			       major(status->st_rdev),
			       minor(status->st_rdev)) &&
	       text[0] == '1';
}

/* False, too, where /sys is hidden. */
static bool has_partitions(const struct stat *status)
{
	char path[64 + sizeof(((struct dirent *)NULL)->d_name)];
	const struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u",
		 major(status->st_rdev), minor(status->st_rdev));
	folder = opendir(path);
	if (!folder)
		return false;
	while (!found && (entry = readdir(folder)) != NULL) {
		/* "." of a partition has the file, too. */
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/partition", entry->d_name);
		found = faccessat(dirfd(folder), path, F_OK, 0) == 0;
	}
	closedir(folder);
	return found;
}

static int lock(int fd, const char *path, struct failure *failure)
{
	for (unsigned i = 0; i < FREE_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return refuse(failure, path, errno, "cannot lock");
		pause_shortly();
	}
	return refuse(failure, path, 0,
		      "it is in use: another program has locked it");
}

/* Wait for others that have it open with O_EXCL.  Returns -1 with errno. */
static int open_excluded(const char *path, int access, unsigned tries)
{
	int fd = -1;

	for (unsigned i = 0; i < tries && fd < 0; i++) {
		if (i > 0)
			pause_shortly();
		fd = open(path, access | O_EXCL | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno != EBUSY)
			break;
	}
	return fd;
}

/* --- inputs on it --------------------------------------------------------- */

/* The kernel knows which devices have blocks in common: while one is open with
 * O_EXCL, it refuses to open another so. */
static bool overlaps(int fd, const char *input_path)
{
	/* Another rank may ask about the same input at this moment. */
	int input_fd = open_excluded(input_path, O_RDONLY, EXCLUSION_TRIES);
	bool is_twin;

	/* The sort could not read it either, unless it is standard input. */
	if (input_fd < 0)
		return true;
	is_twin = loopdevice_is_twin(fd, input_fd);
	close(input_fd);
	return is_twin;
}

static int check_input(int fd, const char *path, const char *input_path,
		       struct failure *failure)
{
	bool is_stdin = pipe_is_word(input_path);
	const char *name = is_stdin ? "/dev/stdin" : input_path;
	const char *shown = is_stdin ? PIPE_INPUT_NAME : input_path;
	/* The reason has room for as much, and for what it says. */
	char text[FAILURE_WHY_BYTES / 2];
	struct stat status;

	if (is_stdin ? fstat(STDIN_FILENO, &status) < 0
		     : stat(name, &status) < 0)
		return 0;
	if (!loopdevice_shows(fd, &status) &&
	    (!S_ISBLK(status.st_mode) || !overlaps(fd, name)))
		return 0;
	return failure_set(
		failure, EXIT_FILE, path, 0,
		"the input %s lies on it, or is in use",
		format_shortened(text, sizeof(text), shown, strlen(shown)));
}

/* A file that is mounted from another loop device may be an input, for example.
 */
static int check_twins(int fd, const char *path, struct failure *failure)
{
	char twin[64];

	if (!loopdevice_find_twin(fd, twin, sizeof(twin)))
		return 0;
	return failure_set(failure, EXIT_FILE, path, 0,
			   "it is in use: %s shows the same bytes", twin);
}

/* --- opening -------------------------------------------------------------- */

/* answer: what stat(2) or fstat(2) has returned. */
static int check_block(int answer, const struct stat *status, const char *path,
		       struct failure *failure)
{
	if (answer < 0)
		return refuse(failure, path, errno, "cannot open");
	if (!S_ISBLK(status->st_mode))
		return refuse(failure, path, 0, "not a block device");
	return 0;
}

/* The path may lead elsewhere by now than when open_alone() looked at it. */
static int check_kind(int fd, const char *path, struct failure *failure)
{
	struct stat status;
	int error = check_block(fstat(fd, &status), &status, path, failure);

	if (error)
		return error;
	if (has_partitions(&status))
		return refuse(failure, path, 0,
			      "it has partitions; name one of them");
	if (loopdevice_shows_device(fd))
		return refuse(failure, path, 0,
			      "it is a loop device that shows a device; name "
			      "that one");
	return 0;
}

static int open_alone(const char *path, struct failure *failure)
{
	struct stat status;
	/* The mere opening of a tape or a FIFO has consequences. */
	int error = check_block(stat(path, &status), &status, path, failure);
	int fd;

	if (error)
		return error;
	if (is_read_only(&status))
		return refuse(failure, path, 0, "it is read-only");
	fd = open_excluded(path, O_RDWR, FREE_TRIES);
	if (fd >= 0)
		return fd;
	if (errno == EBUSY)
		return refuse(failure, path, 0,
			      "it is mounted, or in use otherwise");
	return refuse(failure, path, errno, "cannot open");
}

int outdevice_open(const char *path, const char *const *input_paths,
		   unsigned input_count, struct failure *failure)
{
	int fd = open_alone(path, failure);
	int error;

	if (fd < 0)
		return fd;
	error = check_kind(fd, path, failure);
	for (unsigned i = 0; i < input_count && error == 0; i++)
		error = check_input(fd, path, input_paths[i], failure);
	if (error == 0)
		error = check_twins(fd, path, failure);
	if (error == 0)
		error = lock(fd, path, failure);
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

int outdevice_check_size(int fd, const char *path, uint64_t bytes,
			 struct failure *failure)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size < 0)
		return refuse(failure, path, errno, "cannot find its size");
	if (bytes > (uint64_t)size)
		return failure_set(failure, EXIT_FILE, path, 0,
				   "it has %" PRIu64 " bytes, and the output "
				   "takes %" PRIu64,
				   (uint64_t)size, bytes);
	return 0;
}

/* --- the end -------------------------------------------------------------- */

int outdevice_finish(int fd, const char *path, bool sync,
		     struct failure *failure)
{
	const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE |
			      SYNC_FILE_RANGE_WRITE |
			      SYNC_FILE_RANGE_WAIT_AFTER;
	int result = sync ? fsync(fd) : sync_file_range(fd, 0, 0, wait);

	if (result == 0)
		return 0;
	return refuse(failure, path, errno, "cannot sync");
}
