/* failure.c - why a run ends early: the exit status and one line to print */
#include "base/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum exit_status failure_status(int error, enum exit_status otherwise)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM
		       ? EXIT_RESOURCES
		       : otherwise;
}

/* EMFILE is a limit of the process, not a fault of the file that the message
 * names: "too many open files" would not tell a user what to do. */
static const char *reason_of(int error)
{
	if (error == EMFILE)
		return "this process may open no more files (ulimit -n)";
	return error ? strerror(error) : "";
}

int failure_set(struct failure *failure, enum exit_status status,
		const char *what, int error, const char *format, ...)
{
	const char *separator = error && format[0] != '\0' ? ": " : "";
	const char *reason = reason_of(error);
	/* If the line is too long, the text is cut, not the reason after it. */
	size_t room = sizeof(failure->why) - strlen(separator) - strlen(reason);
	va_list arguments;

	failure->status = failure_status(error, status);
	failure->what = what;
	va_start(arguments, format);
	if (vsnprintf(failure->why, room, format, arguments) < 0)
		failure->why[0] = '\0';
	va_end(arguments);
	strcat(failure->why, separator);
	strcat(failure->why, reason);
	return error ? -error : -EINVAL;
}

int failure_set_silent(struct failure *failure, enum exit_status status,
		       int error)
{
	*failure = (struct failure){ .status = status };
	return -error;
}
