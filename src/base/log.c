/*
 * log.c - writes each message as one line on stderr, by one write(2)
 */
#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/format.h"

/* A longer name is shortened in its middle: the reason after it stands. */
#define LOG_NAME_BYTES 208
/* A list of hosts and a sentence about them. */
#define LOG_MESSAGE_BYTES (PATH_MAX + 512)
/* A byte becomes at most the four of \xNN; the program's name and the newline
 * stand beside it. */
#define LOG_LINE_BYTES (4 * LOG_MESSAGE_BYTES + 128)

static const char *log_program = "blinksort";

/*
 * Returns true if this character may go to a terminal as it is.  Refused are
 * the C0 and C1 controls, which some terminals obey in UTF-8 too, the
 * characters that end a line (U+2028, U+2029), and those that reverse the
 * direction of the text (U+202A to U+202E, U+2066 to U+2069).
 */
static bool is_text(const char *text, size_t length)
{
	const unsigned char *byte = (const unsigned char *)text;

	if (length == 1)
		return byte[0] >= 0x20 && byte[0] < 0x7f;
	if (byte[0] == 0xc2)
		return byte[1] >= 0xa0;
	if (byte[0] == 0xe2 && byte[1] == 0x80)
		return byte[2] < 0xa8 || byte[2] > 0xae;
	if (byte[0] == 0xe2 && byte[1] == 0x81)
		return byte[2] < 0xa6 || byte[2] > 0xa9;
	return length > 0;
}

/* Write text to line as the header promises; returns the bytes written, at
 * most four for each of text. */
static size_t escape(char *line, const char *text)
{
	static const char digits[16] = "0123456789abcdef";
	char *end = line;

	while (*text != '\0') {
		size_t length = format_utf8_length(text);

		if (is_text(text, length)) {
			memcpy(end, text, length);
			end += length;
			text += length;
			continue;
		}
		*end++ = '\\';
		*end++ = 'x';
		*end++ = digits[(unsigned char)*text >> 4];
		*end++ = digits[(unsigned char)*text & 15];
		text++;
	}
	return (size_t)(end - line);
}

/* Returns the bytes of the line, which has no NUL. */
static size_t make_line(char *line, const char *message)
{
	int length = snprintf(line, 100, "%s: ", log_program);
	size_t bytes = length < 100 ? (size_t)length : 99;

	bytes += escape(line + bytes, message);
	line[bytes++] = '\n';
	return bytes;
}

static void write_line(const char *message)
{
	char line[LOG_LINE_BYTES];
	size_t bytes = make_line(line, message);

	/* When stderr fails, there is nowhere to report it. */
	while (write(STDERR_FILENO, line, bytes) < 0 && errno == EINTR)
		;
}

/* error: an errno value, or 0 */
static void log_message(int error, const char *format, va_list arguments)
{
	char message[LOG_MESSAGE_BYTES];
	const char *reason = error ? strerror(error) : "";
	/* A cut message still ends with its reason. */
	size_t room = sizeof(message) - strlen(reason) - strlen(": ");
	int length = vsnprintf(message, room, format, arguments);

	if (length < 0)
		message[0] = '\0';
	if (error) {
		strcat(message, ": ");
		strcat(message, reason);
	}
	write_line(message);
}

static const char *shortened(char name[LOG_NAME_BYTES], const char *what)
{
	return format_shortened(name, LOG_NAME_BYTES, what, strlen(what));
}

void log_init(const char *program)
{
	log_program = program;
}

void log_warnx(const char *format, ...)
{
	int saved_errno = errno;
	va_list arguments;

	va_start(arguments, format);
	log_message(0, format, arguments);
	va_end(arguments);
	errno = saved_errno;
}

void log_warn(const char *format, ...)
{
	int saved_errno = errno;
	va_list arguments;

	va_start(arguments, format);
	log_message(saved_errno, format, arguments);
	va_end(arguments);
	errno = saved_errno;
}

char *log_line(const char *what, const char *why)
{
	char name[LOG_NAME_BYTES];
	char message[LOG_MESSAGE_BYTES];
	char line[LOG_LINE_BYTES];

	snprintf(message, sizeof(message), "%s: %s", shortened(name, what),
		 why);
	return strndup(line, make_line(line, message));
}

void log_about(const char *what, const char *why)
{
	char name[LOG_NAME_BYTES];

	log_warnx("%s: %s", shortened(name, what), why);
}

int log_failure(const struct failure *failure)
{
	if (failure->why[0] == '\0')
		return (int)failure->status;
	if (failure->what)
		log_about(failure->what, failure->why);
	else
		log_warnx("%s", failure->why);
	return (int)failure->status;
}
