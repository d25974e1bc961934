/*
 * stdout.c - the standard output of every program: --help, --version, and
 * its end
 */
#include "base/stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/log.h"
#include "base/options.h"
#include "base/version.h"

int stdout_print_info(int question, const char *program, const char *help)
{
	if (question == OPTIONS_HELP)
		fputs(help, stdout);
	else
		printf("%s %s\n", program, blinksort_version);
	return stdout_finish();
}

/* Read-only: writing fails, as it does where nothing is open. */
void stdout_reserve(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* The errno of the first failure; 0: none has been seen. */
static int lost_by;

void stdout_flush(void)
{
	/* A C library that flushes at each newline may have failed before. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && lost_by == 0)
		lost_by = errno;
}

int stdout_finish(void)
{
	stdout_flush();
	if (lost_by == 0)
		return EXIT_DONE;
	errno = lost_by;
	log_warn("standard output");
	return EXIT_FILE;
}
