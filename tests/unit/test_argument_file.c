#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/argument_file.h"
#include "base/base.h"
#include "base/failure.h"

static char folder[] = "/tmp/test_argument_file.XXXXXX";
static struct failure failure;

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink("a");
	return rmdir(folder);
}

static void write_file(const char *bytes, size_t byte_count)
{
	FILE *file = fopen("a", "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, byte_count, file), byte_count);
	assert_int_equal(fclose(file), 0);
}

/* The words of a command line, joined by '|', with the file's in their place.
 */
static void expect(const char *wanted, char *const *given)
{
	char *words[16], **expanded = words, joined[256] = "";
	int count = 0;

	for (; given[count]; count++)
		words[count] = given[count];
	words[count] = NULL;
	assert_int_equal(argument_file_expand(&count, &expanded, &failure), 0);
	for (int i = 0; i < count; i++)
		snprintf(joined + strlen(joined),
			 sizeof(joined) - strlen(joined), "%s%s", i ? "|" : "",
			 expanded[i]);
	assert_null(expanded[count]);
	assert_string_equal(joined, wanted);
}

#define EXPECT(WANTED, ...) expect(WANTED, (char *[]){ __VA_ARGS__, NULL })

static void argument_file__lines(void **state)
{
	static const char text[] = "-T\n/a b\n\n# a comment\n'x'\n@a\n--\nlast";
	static const char of_windows[] = "-T\r\n\r\n#\r\na\rb\r\r\nlast\r";

	(void)state;
	write_file(text, strlen(text));
	EXPECT("p|-T|/a b|'x'|@a|--|last|in", "p", "@a", "in");
	EXPECT("p|-T|/a b|'x'|@a|--|last|-T|/a b|'x'|@a|--|last", "p", "@a",
	       "@a");
	write_file("", 0);
	EXPECT("p|in", "p", "@a", "in");
	write_file(of_windows, strlen(of_windows));
	EXPECT("p|-T|a\rb\r|last", "p", "@a");
}

static void argument_file__no_file(void **state)
{
	(void)state;
	EXPECT("@a|x|@", "@a", "x", "@");
	EXPECT("p|--|@a", "p", "--", "@a");
	EXPECT("p|./@a|x@a", "p", "./@a", "x@a");
}

static void refuse(const char *path, const char *why)
{
	char *words[] = { "p", (char *)path, NULL }, **expanded = words;
	int count = 2;

	assert_true(argument_file_expand(&count, &expanded, &failure) < 0);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, path + 1);
	assert_non_null(strstr(failure.why, why));
	assert_ptr_equal(expanded, words);
}

static void argument_file__refused(void **state)
{
	char *large = malloc(ARGUMENT_FILE_BYTES_MAX + 1);

	(void)state;
	assert_non_null(large);
	memset(large, '\n', ARGUMENT_FILE_BYTES_MAX + 1);
	refuse("@missing", "No such file");
	refuse("@.", "directory");
	write_file("a\0b", 3);
	refuse("@a", "a byte 0");
	write_file(large, ARGUMENT_FILE_BYTES_MAX + 1);
	refuse("@a", "more than");
	write_file(large, ARGUMENT_FILE_BYTES_MAX);
	EXPECT("p", "p", "@a");
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(argument_file__lines),
		cmocka_unit_test(argument_file__no_file),
		cmocka_unit_test(argument_file__refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
