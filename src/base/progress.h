/*
 * progress.h - a line on the terminal that says how far a long run has come
 *
 *     blinkgen: 45%, 430.2 MiB of 953.7 MiB, 200.3 MiB/s, 2 s left
 *
 * The line appears only on a terminal, and only after one second.  It is
 * redrawn at most ten times a second, and removed at the end.  There is no
 * thread for it: the worker that finds it due draws it.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress {
	int fd;		      /* the terminal; -1: draw nothing */
	const char *program;  /* borrowed */
	uint64_t total_bytes; /* 0: not known, and nothing of it is shown */
	uint64_t begin_ns;
	_Atomic uint64_t done_bytes;
	_Atomic uint64_t next_ns; /* draw no earlier */
	_Atomic bool drawn;	  /* there is a line to remove */
};

/* Draw a text on the terminal's line, over what stands there; cut if it is
 * longer than the line.  "": remove it. */
void progress_draw(int fd, const char *text);

#define PROGRESS_LEFT_BYTES 64

/* Write what is left of a run that takes minutes or hours and varies in speed:
 * ", 3 s left", from two minutes on ", 12 min left", or "" if nothing has been
 * done yet or the total is not known, which is 0 then. */
void progress_format_rough_left(char text[PROGRESS_LEFT_BYTES],
				uint64_t done_bytes, uint64_t total_bytes,
				uint64_t passed_ns);

/* fd is STDERR_FILENO, or -1.  If it is not a terminal, nothing is drawn. */
void progress_begin(struct progress *progress, int fd, const char *program,
		    uint64_t total_bytes);

/* Count bytes that are done.  Any thread calls it after each piece of work:
 * chunks of a MiB, not records. */
void progress_add(struct progress *progress, uint64_t bytes);

/* Remove the line: when the workers have ended, before anything is printed.
 * Safe on one that never began if it is zeroed and its fd is -1. */
void progress_end(struct progress *progress);

#endif /* PROGRESS_H */
