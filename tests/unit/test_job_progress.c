#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "shell/job_progress.h"

static void expect_found(const char *written, const char *line)
{
	char text[16];
	bool is_found = job_progress_find((const uint8_t *)written,
					  strlen(written), text, sizeof(text));

	assert_int_equal(is_found, line != NULL);
	assert_string_equal(text, line ? line : "");
}

static void find__the_last_line(void **state)
{
	(void)state;
	expect_found("", NULL);
	expect_found("\r", "");
	expect_found("10%\r", "10%");
	expect_found("10%\r20%\r", "20%");
	expect_found("begun\n10%\r", "10%");
	expect_found("10%\rended\n", NULL);
	expect_found("10%\r20", NULL);
}

static void find__no_bytes_that_a_terminal_obeys(void **state)
{
	(void)state;
	expect_found("a\033[2J\x9b\t\r", "a?[2J??");
	expect_found("a line that is too long\r", "a line that is ");
}

static void expect_dropped(const char *written, const char *rest)
{
	uint8_t bytes[64];
	size_t kept;

	snprintf((char *)bytes, sizeof(bytes), "%s", written);
	kept = job_progress_drop(bytes, strlen(written));
	assert_int_equal(kept, strlen(rest));
	assert_memory_equal(bytes, rest, kept);
}

static void drop__lines_of_progress_only(void **state)
{
	(void)state;
	expect_dropped("", "");
	expect_dropped("\r", "");
	expect_dropped("10%\r20%\r", "");
	expect_dropped("first\n10%\r20%\rlast\n", "first\nlast\n");
	expect_dropped("10%\rrest", "rest");
	expect_dropped("dos\r\n10%\r", "dos\r\n");
	expect_dropped("one\ntwo\n", "one\ntwo\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find__the_last_line),
		cmocka_unit_test(find__no_bytes_that_a_terminal_obeys),
		cmocka_unit_test(drop__lines_of_progress_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
