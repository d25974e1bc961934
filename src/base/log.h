/*
 * log.h - one line on stderr for each message: "program: what: why"
 *
 * Every byte that is not printable ASCII or well-formed UTF-8 text is written
 * as \xNN, so that a strange file name can neither break a line nor reach the
 * terminal as a control sequence.  A name of more than some 200 bytes is
 * shortened in its middle.  Each line is one write(2).  errno survives.
 */
#ifndef LOG_H
#define LOG_H

struct failure;

/* Set the name that begins each line; it is borrowed.  Call this before any
 * other function of this header. */
void log_init(const char *program);

/* "program: message\n" */
__attribute__((format(printf, 1, 2))) void log_warnx(const char *format, ...);

/* "program: message: strerror(errno)\n" */
__attribute__((format(printf, 1, 2))) void log_warn(const char *format, ...);

/* Print "program: what: why\n"; what is a name, or anything that a user gave.
 */
void log_about(const char *what, const char *why);

/* Make the line "program: what: why\n" for a signal handler to write later. The
 * caller frees it.  Returns NULL if there is no memory. */
char *log_line(const char *what, const char *why);

/* Print "program: what: why\n", but nothing if the failure has no reason.
 * Returns failure->status. */
int log_failure(const struct failure *failure);

#endif /* LOG_H */
