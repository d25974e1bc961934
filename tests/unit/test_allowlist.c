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
#include <sys/stat.h>
#include <unistd.h>

#include "shell/allowlist.h"
#include "base/base.h"

/*
 * FOLDER/in/tool, FOLDER/in/deep/tool      programs, in what is allowed
 * FOLDER/in/out.link, FOLDER/in/out        links to the one that is not, and
 *                                          to its folder
 * FOLDER/out/tool                          not allowed
 * FOLDER/out/in.link, FOLDER/link          links to the first, and to its
 *                                          folder
 */
static char folder[] = "/tmp/blinksort-allowlist.XXXXXX";
static struct allowlist list;

static const char *below(const char *name)
{
	static char paths[2][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	return path;
}

static int make_program(const char *name)
{
	int fd = open(below(name), O_CREAT | O_WRONLY, 0755);

	return fd < 0 ? -1 : close(fd);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || mkdir(below("in"), 0755) < 0 ||
	    mkdir(below("in/deep"), 0755) < 0 ||
	    mkdir(below("in/.hidden"), 0755) < 0 ||
	    mkdir(below("out"), 0755) < 0 ||
	    mkdir(below("in-twin"), 0755) < 0 ||
	    make_program("in-twin/tool") < 0 || make_program("in/tool") < 0 ||
	    make_program("in/deep/tool") < 0 ||
	    make_program("in/.hidden/tool") < 0 ||
	    make_program("out/tool") < 0 ||
	    symlink("../out/tool", below("in/out.link")) < 0 ||
	    symlink("../out", below("in/out")) < 0 ||
	    symlink("../in/tool", below("out/in.link")) < 0 ||
	    symlink("in", below("link")) < 0)
		return -1;
	return allowlist_add(&list, below("in"));
}

static int tear_down(void **state)
{
	static const char *const files[] = {
		"in/tool",     "in/deep/tool", "in/.hidden/tool",
		"out/tool",    "in/out.link",  "in/out",
		"out/in.link", "link",	       "in-twin/tool",
	};
	static const char *const folders[] = { "in-twin",    "in/deep",
					       "in/.hidden", "in",
					       "out",	     "" };

	(void)state;
	allowlist_free(&list);
	for (unsigned i = 0; i < ARRAY_LEN(files); i++)
		unlink(below(files[i]));
	for (unsigned i = 0; i < ARRAY_LEN(folders); i++)
		rmdir(below(folders[i]));
	return 0;
}

/* Whatever the way there, it is where the program lies that counts. */
static void resolve__ways(void **state)
{
	static const struct {
		const char *name, *real; /* NULL: not allowed */
	} cases[] = {
		{ "in/tool", "in/tool" },
		{ "in/deep/tool", "in/deep/tool" },
		{ "in/.hidden/tool", "in/.hidden/tool" },
		{ "link/tool", "in/tool" },
		{ "out/in.link", "in/tool" },
		{ "in//tool", "in/tool" },
		{ "in/./tool", "in/tool" },
		{ "in/deep/../tool", "in/tool" },
		{ "out/../in/tool", "in/tool" },
		{ "in/out/../in/tool", "in/tool" },
		{ "in/deep/", "in/deep" },
		{ "out/tool", NULL },
		/* A folder whose name begins alike is another folder. */
		{ "in-twin/tool", NULL },
		{ "in/out.link", NULL },
		{ "in/out/tool", NULL },
		{ "in/../out/tool", NULL },
		{ "link/out/tool", NULL },
		{ "in/..", NULL },
		{ "in/.", NULL },
		/* The folder itself does not lie in it. */
		{ "in", NULL },
		{ "in/", NULL },
		{ "link/", NULL },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		char real[PATH_MAX];
		int error =
			allowlist_resolve(&list, below(cases[i].name), real);

		if (error != (cases[i].real ? 0 : -EPERM))
			fail_msg("%s: %d", cases[i].name, error);
		if (cases[i].real)
			assert_string_equal(real, below(cases[i].real));
	}
}

/* One that /proc has, and opens, whatever it names. */
static void resolve__magic_links(void **state)
{
	int fd = open(below("in/tool"), O_RDONLY);
	char path[64], real[PATH_MAX];

	(void)state;
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(allowlist_resolve(&list, path, real), 0);
	assert_string_equal(real, below("in/tool"));
	close(fd);
	snprintf(path, sizeof(path), "/proc/self/root%.40s", "/bin/sh");
	assert_int_equal(allowlist_resolve(&list, path, real), -EPERM);
}

static void resolve__nothing_there(void **state)
{
	char path[PATH_MAX + 16], real[PATH_MAX];

	(void)state;
	assert_int_equal(allowlist_resolve(&list, "tool", real), -EINVAL);
	assert_int_equal(allowlist_resolve(&list, "", real), -EINVAL);
	assert_int_equal(allowlist_resolve(&list, below("in/none"), real),
			 -ENOENT);
	assert_int_equal(allowlist_resolve(&list, below("in/tool/x"), real),
			 -ENOTDIR);
	assert_int_equal(allowlist_resolve(&list, below("in/tool/"), real),
			 -ENOTDIR);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(allowlist_resolve(&list, path, real), -ENAMETOOLONG);
}

static void add__folders(void **state)
{
	struct allowlist few = { .count = 0 };
	char real[PATH_MAX];

	(void)state;
	assert_int_equal(allowlist_add(&few, "/etc/passwd"), -ENOTDIR);
	assert_int_equal(allowlist_add(&few, "/no/such"), -ENOENT);
	assert_int_equal(allowlist_add(&few, "/"), 0);
	assert_int_equal(allowlist_resolve(&few, "/etc/passwd", real), 0);
	assert_string_equal(real, "/etc/passwd");
	allowlist_free(&few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolve__ways),
		cmocka_unit_test(resolve__magic_links),
		cmocka_unit_test(resolve__nothing_there),
		cmocka_unit_test(add__folders),
	};

	return cmocka_run_group_tests_name("allowlist", tests, set_up,
					   tear_down);
}
