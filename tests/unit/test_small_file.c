/*
 * test_small_file.c - a file of /proc or /sys, and what may stand in its place
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/small_file.h"

/* Nothing here takes as long. */
#define HANGS_SECONDS 60

static char folder[] = "/tmp/test_small_file.XXXXXX";
static char path[sizeof(folder) + 8];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void small_file_read__is_cut(void **state)
{
	FILE *file = fopen(path, "w");
	char text[4];

	(void)state;
	assert_non_null(file);
	fputs("12345\n", file);
	fclose(file);
	assert_true(small_file_read(text, sizeof(text), "%s", path));
	assert_string_equal(text, "123");
	unlink(path);
}

static void small_file_read__cannot(void **state)
{
	char text[4];

	(void)state;
	assert_false(small_file_read(text, sizeof(text), "%s", path));
	assert_false(small_file_read(text, sizeof(text), "%s", folder));
}

static void small_file_read__does_not_wait_for_a_fifo(void **state)
{
	char text[4] = "abc";

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(HANGS_SECONDS);
	if (small_file_read(text, sizeof(text), "%s", path))
		assert_string_equal(text, "");
	alarm(0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_file_read__is_cut),
		cmocka_unit_test(small_file_read__cannot),
		cmocka_unit_test(small_file_read__does_not_wait_for_a_fifo),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
