/*
 * file_io.c - reads and writes a part of a file, whatever interrupts the calls
 */
#include "io/file_io.h"

#include <errno.h>
#include <unistd.h>

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
