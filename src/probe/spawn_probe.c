/*
 * spawn_probe.c - measures what starting a program and waiting for its end
 * costs
 */
#include "probe/spawn_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Its wait status, or -errno. */
static int spawn_once(char *const *argv,
		      const posix_spawn_file_actions_t *actions, uint64_t *ns)
{
	uint64_t begin_ns = clock_now_ns();
	int status, error;
	pid_t child;

	error = posix_spawn(&child, argv[0], actions, NULL, argv, environ);
	if (error)
		return -error;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	*ns = clock_now_ns() - begin_ns;
	return status;
}

int spawn_probe_run(char *const *argv, unsigned rounds, uint64_t *samples_ns,
		    struct failure *failure)
{
	posix_spawn_file_actions_t actions;
	int status = 0;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
					 O_WRONLY, 0);
	for (unsigned i = 0; i < rounds && status == 0; i++)
		status = spawn_once(argv, &actions, &samples_ns[i]);
	posix_spawn_file_actions_destroy(&actions);
	if (status < 0)
		return failure_set(failure, EXIT_FILE, argv[0], -status,
				   "cannot start");
	if (status)
		return failure_set(failure, EXIT_WRONG, argv[0], 0,
				   "ended with %s %d",
				   WIFSIGNALED(status) ? "signal" : "status",
				   WIFSIGNALED(status) ? WTERMSIG(status)
						       : WEXITSTATUS(status));
	return 0;
}
