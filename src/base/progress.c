/*
 * progress.c - draws a line on the terminal that shows how far the work is
 */
#include "base/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/format.h"

#define FIRST_DRAW_NS NS_PER_S
#define REDRAW_NS (NS_PER_S / 10)

/* The longest line is that of a terminal that does not tell its width. */
static int line_columns(int fd)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col < 2)
		return FORMAT_DRAWN_COLUMNS;
	return MIN(size.ws_col - 1, FORMAT_DRAWN_COLUMNS);
}

/* The terminal that has a line; -1: none has. */
static _Atomic int drawn_fd = -1;

/* Overwrite the old line with spaces rather than an escape sequence, which not
 * every terminal knows.  It is one write, so that lines of threads do not mix.
 */
static void draw_line(int fd, const char *text)
{
	char line[FORMAT_DRAWN_COLUMNS + 2];
	size_t columns = (size_t)line_columns(fd);

	memset(line, ' ', sizeof(line));
	line[0] = line[columns + 1] = '\r';
	memcpy(line + 1, text, MIN(strlen(text), columns));
	/* If the terminal is gone, nothing can be done. */
	if (write(fd, line, columns + 2) < 0)
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

/* ", 3 s left", from two minutes on ", 12 min left", or nothing if nothing has
 * been done yet or the total is not known, which is 0 then. */
static void add_left(struct format_line *line, uint64_t done_bytes,
		     uint64_t total_bytes, uint64_t passed_ns)
{
	double passed_s = (double)passed_ns / 1e9, left_s;

	if (done_bytes == 0 || done_bytes > total_bytes)
		return;
	left_s = passed_s * ((double)total_bytes / (double)done_bytes - 1);
	format_add(line, ", ");
	format_add_number(
		line, (uint64_t)((left_s < 120 ? left_s : left_s / 60) + 0.5));
	format_add(line, left_s < 120 ? " s left" : " min left");
}

void progress_add_rate(struct format_line *line, struct progress_rate *rate,
		       uint64_t done_bytes, uint64_t total_bytes,
		       uint64_t now_ns)
{
	uint64_t bytes = MAX(done_bytes, rate->last_bytes) - rate->last_bytes;

	if (rate->begin_ns == 0)
		rate->begin_ns = rate->last_ns = answer_begin_ns() > 0
							 ? answer_begin_ns()
							 : now_ns - NS_PER_S;
	format_add(line,
		   FORMAT_SIZE(
			   (uint64_t)((double)bytes * 1e9 /
				      (double)MAX(1, now_ns - rate->last_ns))));
	format_add(line, "/s");
	add_left(line, done_bytes, total_bytes, now_ns - rate->begin_ns);
	rate->last_ns = now_ns;
	rate->last_bytes += bytes;
}

void progress_add_done(struct format_line *line, uint64_t done_bytes,
		       uint64_t total_bytes)
{
	unsigned __int128 scaled = (unsigned __int128)done_bytes * 100;

	if (total_bytes > 0) {
		format_add_number(line, (uint64_t)(scaled / total_bytes));
		format_add(line, "%, ");
	}
	format_add(line, FORMAT_SIZE(done_bytes));
	if (total_bytes > 0) {
		format_add(line, " of ");
		format_add(line, FORMAT_SIZE(total_bytes));
	}
}

void progress_add_part(struct format_line *line, const char *phase,
		       uint64_t part, uint64_t whole, uint64_t bytes)
{
	double done = (double)MIN(part, whole) / (double)MAX(1, whole);

	format_add(line, phase);
	format_add(line, ": ");
	progress_add_done(line, (uint64_t)(done * (double)bytes), bytes);
}

static void add_state(const struct progress *progress, struct format_line *line,
		      uint64_t done_bytes, uint64_t now_ns)
{
	struct progress_rate whole = {
		.begin_ns = progress->begin_ns,
		.last_ns = progress->begin_ns,
	};

	progress_add_done(line, done_bytes, progress->total_bytes);
	format_add(line, ", ");
	progress_add_rate(line, &whole, done_bytes, progress->total_bytes,
			  now_ns);
}

static bool tell(void *context, struct format_line *line)
{
	const struct progress *progress = context;

	add_state(progress, line, atomic_load(&progress->done_bytes),
		  clock_now_ns());
	return true;
}

void progress_begin(struct progress *progress, int fd, const char *program,
		    uint64_t total_bytes)
{
	progress->fd = isatty(fd) ? fd : -1;
	progress->program = program;
	progress->total_bytes = total_bytes;
	progress->begin_ns = clock_now_ns();
	atomic_init(&progress->done_bytes, 0);
	atomic_init(&progress->next_ns, progress->begin_ns + FIRST_DRAW_NS);
	progress->answer = (struct answer){ tell, progress };
	answer_by(&progress->answer);
}

void progress_end(void)
{
	answer_phase("finishing");
	progress_remove();
}

static void draw_state(struct progress *progress, uint64_t done_bytes,
		       uint64_t now_ns)
{
	struct format_line line = { .length = 0 };

	format_add(&line, progress->program);
	format_add(&line, ": ");
	add_state(progress, &line, done_bytes, now_ns);
	progress_draw(progress->fd, line.text);
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
