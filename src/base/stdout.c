#include "base/stdout.h"

#include <stdio.h>

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

int stdout_finish(void)
{
	/* A C library that flushes at each newline may have failed before. */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	log_warn("standard output");
	return EXIT_FILE;
}
