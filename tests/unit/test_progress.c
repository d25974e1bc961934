#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/progress.h"

#define MS UINT64_C(1000000)

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* What the clock shows this thread; 0: the time. */
static _Thread_local uint64_t shown_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (shown_ns == 0)
		return __real_clock_gettime(clock, now);
	now->tv_sec = (time_t)(shown_ns / (1000 * MS));
	now->tv_nsec = (long)(shown_ns % (1000 * MS));
	return 0;
}

static void add_at(struct progress *progress, uint64_t bytes, uint64_t now_ns)
{
	shown_ns = now_ns;
	progress_add(progress, bytes);
	shown_ns = 0;
}

/* Both ends of a terminal of our own. */
static int screen = -1, terminal = -1;

static int open_terminal(void **state)
{
	struct termios raw;

	(void)state;
	screen = posix_openpt(O_RDWR | O_NOCTTY);
	if (screen < 0 || grantpt(screen) || unlockpt(screen))
		return -1;
	terminal = open(ptsname(screen), O_RDWR | O_NOCTTY);
	if (terminal < 0 || tcgetattr(terminal, &raw))
		return -1;
	cfmakeraw(&raw);
	fcntl(screen, F_SETFL, O_NONBLOCK);
	return tcsetattr(terminal, TCSANOW, &raw);
}

static int close_terminal(void **state)
{
	(void)state;
	close(terminal);
	close(screen);
	return 0;
}

/* All that was drawn since the last call; "" for nothing.  A byte to mark the
 * end, since a terminal may hand over what was written in pieces. */
static const char *drawn(void)
{
	static char text[8192];
	size_t length = 0;

	assert_int_equal(write(terminal, "$", 1), 1);
	while (length == 0 || text[length - 1] != '$') {
		ssize_t got =
			read(screen, text + length, sizeof(text) - 1 - length);

		if (got > 0)
			length += (size_t)got;
		else
			usleep(100);
	}
	text[length - 1] = '\0';
	return text;
}

static void progress__nothing_in_the_first_second(void **state)
{
	struct progress progress;

	(void)state;
	progress_begin(&progress, terminal, "p", 100 * MIB);
	add_at(&progress, MIB, progress.begin_ns);
	add_at(&progress, MIB, progress.begin_ns + 999 * MS);
	progress_remove();
	assert_string_equal(drawn(), "");
}

static void progress__line(void **state)
{
	struct progress progress;
	char want[100];

	(void)state;
	progress_begin(&progress, terminal, "blinkgen", 100 * MIB);
	add_at(&progress, 40 * MIB, progress.begin_ns);
	add_at(&progress, 5 * MIB, progress.begin_ns + 1500 * MS);
	snprintf(want, sizeof(want), "\r%-79s\r",
		 "blinkgen: 45%, 45.0 MiB of 100.0 MiB, 30.0 MiB/s, 2 s left");
	assert_string_equal(drawn(), want);
	add_at(&progress, 5 * MIB, progress.begin_ns + 125000 * MS);
	snprintf(want, sizeof(want), "\r%-79s\r",
		 "blinkgen: 50%, 50.0 MiB of 100.0 MiB, 409.6 KiB/s, "
		 "2 min left");
	assert_string_equal(drawn(), want);
}

static void progress__no_wider_than_the_terminal(void **state)
{
	struct winsize narrow = { .ws_row = 24, .ws_col = 30 };
	struct winsize unknown = { .ws_row = 0 };
	char want[100];

	(void)state;
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &narrow), 0);
	progress_draw(terminal, "blinkgen: 45%, 45.0 MiB of 100.0 MiB");
	assert_string_equal(drawn(), "\rblinkgen: 45%, 45.0 MiB of 10\r");
	progress_remove();
	snprintf(want, sizeof(want), "\r%-29s\r", "");
	assert_string_equal(drawn(), want);
	assert_int_equal(ioctl(terminal, TIOCSWINSZ, &unknown), 0);
}

/* Of a pipe. */
static void progress__total_is_not_known(void **state)
{
	struct progress progress;
	char want[100];

	(void)state;
	progress_begin(&progress, terminal, "blinkval", 0);
	add_at(&progress, 30 * MIB, progress.begin_ns + 2000 * MS);
	snprintf(want, sizeof(want), "\r%-79s\r",
		 "blinkval: 30.0 MiB, 15.0 MiB/s");
	assert_string_equal(drawn(), want);
}

static void progress__ten_times_a_second(void **state)
{
	struct progress progress;

	(void)state;
	progress_begin(&progress, terminal, "p", GIB);
	add_at(&progress, 1, progress.begin_ns + 1000 * MS);
	assert_string_not_equal(drawn(), "");
	add_at(&progress, 1, progress.begin_ns + 1099 * MS);
	assert_string_equal(drawn(), "");
	add_at(&progress, 1, progress.begin_ns + 1100 * MS);
	assert_string_not_equal(drawn(), "");
}

static void progress_remove__removes_the_line(void **state)
{
	struct progress progress;
	char want[100];

	(void)state;
	progress_begin(&progress, terminal, "p", 0);
	add_at(&progress, 7, progress.begin_ns + 2000 * MS);
	drawn();
	progress_remove();
	snprintf(want, sizeof(want), "\r%79s\r", "");
	assert_string_equal(drawn(), want);
	progress_remove();
	assert_string_equal(drawn(), "");
}

/* A long name is cut, so that the line never wraps. */
static void progress__never_wraps(void **state)
{
	struct progress progress;
	char name[101];
	const char *line;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	progress_begin(&progress, terminal, name, GIB);
	add_at(&progress, 1, progress.begin_ns + 2000 * MS);
	line = drawn();
	assert_int_equal(strlen(line), 81);
	assert_ptr_equal(strchr(line + 1, '\r'), line + 80);
}

static void progress__silent_if_no_terminal(void **state)
{
	struct progress progress;
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	progress_begin(&progress, ends[1], "p", 100);
	add_at(&progress, 50, progress.begin_ns + 5000 * MS);
	progress_add(&progress, 50);
	progress_remove();
	drawn(); /* what earlier cases have left */
	assert_int_equal(read(ends[0], &byte, 1), -1);
	assert_int_equal(atomic_load(&progress.done_bytes), 100);
	close(ends[0]);
	close(ends[1]);
}

static void progress_remove__nothing_was_drawn(void **state)
{
	(void)state;
	progress_remove();
	assert_string_equal(drawn(), "");
}

#define ADDERS 4
#define ADDS 10000

static void *add_many(void *context)
{
	struct progress *progress = context;

	for (uint64_t i = 1; i <= ADDS; i++)
		add_at(progress, 1, progress->begin_ns + i * MS / 5);
	return NULL;
}

/* Nothing is lost, and at most one line for each tenth of the second second. */
static void progress_add__from_threads(void **state)
{
	struct progress progress;
	pthread_t threads[ADDERS];
	const char *lines;
	unsigned returns = 0;

	(void)state;
	progress_begin(&progress, terminal, "p", ADDERS * ADDS);
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, add_many, &progress),
			0);
	for (int i = 0; i < ADDERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&progress.done_bytes), ADDERS * ADDS);
	for (lines = drawn(); *lines; lines++)
		returns += *lines == '\r';
	assert_in_range(returns, 2, 2 * 11);
}

static void progress_add_rate__examples(void **state)
{
	static const struct {
		uint64_t done, total, passed_ns;
		const char *text;
	} examples[] = {
		{ 0, 100, 5000 * MS, "0 B/s" },
		{ 5, 0, 5000 * MS, "1 B/s" },
		{ 101, 100, 5000 * MS, "20 B/s" },
		{ 100, 100, 5000 * MS, "20 B/s, 0 s left" },
		{ 50, 100, 5000 * MS, "10 B/s, 5 s left" },
		{ 1, 3, 59600 * MS, "0 B/s, 119 s left" },
		{ 1, 3, 60000 * MS, "0 B/s, 2 min left" },
		{ 1, 3, 44 * 60000 * MS, "0 B/s, 88 min left" },
		{ 1, UINT64_MAX, 1000 * MS,
		  "1 B/s, 307445734561825856 min left" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		struct progress_rate rate = { .begin_ns = MS, .last_ns = MS };
		struct format_line line = { .length = 0 };

		progress_add_rate(&line, &rate, examples[i].done,
				  examples[i].total,
				  MS + examples[i].passed_ns);
		assert_string_equal(line.text, examples[i].text);
	}
}

static const char *rate_text(struct progress_rate *rate, uint64_t done_bytes,
			     uint64_t now_ns)
{
	static struct format_line line;

	line = (struct format_line){ .length = 0 };
	progress_add_rate(&line, rate, done_bytes, 0, now_ns);
	return line.text;
}

/* The first call takes the second before it for the time since the begin; a
 * rank may tell less than it has told before. */
static void progress_add_rate__since_the_last_call(void **state)
{
	struct progress_rate rate = { 0 };

	(void)state;
	assert_string_equal(rate_text(&rate, 3 * KIB, 10000 * MS), "3.0 KiB/s");
	assert_string_equal(rate_text(&rate, 7 * KIB, 12000 * MS), "2.0 KiB/s");
	assert_string_equal(rate_text(&rate, 6 * KIB, 13000 * MS), "0 B/s");
	assert_string_equal(rate_text(&rate, 8 * KIB, 14000 * MS), "1.0 KiB/s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress__nothing_in_the_first_second),
		cmocka_unit_test(progress__line),
		cmocka_unit_test(progress__no_wider_than_the_terminal),
		cmocka_unit_test(progress__total_is_not_known),
		cmocka_unit_test(progress__ten_times_a_second),
		cmocka_unit_test(progress_remove__removes_the_line),
		cmocka_unit_test(progress__never_wraps),
		cmocka_unit_test(progress__silent_if_no_terminal),
		cmocka_unit_test(progress_remove__nothing_was_drawn),
		cmocka_unit_test(progress_add__from_threads),
		cmocka_unit_test(progress_add_rate__examples),
		cmocka_unit_test(progress_add_rate__since_the_last_call),
	};

	return cmocka_run_group_tests(tests, open_terminal, close_terminal);
}
