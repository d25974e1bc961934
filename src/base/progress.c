/*
 * progress.c - draws a line on the terminal that shows how far the work is
 */
#include "base/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/format.h"

#define NS_PER_S 1000000000u
#define FIRST_DRAW_NS NS_PER_S
#define REDRAW_NS (NS_PER_S / 10)

/* A line is one column shorter than the terminal, or it would wrap; this is
 * the longest, and that of a terminal that does not tell its width.
 */
#define LINE_COLUMNS 79

#define LEFT_BYTES 64

void progress_begin(struct progress *progress, int fd, const char *program,
		    uint64_t total_bytes)
{
	progress->fd = isatty(fd) ? fd : -1;
	progress->program = program;
	progress->total_bytes = total_bytes;
	progress->begin_ns = clock_now_ns();
	atomic_init(&progress->done_bytes, 0);
	atomic_init(&progress->next_ns, progress->begin_ns + FIRST_DRAW_NS);
}

static int line_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return LINE_COLUMNS;
	return MIN(size.ws_col - 1, LINE_COLUMNS);
}

/* The terminal that has a line; -1: none has. */
static _Atomic int drawn_fd = -1;

/* Overwrite the old line with spaces rather than an escape sequence, which not
 * every terminal knows.  It is one write, so that lines of threads do not mix.
 */
static void draw_line(int fd, const char *text)
{
	char line[LINE_COLUMNS + 3];
	int columns = line_columns(fd);
	int length = snprintf(line, sizeof(line), "\r%-*.*s\r", columns,
			      columns, text);

	/* If the terminal is gone, nothing can be done. */
	if (write(fd, line, (size_t)length) < 0)
		return;
}

void progress_draw(int fd, const char *text)
{
	atomic_store(&drawn_fd, fd);
	draw_line(fd, text);
}

void progress_remove(void)
{
	int fd = atomic_exchange(&drawn_fd, -1);

	if (fd >= 0)
		draw_line(fd, "");
}

/* ", 3 s left", from two minutes on ", 12 min left", or "" if nothing has been
 * done yet or the total is not known, which is 0 then. */
static void format_left(char text[LEFT_BYTES], uint64_t done_bytes,
			uint64_t total_bytes, uint64_t passed_ns)
{
	double passed_s = (double)passed_ns / 1e9, left_s;

	text[0] = '\0';
	if (done_bytes == 0 || done_bytes > total_bytes)
		return;
	left_s = passed_s * ((double)total_bytes / (double)done_bytes - 1);
	if (left_s < 120)
		snprintf(text, LEFT_BYTES, ", %.0f s left", left_s);
	else
		snprintf(text, LEFT_BYTES, ", %.0f min left", left_s / 60);
}

void progress_format_rate(char text[PROGRESS_RATE_BYTES],
			  struct progress_rate *rate, uint64_t done_bytes,
			  uint64_t total_bytes, uint64_t now_ns)
{
	char size[FORMAT_SIZE_BYTES], left[LEFT_BYTES];
	uint64_t bytes = MAX(done_bytes, rate->last_bytes) - rate->last_bytes;

	if (rate->begin_ns == 0)
		rate->begin_ns = rate->last_ns = now_ns - NS_PER_S;
	format_left(left, done_bytes, total_bytes, now_ns - rate->begin_ns);
	format_size(size, (uint64_t)((double)bytes * 1e9 /
				     (double)MAX(1, now_ns - rate->last_ns)));
	snprintf(text, PROGRESS_RATE_BYTES, "%s/s%s", size, left);
	rate->last_ns = now_ns;
	rate->last_bytes += bytes;
}

/* "45%, 430.2 MiB of 953.7 MiB", or "430.2 MiB" of an unknown total. */
static void format_done(char *text, size_t text_bytes,
			const struct progress *progress, uint64_t done_bytes)
{
	char done[FORMAT_SIZE_BYTES], total[FORMAT_SIZE_BYTES];
	unsigned __int128 scaled = (unsigned __int128)done_bytes * 100;

	if (progress->total_bytes == 0)
		snprintf(text, text_bytes, "%s", format_size(done, done_bytes));
	else
		snprintf(text, text_bytes, "%u%%, %s of %s",
			 (unsigned)(scaled / progress->total_bytes),
			 format_size(done, done_bytes),
			 format_size(total, progress->total_bytes));
}

static void draw_state(struct progress *progress, uint64_t done_bytes,
		       uint64_t now_ns)
{
	struct progress_rate whole = {
		.begin_ns = progress->begin_ns,
		.last_ns = progress->begin_ns,
	};
	char rate[PROGRESS_RATE_BYTES], done[80], text[240];

	format_done(done, sizeof(done), progress, done_bytes);
	progress_format_rate(rate, &whole, done_bytes, progress->total_bytes,
			     now_ns);
	snprintf(text, sizeof(text), "%s: %s, %s", progress->program, done,
		 rate);
	progress_draw(progress->fd, text);
}

void progress_add(struct progress *progress, uint64_t bytes)
{
	uint64_t done_bytes =
		atomic_fetch_add_explicit(&progress->done_bytes, bytes,
					  memory_order_relaxed) +
		bytes;
	uint64_t next_ns =
		atomic_load_explicit(&progress->next_ns, memory_order_relaxed);
	uint64_t now_ns;

	if (progress->fd < 0)
		return;
	now_ns = clock_now_ns();
	if (now_ns < next_ns)
		return;
	/* The thread that advances next_ns draws. */
	if (!atomic_compare_exchange_strong(&progress->next_ns, &next_ns,
					    now_ns + REDRAW_NS))
		return;
	draw_state(progress, done_bytes, now_ns);
}
