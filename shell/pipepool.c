#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base.h"
#include "pipepool.h"

/* What a pipe holds (pipe(7)), unless somebody said otherwise. */
#define PIPE_PAGES 16

static void close_pipe(int pipe[2])
{
	for (unsigned i = 0; i < 2; i++) {
		if (pipe[i] >= 0)
			close(pipe[i]);
		pipe[i] = -1;
	}
}

/* Only our end is non-blocking: each end has flags of its own. */
static int make_pipe(int pipe[2])
{
	int error;

	if (pipe2(pipe, O_CLOEXEC) < 0) {
		error = errno;
		pipe[0] = pipe[1] = -1;
		return -error;
	}
	if (fcntl(pipe[0], F_SETFL, O_NONBLOCK) == 0)
		return 0;
	error = errno;
	close_pipe(pipe);
	return -error;
}

/* Those who wrote to it may have set O_NONBLOCK, which all who share an end
 * have in common, or another size. */
static bool is_as_new(const int pipe[2])
{
	int unread;

	return fcntl(pipe[1], F_SETFL, 0) == 0 &&
	       fcntl(pipe[1], F_GETPIPE_SZ) ==
		       PIPE_PAGES * sysconf(_SC_PAGESIZE) &&
	       ioctl(pipe[0], FIONREAD, &unread) == 0 && unread == 0;
}

int pipepool_take(struct pipepool *pool, int pipe[2])
{
	if (pool->count == 0)
		return make_pipe(pipe);
	memcpy(pipe, pool->pipes[--pool->count], sizeof(pool->pipes[0]));
	return 0;
}

void pipepool_give(struct pipepool *pool, int pipe[2])
{
	if (pool->count == PIPEPOOL_MAX || !is_as_new(pipe)) {
		close_pipe(pipe);
		return;
	}
	memcpy(pool->pipes[pool->count++], pipe, sizeof(pool->pipes[0]));
	pipe[0] = pipe[1] = -1;
}

void pipepool_close(struct pipepool *pool)
{
	while (pool->count > 0)
		close_pipe(pool->pipes[--pool->count]);
}
