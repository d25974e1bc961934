#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "log.h"
#include "version.h"

bool answer_question(char **argv, const char *program, const char *help)
{
	while (*++argv && (*argv)[0] == '-' && strcmp(*argv, "--") != 0) {
		if (strcmp(*argv, "--help") == 0) {
			fputs(help, stdout);
			return true;
		}
		if (strcmp(*argv, "--version") == 0) {
			printf("%s %s\n", program, blinksort_version);
			return true;
		}
	}
	return false;
}

int answer_finish(void)
{
	/* A C library that writes at each newline may have failed before. */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	log_warn("standard output");
	return EXIT_FILE;
}
