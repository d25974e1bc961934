/* small_file.c - the files of /proc and /sys */
#include "system/small_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

const char *small_file_root = "";

static bool make_path(char *path, const char *format, va_list arguments)
{
	int length = snprintf(path, PATH_MAX, "%s", small_file_root);
	int room = PATH_MAX - length;

	return vsnprintf(path + length, (size_t)room, format, arguments) < room;
}

bool small_file_path(char *path, const char *format, ...)
{
	va_list arguments;
	bool fits;

	va_start(arguments, format);
	fits = make_path(path, format, arguments);
	va_end(arguments);
	return fits;
}

bool small_file_read(char *text, size_t text_bytes, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	ssize_t length;
	int fd = -1;

	va_start(arguments, format);
	/* O_NONBLOCK keeps open() from waiting for the writer of a FIFO in its
	 * place. */
	if (make_path(path, format, arguments))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	va_end(arguments);
	if (fd < 0)
		return false;
	length = read(fd, text, text_bytes - 1);
	close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}
