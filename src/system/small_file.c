/* small_file.c - read a file of /proc or /sys */
#include "system/small_file.h"

#include <fcntl.h>
#include <unistd.h>

bool small_file_read(const char *path, char *text, size_t text_bytes)
{
	/* O_NONBLOCK keeps open() from waiting for the writer of a FIFO in its
	 * place. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, text_bytes - 1);
	close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}
