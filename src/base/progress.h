/*
 * progress.h - a line on the terminal that says how far a long run has come
 *
 *     blinkgen: 45%, 430.2 MiB of 953.7 MiB, 200.3 MiB/s, 2 s left
 *
 * The line appears only on a terminal, and only after one second.  It is
 * redrawn at most ten times a second, and removed at the end.  There is no
 * thread for it: the worker that finds it due draws it.  The same words answer
 * SIGUSR1 (answer.h), without a terminal.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/answer.h"

struct progress {
	int fd;		      /* the terminal; -1: draw nothing */
	const char *program;  /* borrowed */
	uint64_t total_bytes; /* 0: not known, and nothing of it is shown */
	uint64_t begin_ns;
	_Atomic uint64_t done_bytes;
	_Atomic uint64_t next_ns; /* draw no earlier */
	struct answer answer;
};

/* Draw a text on the terminal's line, over what stands there; cut if it is
 * longer than the line.  Any thread. */
void progress_draw(int fd, const char *text);

/* Remove the line that was drawn last, if it stands there, before anything is
 * printed. */
void progress_remove(void);

/* The rest is async-signal-safe but for progress_begin(). */

/* How fast a run is that takes minutes or hours and varies in speed.  All zeros
 * at first: it has begun with the program, or a second before the first call.
 */
struct progress_rate {
	uint64_t begin_ns;
	uint64_t last_ns, last_bytes; /* at the last call */
};

/* Add the rate since the last call, and what is left, if the total is known; 0:
 * it is not.  "200.3 MiB/s, 3 s left", from two minutes on ", 12 min left".
 * done_bytes may be less than it was. */
void progress_add_rate(struct format_line *line, struct progress_rate *rate,
		       uint64_t done_bytes, uint64_t total_bytes,
		       uint64_t now_ns);

/* Add "45%, 430.2 MiB of 953.7 MiB", or "430.2 MiB" if the total is 0. */
void progress_add_done(struct format_line *line, uint64_t done_bytes,
		       uint64_t total_bytes);

/* Add "input: 45%, 43.0 MiB of 95.4 MiB": this part of the bytes. */
void progress_add_part(struct format_line *line, const char *phase,
		       uint64_t part, uint64_t whole, uint64_t bytes);

/* fd is STDERR_FILENO, or -1.  If it is not a terminal, nothing is drawn. */
void progress_begin(struct progress *progress, int fd, const char *program,
		    uint64_t total_bytes);

/* The workers have ended. */
void progress_end(void);

/* Count bytes that are done.  Any thread calls it after each piece of work:
 * chunks of a MiB, not records. */
void progress_add(struct progress *progress, uint64_t bytes);

#endif /* PROGRESS_H */
