/*
 * bench_spawn.c - run commands and say how long their processes lived
 *
 * USAGE: bench_spawn [OUTPUT] <COMMANDS >ANSWERS
 *
 * A command is one line, its arguments separated by tabs; the first is the
 * path of the program, not looked for in PATH, since the search would be on
 * the clock.  An argument "&&" ends one command and begins another, which is
 * run if the first has exited 0; the time is that of both.  Each line is
 * answered by one:
 *
 *      elapsed_ns status max_rss_kib
 *
 * from before the start of the (first) process to after the (last) one was
 * reaped: creation and destruction count, a shell and Python do not.  status
 * is the exit status, 128 + the signal that killed it, or 127 if it could not
 * be started.  The processes read /dev/null and write to OUTPUT (/dev/null
 * unless given), which is opened once, for appending.
 *
 * This program stays small on purpose: the kernel counts the memory of the
 * image that execve() replaces, which is this one, towards the maximum.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ARGUMENTS_MAX 64
#define STATUS_NOT_STARTED 127

extern char **environ;

struct answer {
	uint64_t elapsed_ns;
	int status;
	long max_rss_kib;
};

static int status_of(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return 128 + WTERMSIG(wait_status);
}

/* Run one process to its end; its status. */
static int run_one(char **arguments, long *max_rss_kib)
{
	struct rusage usage;
	int wait_status;
	pid_t pid;

	if (posix_spawn(&pid, arguments[0], NULL, NULL, arguments, environ))
		return STATUS_NOT_STARTED;
	while (wait4(pid, &wait_status, 0, &usage) < 0) {
		if (errno != EINTR)
			return STATUS_NOT_STARTED;
	}
	if (usage.ru_maxrss > *max_rss_kib)
		*max_rss_kib = usage.ru_maxrss;
	return status_of(wait_status);
}

/* Commands that follow each other, divided by NULL, the last one's end by two;
 * so nothing is left to do between them. */
static struct answer run_all(char **arguments)
{
	struct answer answer = { 0 };
	uint64_t begin_ns = clock_now_ns();

	while (*arguments && answer.status == 0) {
		answer.status = run_one(arguments, &answer.max_rss_kib);
		while (*arguments)
			arguments++;
		arguments++;
	}
	answer.elapsed_ns = clock_now_ns() - begin_ns;
	return answer;
}

/* Cuts the line up in place.  false: too many arguments. */
static bool split(char *line, char **arguments)
{
	unsigned count = 0;
	char *rest = line;

	line[strcspn(line, "\n")] = '\0';
	while (rest) {
		char *argument = strsep(&rest, "\t");

		if (count == ARGUMENTS_MAX)
			return false;
		arguments[count++] = strcmp(argument, "&&") ? argument : NULL;
	}
	arguments[count] = NULL;
	arguments[count + 1] = NULL;
	return true;
}

/* The program's own lines go to a copy of descriptor, closed on exec; what is
 * opened in its place is for the processes. */
static FILE *take_over(int descriptor, const char *mode, const char *path,
		       int flags)
{
	int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
	int opened = open(path, flags | O_CLOEXEC, 0666);

	if (copy < 0 || opened < 0 || dup2(opened, descriptor) < 0)
		return NULL;
	close(opened);
	return fdopen(copy, mode);
}

int main(int argc, char **argv)
{
	const char *output = argc == 2 ? argv[1] : "/dev/null";
	char *arguments[ARGUMENTS_MAX + 2];
	FILE *commands, *answers;
	char *line = NULL;
	size_t line_bytes = 0;

	if (argc > 2) {
		fprintf(stderr, "usage: bench_spawn [OUTPUT] <COMMANDS\n");
		return 2;
	}
	commands = take_over(STDIN_FILENO, "r", "/dev/null", O_RDONLY);
	answers = take_over(STDOUT_FILENO, "w", output,
			    O_WRONLY | O_CREAT | O_APPEND);
	if (!commands || !answers) {
		fprintf(stderr, "bench_spawn: %s: %s\n", output,
			strerror(errno));
		return 3;
	}
	while (getline(&line, &line_bytes, commands) > 0) {
		struct answer answer;

		if (!split(line, arguments)) {
			fprintf(stderr, "bench_spawn: more than %d arguments\n",
				ARGUMENTS_MAX);
			return 2;
		}
		answer = run_all(arguments);
		fprintf(answers, "%llu %d %ld\n",
			(unsigned long long)answer.elapsed_ns, answer.status,
			answer.max_rss_kib);
		fflush(answers);
	}
	free(line);
	return 0;
}
