/*
 * answer.h - a line on standard error when SIGUSR1 asks how far a run is
 *
 *     blinksort: rank 1: runs: 45%, 200.3 MiB/s, 3 s left; waits: ...
 *
 * The line is made in the signal's handler, in the main thread, whatever that
 * is doing: it may wait for a pipe or for another rank.  So what is called from
 * it is async-signal-safe (signal-safety(7)), and takes no lock.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* Add to the line how far the work is.  False: another thread is at these
 * figures, and will call answer_now() when it is done. */
typedef bool answer_fn(void *context, struct format_line *line);

struct answer {
	answer_fn *tell;
	void *context;
};

/* First of all in main(): SIGUSR1 does no longer end the process, and is
 * answered by "program: preparing" until there is more to say. */
void answer_begin(const char *program);

/* Name this rank in each line. */
void answer_set_rank(unsigned rank);

/* This is asked from now on; it stays where it is until another one is, or a
 * phase is set.  Any thread, but memory of the answer is given back by the main
 * thread alone, which the handler interrupts. */
void answer_by(const struct answer *answer);
/* There is nothing to ask for, but this word. */
void answer_phase(const char *phase);

/* Print the line; also from a handler. */
void answer_now(void);

/* When answer_begin() was called; 0: it was not. */
uint64_t answer_begin_ns(void);

#endif /* ANSWER_H */
