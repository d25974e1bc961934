/*
 * file_io.c - reads and writes a part of a file, whatever interrupts the
 * calls, and refuses a file that says that it is empty and is not
 */
#include "io/file_io.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"

ssize_t file_read_at(int fd, uint8_t *bytes, size_t length_bytes,
		     uint64_t offset_bytes)
{
	size_t done = 0;

	while (done < length_bytes) {
		ssize_t n = pread(fd, bytes + done, length_bytes - done,
				  (off_t)(offset_bytes + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int file_write_at(int fd, const uint8_t *bytes, size_t length_bytes,
		  uint64_t offset_bytes)
{
	size_t done = 0;

	while (done < length_bytes) {
		ssize_t n = pwrite(fd, bytes + done, length_bytes - done,
				   (off_t)(offset_bytes + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int file_check_size(int fd, const struct stat *status, const char *path,
		    struct failure *failure)
{
	uint8_t byte;
	ssize_t got;

	if (status->st_size != 0 || !S_ISREG(status->st_mode))
		return 0;
	got = file_read_at(fd, &byte, 1, 0);
	if (got == 0)
		return 0;
	return failure_set(failure, EXIT_FILE, path, (int)-MIN(got, 0),
			   got < 0 ? "cannot read" : "its size is unknown");
}
