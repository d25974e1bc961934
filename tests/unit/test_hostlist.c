#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "net/hostlist.h"

static char folder[] = "/tmp/blinksort-hostlist.XXXXXX";
static int old_folder_fd = -1;

/* The hosts with a blank between each two; cut if they are many. */
static const char *joined(const struct hostlist *list)
{
	static char text[4096];
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < list->count && length < sizeof(text) - 300; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "%s%s", i > 0 ? " " : "",
					   list->hosts[i]);
	return text;
}

struct list_case {
	const char *text, *hosts;
};

static void expect_lists(const struct list_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hostlist list = { 0 };
		struct failure failure = { 0 };

		if (hostlist_add(&list, cases[i].text, &failure) != 0)
			fail_msg("%s: %s", cases[i].text, failure.why);
		if (strcmp(joined(&list), cases[i].hosts) != 0)
			fail_msg("%s: %s", cases[i].text, joined(&list));
		hostlist_free(&list);
	}
}

struct refusal_case {
	const char *text;
	int error;
	const char *why; /* a part of it */
};

static void expect_refusals(const struct refusal_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hostlist list = { 0 };
		struct failure failure = { 0 };
		int error;

		assert_int_equal(hostlist_add(&list, "first", &failure), 0);
		error = hostlist_add(&list, cases[i].text, &failure);
		if (error != cases[i].error ||
		    !strstr(failure.why, cases[i].why))
			fail_msg("%s: %d, %s", cases[i].text, error,
				 failure.why);
		/* As it was. */
		assert_string_equal(joined(&list), "first");
		hostlist_free(&list);
	}
}

/* --- the grammar --------------------------------------------------------- */

static void hostlist_add__forms(void **state)
{
	static const struct list_case cases[] = {
		{ "a", "a" },
		{ "a,b,c", "a b c" },
		{ "a b\tc\nd", "a b c d" },
		{ " a , b ", "a b" },
		{ "Node-1_x.example.com", "Node-1_x.example.com" },
		{ "node1:7300,10.0.0.1:7301", "node1:7300 10.0.0.1:7301" },
		/* Order is kept, duplicates are dropped. */
		{ "c,a,b,a,c", "c a b" },
		{ "n[3,1,2,1-3]", "n3 n1 n2" },
		/* Ranges. */
		{ "n[1-3]", "n1 n2 n3" },
		{ "n[7]", "n7" },
		{ "n[5-5]", "n5" },
		{ "n[1-2,5,9-10]", "n1 n2 n5 n9 n10" },
		{ "[1-2]n", "1n 2n" },
		{ "n[1-2]-ib", "n1-ib n2-ib" },
		{ "10.0.0.[1-3]:7300",
		  "10.0.0.1:7300 10.0.0.2:7300 10.0.0.3:7300" },
		{ "a[1-2],b[3-4]", "a1 a2 b3 b4" },
		{ "n[999999999999999999]", "n999999999999999999" },
		/* Steps. */
		{ "n[0-12/4]", "n0 n4 n8 n12" },
		{ "n[0-11/4]", "n0 n4 n8" },
		{ "n[1-5/1]", "n1 n2 n3 n4 n5" },
		{ "n[1-5/100]", "n1" },
		{ "n[1-999999999999999999/999999999999999998]",
		  "n1 n999999999999999999" },
		{ "n[00-12/6,3]", "n00 n06 n12 n3" },
		/* Zero padding, each range its own. */
		{ "n[01-03]", "n01 n02 n03" },
		{ "n[08-11]", "n08 n09 n10 n11" },
		{ "n[098-101]", "n098 n099 n100 n101" },
		{ "n[01-100/33]", "n01 n34 n67 n100" },
		{ "n[0-2]", "n0 n1 n2" },
		{ "n[00]", "n00" },
		{ "n[9-11]", "n9 n10 n11" },
		{ "n[1,01,001]", "n1 n01 n001" },
		{ "n[1-2,01-02]", "n1 n2 n01 n02" },
		/* Several brackets: the last one counts fastest. */
		{ "r[1-2]n[1-3]", "r1n1 r1n2 r1n3 r2n1 r2n2 r2n3" },
		{ "[1-2][3-4]", "13 14 23 24" },
		{ "[0-1][0-1][0-1]", "000 001 010 011 100 101 110 111" },
		{ "r[01-02]n[0-4/2].x", "r01n0.x r01n2.x r01n4.x "
					"r02n0.x r02n2.x r02n4.x" },
		/* IPv6. */
		{ "[::1]", "[::1]" },
		{ "[::1]:7300", "[::1]:7300" },
		{ "2001:db8::1", "2001:db8::1" },
		{ "2001:db8::[1-2]", "2001:db8::1 2001:db8::2" },
		{ "[2001:db8::[1-2]]:7300",
		  "[2001:db8::1]:7300 [2001:db8::2]:7300" },
		{ "[::[1-2]:[3-4]]", "[::1:3] [::1:4] [::2:3] [::2:4]" },
		{ "[::1]:730[0-1]", "[::1]:7300 [::1]:7301" },
		{ "[fe80::1%eth0]:1", "[fe80::1%eth0]:1" },
	};

	(void)state;
	expect_lists(cases, ARRAY_LEN(cases));
}

static void hostlist_add__algebra(void **state)
{
	static const struct list_case cases[] = {
		{ "a[1-5]!a3", "a1 a2 a4 a5" },
		{ "a[1-5]!a[2-4]", "a1 a5" },
		{ "a[1-5] ! a[2-4]", "a1 a5" },
		{ "a[1-5]!a2!a4", "a1 a3 a5" },
		{ "a[1-5]!b", "a1 a2 a3 a4 a5" },
		{ "a!a", "" },
		{ "a[1-5]&a[3-9]", "a3 a4 a5" },
		{ "a[3-9]&a[5,4]", "a4 a5" },
		{ "a&b", "" },
		/* From left to right. */
		{ "a,b!b,c", "a c" },
		{ "a,b!b,b", "a b" },
		{ "a[1-9]!a[3-9],a5&a[1,5]", "a1 a5" },
		/* From the whole, wherever it stands. */
		{ "a[1-3],-a2", "a1 a3" },
		{ "-a2,a[1-3]", "a1 a3" },
		{ "-a[1-2],a[1-3] -a3,b", "b" },
		{ "-a", "" },
		/* A name without a port goes with any. */
		{ "n[1-3]:7300!n2", "n1:7300 n3:7300" },
		{ "n[1-3]:7300&n2", "n2:7300" },
		{ "n[1-3]:7300!n2:7301", "n1:7300 n2:7300 n3:7300" },
		{ "n[1-3]!n2:7300", "n1 n2 n3" },
		{ "[::[1-3]]:7300!::2,-[::3]", "[::1]:7300 [::2]:7300" },
		{ "::[1-2]!:", "::1 ::2" },
	};

	(void)state;
	expect_lists(cases, ARRAY_LEN(cases));
}

static void hostlist_add__refusals(void **state)
{
	static const char malformed[] = "want numbers";
	static const char missing[] = "name is missing";
	static const struct refusal_case cases[] = {
		{ "", -EINVAL, missing },
		{ " ", -EINVAL, missing },
		{ ",", -EINVAL, missing },
		{ "a,", -EINVAL, "'a,': a host's name is missing" },
		{ ",a", -EINVAL, missing },
		{ "a,,b", -EINVAL, "'a,,': a host's name is missing" },
		{ "!a", -EINVAL, missing },
		{ "a!", -EINVAL, missing },
		{ "a!,b", -EINVAL, missing },
		{ "a&&b", -EINVAL, missing },
		{ "n[", -EINVAL, "without its ']'" },
		{ "n[1-3", -EINVAL, "'n[1-3': a '[' without its ']'" },
		{ "n[1-3,b", -EINVAL, "without its ']'" },
		{ "[::1", -EINVAL, "without its ']'" },
		{ "[::[1]", -EINVAL, malformed },
		{ "n]", -EINVAL, "no host name has" },
		{ "]:0[1-2]x", -EINVAL, "no host name has" },
		{ "n[1]]", -EINVAL, "no host name has" },
		{ "[::1]]", -EINVAL, "no host name has" },
		{ "n[]", -EINVAL, malformed },
		{ "n[,]", -EINVAL, malformed },
		{ "n[1,]", -EINVAL, malformed },
		{ "n[,1]", -EINVAL, malformed },
		{ "n[a-c]", -EINVAL, malformed },
		{ "n[1-]", -EINVAL, malformed },
		{ "n[-1]", -EINVAL, malformed },
		{ "n[1--2]", -EINVAL, malformed },
		{ "n[1-2-3]", -EINVAL, "neither ',' nor ']'" },
		{ "n[1/2]", -EINVAL, "neither ',' nor ']'" },
		{ "n[1-2/]", -EINVAL, malformed },
		{ "n[1-9/2/2]", -EINVAL, "neither ',' nor ']'" },
		{ "n[1-3,x]", -EINVAL, malformed },
		{ "n[1 -3]", -EINVAL, "'n[1': a '[' without its ']'" },
		{ "n[[1]]", -EINVAL, malformed },
		{ "n[+1]", -EINVAL, malformed },
		{ "n[1-5/0]", -EINVAL, "step of zero" },
		{ "n[3-1]", -EINVAL, "counts down" },
		{ "n[1-010]", -EINVAL, "two paddings" },
		{ "n[0-09]", -EINVAL, "two paddings" },
		{ "n[001-09]", -EINVAL, "two paddings" },
		{ "n[001-9]", -EINVAL, "two paddings" },
		{ "n[9999999999999999999]", -EINVAL, malformed },
		{ "n[18446744073709551617]", -EINVAL, malformed },
		{ "a b;c", -EINVAL, "'b;c': a character" },
		{ "a/b", -EINVAL, "no host name has" },
		{ "$(id)", -EINVAL, "no host name has" },
		{ "a\x1b[1mb", -EINVAL, "no host name has" },
		{ "\xc3\xa9", -EINVAL, "no host name has" },
		{ "-", -EINVAL, "cannot begin with '-'" },
		{ "--a", -EINVAL, "cannot begin with '-'" },
		{ "a!-b", -EINVAL, "cannot begin with '-'" },
		{ "^", -EINVAL, "no file's name" },
		{ "a!^", -EINVAL, "no file's name" },
	};

	(void)state;
	expect_refusals(cases, ARRAY_LEN(cases));
}

static void hostlist_add__failure(void **state)
{
	struct hostlist list = { 0 };
	struct failure failure = { 0 };

	(void)state;
	hostlist_add(&list, "n[1-", &failure);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_string_equal(failure.what, "host list");
	assert_string_equal(failure.why, "'n[1-': a '[' without its ']'");
	/* Of a long text only what fits in a line. */
	hostlist_add(&list,
		     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa[",
		     &failure);
	assert_string_equal(failure.why,
			    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...': "
			    "a '[' without its ']'");
}

/* --- sizes --------------------------------------------------------------- */

static void hostlist_add__limits(void **state)
{
	static const struct refusal_case cases[] = {
		{ "n[1-4097]", -E2BIG, "too many hosts" },
		{ "n[1-1000000000]", -E2BIG, "too many hosts" },
		{ "n[0-999999999999999999]", -E2BIG, "too many hosts" },
		{ "[1-65]x[1-64]", -E2BIG, "too many hosts" },
		{ "[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]",
		  -E2BIG, "too many hosts" },
		{ "[1-9999][1-9999][1-9999][1-9999][1-9999]", -E2BIG, "too" },
		{ "a[1-4096],b", -E2BIG, "'b': too many hosts" },
		{ "a!n[1-5000]", -E2BIG, "too many hosts" },
		/* The same few names, over and over. */
		{ "[1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1]"
		  "[1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1][1,1]",
		  -E2BIG, "too many hosts" },
		/* What was there counts. */
		{ "n[1-4096]", -E2BIG, "more than 4096 hosts" },
	};
	struct hostlist list = { 0 };
	struct failure failure;

	(void)state;
	expect_refusals(cases, ARRAY_LEN(cases));
	assert_int_equal(hostlist_add(&list, "n[1-4096]", &failure), 0);
	assert_int_equal(list.count, HOSTLIST_MAX);
	assert_string_equal(list.hosts[4095], "n4096");
	/* All of them again are none more. */
	assert_int_equal(hostlist_add(&list, "n[1-4096]", &failure), 0);
	assert_int_equal(list.count, HOSTLIST_MAX);
	hostlist_free(&list);
}

static void hostlist_add__long_names(void **state)
{
	struct hostlist list = { 0 };
	struct failure failure;
	char text[2 * HOSTLIST_NAME_BYTES];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[HOSTLIST_NAME_BYTES - 1] = '\0';
	assert_int_equal(hostlist_add(&list, text, &failure), 0);
	assert_int_equal(strlen(list.hosts[0]), HOSTLIST_NAME_BYTES - 1);
	text[HOSTLIST_NAME_BYTES - 1] = 'a';
	text[HOSTLIST_NAME_BYTES] = '\0';
	assert_int_equal(hostlist_add(&list, text, &failure), -EINVAL);
	assert_non_null(strstr(failure.why, "too long a name"));
	/* The number makes it too long. */
	strcpy(text + HOSTLIST_NAME_BYTES - 3, "[99-100]");
	assert_int_equal(hostlist_add(&list, text, &failure), -EINVAL);
	strcpy(text + HOSTLIST_NAME_BYTES - 3, "[98-99]");
	assert_int_equal(hostlist_add(&list, text, &failure), 0);
	hostlist_free(&list);
}

/* --- several calls ------------------------------------------------------- */

static void hostlist_add__appends(void **state)
{
	struct hostlist list = { 0 };
	struct failure failure;

	(void)state;
	assert_int_equal(hostlist_add(&list, "c,a", &failure), 0);
	assert_int_equal(hostlist_add(&list, "b,a,d!c", &failure), 0);
	/* The second text's operators are about the second text. */
	assert_string_equal(joined(&list), "c a b d");
	hostlist_free(&list);
	assert_null(list.hosts);
	assert_int_equal(list.count, 0);
}

static void hostlist_exclude__forms(void **state)
{
	struct hostlist list = { 0 };
	struct failure failure;

	(void)state;
	assert_int_equal(hostlist_add(&list, "n[1-9]:7300,m", &failure), 0);
	assert_int_equal(hostlist_exclude(&list, "n[2-4],n5:1", &failure), 0);
	assert_int_equal(
		hostlist_exclude(&list, "n[6-8]:7300!n7:7300", &failure), 0);
	assert_int_equal(hostlist_exclude(&list, "nobody", &failure), 0);
	assert_string_equal(joined(&list), "n1:7300 n5:7300 n7:7300 n9:7300 m");
	assert_int_equal(hostlist_exclude(&list, "n[", &failure), -EINVAL);
	assert_int_equal(list.count, 5);
	/* And it can grow again. */
	assert_int_equal(hostlist_exclude(&list, "n[1-9],m", &failure), 0);
	assert_int_equal(list.count, 0);
	assert_int_equal(hostlist_add(&list, "x[1-20]", &failure), 0);
	assert_int_equal(list.count, 20);
	hostlist_free(&list);
}

/* --- files --------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	old_folder_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (old_folder_fd < 0 || !mkdtemp(folder))
		return -1;
	return chdir(folder);
}

static int teardown(void **state)
{
	(void)state;
	unlink("f");
	unlink("g");
	if (fchdir(old_folder_fd) < 0)
		return -1;
	close(old_folder_fd);
	return rmdir(folder);
}

static void write_bytes(const char *path, const char *bytes, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void write_file(const char *path, const char *text)
{
	write_bytes(path, text, strlen(text));
}

static void hostlist_add__file(void **state)
{
	static const struct list_case cases[] = {
		{ "^f", "a n1 n2 b c d e" },
		{ "x,^f !n1", "x a n2 b c d e" },
		{ "x,^f,y", "x a n1 n2 b c d e y" },
		{ "n[1-5]!^f", "n3 n4 n5" },
		{ "n[1-5]&^f", "n1 n2" },
		{ "n[1-5],-^f", "n3 n4 n5" },
	};

	(void)state;
	write_file("f", "# the head: n9, [\n"
			"a\n"
			"\n"
			"  n[1-2] , b   # two and one\n"
			"c,d\r\n"
			"#e\n"
			"e");
	expect_lists(cases, ARRAY_LEN(cases));
}

static void hostlist_add__file_is_a_list_by_itself(void **state)
{
	static const struct list_case cases[] = {
		{ "b,^f", "b a c" },
		{ "^f", "a c" },
		{ "^g", "a c z" },
	};

	(void)state;
	write_file("f", "a\nb\n-b\nc\n");
	write_file("g", "^f # another\nz\n");
	expect_lists(cases, ARRAY_LEN(cases));
}

static void hostlist_add__empty_file(void **state)
{
	static const struct list_case cases[] = {
		{ "^f", "" },
		{ "a,^f,b", "a b" },
		{ "a!^f", "a" },
		{ "a&^f", "" },
	};

	(void)state;
	write_file("f", "");
	expect_lists(cases, ARRAY_LEN(cases));
	write_file("f", " \n\n# nobody");
	expect_lists(cases, ARRAY_LEN(cases));
}

static void hostlist_add__file_refusals(void **state)
{
	static const struct refusal_case cases[] = {
		{ "^nowhere", -ENOENT, "nowhere: No such file" },
		{ "^nowhere!a", -ENOENT, "nowhere!a: No such file" },
		{ "^.", -EISDIR, "" },
		{ "^f", -EINVAL, "f:3: 'n[2-': a '[' without its ']'" },
		{ "a,^g", -EINVAL, "f:3: 'n[2-': a '[' without its ']'" },
	};
	struct hostlist list = { 0 };
	struct failure failure;

	(void)state;
	write_file("f", "a\n# b\nn[2-\nc\n");
	write_file("g", "^f\n");
	expect_refusals(cases, ARRAY_LEN(cases));
	assert_int_equal(hostlist_add(&list, "^nowhere", &failure), -ENOENT);
	assert_int_equal(failure.status, EXIT_FILE);
	write_bytes("f", "a\0b", 3);
	assert_int_equal(hostlist_add(&list, "^f", &failure), -EINVAL);
}

static void hostlist_add__file_of_itself(void **state)
{
	static const struct refusal_case cases[] = {
		{ "^f", -ELOOP, "f:2: '^f': too many files" },
		{ "^g", -ELOOP, "f:2: '^f': too many files" },
	};

	(void)state;
	write_file("f", "a\n^f\n");
	write_file("g", "^f");
	expect_refusals(cases, ARRAY_LEN(cases));
}

/* Files that each name the next one often need not go deep to cost much. */
static void hostlist_add__many_files(void **state)
{
	struct hostlist list = { 0 };
	struct failure failure;
	char text[3 * HOSTLIST_FILES_MAX + 4] = "";

	(void)state;
	write_file("f", "");
	for (int i = 0; i < HOSTLIST_FILES_MAX; i++)
		strcat(text, "^f ");
	assert_int_equal(hostlist_add(&list, text, &failure), 0);
	strcat(text, "^f ");
	assert_int_equal(hostlist_add(&list, text, &failure), -ELOOP);
	text[3 * HOSTLIST_FILES_MAX] = '\0';
	write_file("g", text);
	assert_int_equal(hostlist_add(&list, "^g", &failure), -ELOOP);
	hostlist_free(&list);
}

static void hostlist_add__file_too_large(void **state)
{
	char *bytes = malloc(HOSTLIST_FILE_BYTES + 1);
	struct hostlist list = { 0 };
	struct failure failure;

	(void)state;
	assert_non_null(bytes);
	memset(bytes, '\n', HOSTLIST_FILE_BYTES + 1);
	bytes[0] = 'a';
	write_bytes("f", bytes, HOSTLIST_FILE_BYTES + 1);
	assert_int_equal(hostlist_add(&list, "^f", &failure), -EFBIG);
	write_bytes("f", bytes, HOSTLIST_FILE_BYTES);
	assert_int_equal(hostlist_add(&list, "^f", &failure), 0);
	assert_string_equal(joined(&list), "a");
	hostlist_free(&list);
	free(bytes);
}

#define FILE_CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostlist_add__forms),
		cmocka_unit_test(hostlist_add__algebra),
		cmocka_unit_test(hostlist_add__refusals),
		cmocka_unit_test(hostlist_add__failure),
		cmocka_unit_test(hostlist_add__limits),
		cmocka_unit_test(hostlist_add__long_names),
		cmocka_unit_test(hostlist_add__appends),
		cmocka_unit_test(hostlist_exclude__forms),
		FILE_CASE(hostlist_add__file),
		FILE_CASE(hostlist_add__file_is_a_list_by_itself),
		FILE_CASE(hostlist_add__empty_file),
		FILE_CASE(hostlist_add__file_refusals),
		FILE_CASE(hostlist_add__file_of_itself),
		FILE_CASE(hostlist_add__many_files),
		FILE_CASE(hostlist_add__file_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
