/*
 * pipepool.h - pipes for the output of jobs, used again
 *
 * To make a pipe and close it costs 5 us, to look whether an old one is as good
 * as new 1 us.  It is if it is empty, has the size that pipes have, and nobody
 * else holds an end of it: the first two the pool sees to, the third nobody can
 * see, so that only he may give a pipe who knows that those who had it are
 * gone.
 */
#ifndef PIPEPOOL_H
#define PIPEPOOL_H

/* Two jobs' worth.  Not more, since each new process is given a copy of all our
 * descriptors first, if only to close them. */
#define PIPEPOOL_MAX 4

struct pipepool {
	int pipes[PIPEPOOL_MAX][2];
	unsigned count;
};

/* An empty pipe; as pipe(2), all close-on-exec, and the end to read is
 * non-blocking.  0 or -errno. */
int pipepool_take(struct pipepool *pool, int pipe[2]);

/* Back, to be used again or closed; pipe becomes { -1, -1 }, which may be given
 * too. */
void pipepool_give(struct pipepool *pool, int pipe[2]);

/* Close those that wait. */
void pipepool_close(struct pipepool *pool);

#endif /* PIPEPOOL_H */
