/*
 * test_external_report.c - the progress of a sort beyond memory on one line
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "base/base.h"
#include "programs/blinksort/external_report.h"

/* What is drawn on standard error, without the spaces behind it. */
static const char *draw(const struct external_progress *progress)
{
	static char text[256];
	int ends[2], saved = dup(STDERR_FILENO);
	ssize_t length;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	external_report_progress(NULL, progress);
	length = read(ends[0], text, sizeof(text) - 1);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	close(ends[0]);
	close(ends[1]);
	assert_true(length > 2);
	assert_int_equal(text[0], '\r');
	while (strchr(" \r", text[length - 1]))
		length--;
	text[length] = '\0';
	return text + 1;
}

/* The widest that there is fits the narrowest terminal: its end is not cut.
 * The first call counts as one second behind the start. */
static void progress__fits_the_line(void **state)
{
	const struct external_progress widest = {
		.pass = EXTERNAL_OUTPUT,
		.moved_bytes = 1023 * MIB,
		.total_bytes = 36000 * 1023 * MIB,
		.wait_disk_percent = 99,
		.wait_memory_percent = 99,
	};
	const char *line = draw(&widest);

	(void)state;
	assert_true(strncmp(line, "blinksort: output: 0%, ", 23) == 0);
	assert_non_null(strstr(line, " MiB/s, "));
	assert_non_null(strstr(line, "0 min left; waits: disk 99%"));
	assert_string_equal(line + strlen(line) - 12, ", memory 99%");
}

/* Of an unknown total, what has been moved is told. */
static void progress__of_a_stream(void **state)
{
	const struct external_progress stream = {
		.pass = EXTERNAL_RUNS,
		.moved_bytes = 2047 * MIB,
		.wait_disk_percent = 7,
	};
	const char *line = draw(&stream);

	(void)state;
	assert_true(strncmp(line, "blinksort: runs: 2.0 GiB, ", 26) == 0);
	assert_non_null(strstr(line, "/s; waits: input 7%, memory 0%"));
}

static void progress__seconds(void **state)
{
	const struct external_progress nearly = {
		.pass = EXTERNAL_MERGES,
		.moved_bytes = 3000 * MIB,
		.total_bytes = 3001 * MIB,
	};

	(void)state;
	assert_non_null(strstr(draw(&nearly), ": merges: 100%, "));
	assert_non_null(strstr(draw(&nearly), ", 0 s left; waits: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress__fits_the_line),
		cmocka_unit_test(progress__of_a_stream),
		cmocka_unit_test(progress__seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
