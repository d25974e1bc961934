/*
 * failure.h - why a run ends early: the exit status and one line to print
 *
 * A module that fails returns -errno and, where only it knows the name of the
 * thing, fills a struct failure.  Nothing below main prints: main calls
 * log_failure(), which prints "program: what: why" and returns the status.
 */
#ifndef FAILURE_H
#define FAILURE_H

#include <errno.h>
#include <stddef.h>

/* The exit statuses of every program, with and without --json. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_WRONG = 1, /* the data is wrong, or the run failed */
	EXIT_USAGE = 2,
	EXIT_FILE = 3,	    /* an input or output file */
	EXIT_PEER = 4,	    /* a peer or the network */
	EXIT_RESOURCES = 5, /* memory, threads, descriptors */
};

#define FAILURE_WHY_BYTES 192

struct failure {
	enum exit_status status; /* EXIT_DONE: nothing failed */
	/* The thing at fault: a path, an option.  Borrowed: it must live until
	 * the failure is printed.  NULL: the reason stands alone. */
	const char *what;
	/* "": there is nothing to print. */
	char why[FAILURE_WHY_BYTES];
};

/* The exit status for a failure with this errno value: EXIT_RESOURCES if the
 * process or the machine has no descriptor or no memory left, else otherwise.
 */
enum exit_status failure_status(int error, enum exit_status otherwise);

/*
 * Fill *failure.  The reason is the formatted text; if error is not 0 (an errno
 * value, positive) ": " and its words follow, or these alone if format is "":
 * strerror's, but for EMFILE.  The status is failure_status(error, status).
 * Returns -error, or -EINVAL if error is 0, so that a caller may write
 *         return failure_set(failure, EXIT_FILE, path, errno, "");
 */
__attribute__((format(printf, 5, 6))) int
failure_set(struct failure *failure, enum exit_status status, const char *what,
	    int error, const char *format, ...);

/* Fill *failure with a reason that is not printed: the reader of a pipe has
 * seen enough.  Returns -error. */
int failure_set_silent(struct failure *failure, enum exit_status status,
		       int error);

/* Fill *failure: there is no memory.  Returns -ENOMEM; inline, so that an
 * analyser of the caller knows that this is not 0. */
static inline int failure_no_memory(struct failure *failure)
{
	failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM, "memory");
	return -ENOMEM;
}

#endif /* FAILURE_H */
