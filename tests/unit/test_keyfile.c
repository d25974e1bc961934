#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "descriptors.h"
#include "net/keyfile.h"
#include "skip.h"

#define DIGITS "00112233445566778899aabbccddeeff"
#define TEXT DIGITS "0123456789abcdefABCDEF0123456789"

static char folder[] = "/tmp/blinksort-keyfile.XXXXXX";
static int old_folder_fd = -1;

/* Every test begins in an empty folder, which is removed with what it holds:
 * only files named "key", "link" and "folder". */
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
	unlink("key");
	unlink("link");
	rmdir("folder");
	if (fchdir(old_folder_fd) < 0)
		return -1;
	close(old_folder_fd);
	return rmdir(folder);
}

static void write_file(const char *text, mode_t mode)
{
	int fd = open("key", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* Refused, with a message that does not tell the key. */
static void expect_refusal(const char *path, int error, const char *why)
{
	struct failure failure = { 0 };
	uint8_t key[KEYFILE_KEY_BYTES];
	int seen = keyfile_read(path, key, &failure);

	if (seen != error || !strstr(failure.why, why) ||
	    failure.status != EXIT_FILE || failure.what != path)
		fail_msg("%s: %d, \"%s\"", path, seen, failure.why);
	assert_null(strstr(failure.why, "00112233"));
}

static void expect_key(const char *path)
{
	static const uint8_t want[KEYFILE_KEY_BYTES] = {
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
		0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
		0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89,
	};
	struct failure failure = { 0 };
	uint8_t key[KEYFILE_KEY_BYTES];

	if (keyfile_read(path, key, &failure) != 0)
		fail_msg("%s: %s", path, failure.why);
	assert_memory_equal(key, want, sizeof(key));
}

/* --- reading ------------------------------------------------------------- */

static void keyfile_read__modes(void **state)
{
	(void)state;
	for (mode_t mode = 0; mode <= 07777; mode++) {
		bool mine = (mode & 0400) || geteuid() == 0;

		/* What others may not touch, and what one bit more lets in. */
		if (mode & 0177 & ((mode & 0177) - 1))
			continue;
		write_file(TEXT "\n", mode);
		if (mode & 077)
			expect_refusal("key", mine ? -EINVAL : -EACCES,
				       mine ? "others have access" : "");
		else if (mine)
			expect_key("key");
		unlink("key");
	}
}

static void keyfile_read__named_modes(void **state)
{
	static const mode_t refused[] = { 0440, 0404, 0666, 0420, 0402,
					  0410, 0401, 0644, 0777 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		write_file(TEXT "\n", refused[i]);
		expect_refusal("key", -EINVAL, "chmod 0400");
		unlink("key");
	}
	write_file(TEXT "\n", 0400);
	expect_key("key");
	unlink("key");
	write_file(TEXT "\n", 0600);
	expect_key("key");
}

static void keyfile_read__without_newline(void **state)
{
	(void)state;
	write_file(TEXT, 0400);
	expect_key("key");
}

static void keyfile_read__other_texts(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		DIGITS "\n",
		TEXT "\n\n",
		TEXT "0\n",
		TEXT "00",
		TEXT "00\n",
		TEXT " ",
		TEXT "\r\n",
		" " TEXT,
		DIGITS "0123456789abcdefABCDEF012345678\n",  /* one too few */
		DIGITS "0123456789abcdefABCDEF012345678g\n", /* no digit */
		DIGITS "0123456789abcdefABCDEF01234567 8\n",
		DIGITS "\n0123456789abcdefABCDEF012345678\n",
		DIGITS ":123456789abcdefABCDEF0123456789\n",
		"0x112233445566778899aabbccddeeff"
		"0123456789abcdefABCDEF0123456789\n",
		DIGITS DIGITS DIGITS DIGITS DIGITS "\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		write_file(texts[i], 0400);
		expect_refusal("key", -EINVAL, "64 hexadecimal digits");
		unlink("key");
	}
}

/* A key that is not good leaves nothing behind that could be used as one. */
static void keyfile_read__half_a_key_is_none(void **state)
{
	struct failure failure;
	uint8_t key[KEYFILE_KEY_BYTES];

	(void)state;
	write_file(DIGITS "0123456789abcdefABCDEF012345678g\n", 0400);
	memset(key, 0x5a, sizeof(key));
	assert_int_equal(keyfile_read("key", key, &failure), -EINVAL);
	for (size_t i = 0; i < sizeof(key); i++)
		assert_int_equal(key[i], 0);
}

static void keyfile_read__not_a_file(void **state)
{
	(void)state;
	expect_refusal("key", -ENOENT, "No such file");
	expect_refusal("", -ENOENT, "No such file");
	expect_refusal("/dev/null", -EINVAL, "not a regular file");
	assert_int_equal(mkdir("folder", 0700), 0);
	expect_refusal("folder", -EINVAL, "not a regular file");
	/* Nobody writes to it: a read that waited would wait for ever. */
	assert_int_equal(mkfifo("key", 0600), 0);
	expect_refusal("key", -EINVAL, "not a regular file");
}

/* A descriptor of a file that is gone, wherever it stands, in place of a path;
 * it is closed, and what is standard input is not left free. */
static void keyfile_read__descriptor(void **state)
{
	int input = dup(STDIN_FILENO);
	struct stat status, null;
	char path[16];
	int fd;

	(void)state;
	for (int low = 0; low < 2; low++) {
		write_file(TEXT "\n", 0400);
		fd = open("key", O_RDONLY | O_CLOEXEC);
		unlink("key");
		assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
		if (low) {
			assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
			close(fd);
			fd = STDIN_FILENO;
		}
		snprintf(path, sizeof(path), "fd:%d", fd);
		expect_key(path);
		if (!low)
			assert_int_equal(fcntl(fd, F_GETFD), -1);
	}
	assert_int_equal(fstat(STDIN_FILENO, &status), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_int_equal(status.st_rdev, null.st_rdev);
	assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
	close(input);
}

static void keyfile_read__descriptor_refused(void **state)
{
	static const char *const wrong[] = { "fd:",   "fd:x",  "fd:-1",
					     "fd: 3", "fd:3 ", "fd:2147483648",
					     "fd:0x1" };
	char path[16];
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		expect_refusal(wrong[i], -EINVAL, "no number of a descriptor");
	expect_refusal("fd:1000000", -EBADF, "Bad file descriptor");
	write_file(TEXT "\n", 0440);
	fd = open("key", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "fd:%d", fd);
	expect_refusal(path, -EINVAL, "others have access");
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void keyfile_read__link(void **state)
{
	(void)state;
	write_file(TEXT "\n", 0400);
	assert_int_equal(symlink("key", "link"), 0);
	expect_refusal("link", -EINVAL, "symbolic link");
	expect_key("key");
}

static void keyfile_read__of_another_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	write_file(TEXT "\n", 0400);
	assert_int_equal(chown("key", 12345, (gid_t)-1), 0);
	expect_refusal("key", -EINVAL, "neither this user nor root");
	/* And that user may have it, and root's file if root lets him. */
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(seteuid(12345), 0);
	expect_key("key");
	assert_int_equal(seteuid(0), 0);
}

/* --- making -------------------------------------------------------------- */

static void expect_mode_0400(void)
{
	struct stat file;

	assert_int_equal(lstat("key", &file), 0);
	assert_int_equal(file.st_mode, S_IFREG | 0400);
	assert_int_equal(file.st_size, 65);
}

static void keyfile_create__can_be_read(void **state)
{
	uint8_t first[KEYFILE_KEY_BYTES], second[KEYFILE_KEY_BYTES];
	struct failure failure;

	(void)state;
	assert_int_equal(keyfile_create("key", &failure), 0);
	expect_mode_0400();
	assert_int_equal(keyfile_read("key", first, &failure), 0);
	unlink("key");
	assert_int_equal(keyfile_create("key", &failure), 0);
	assert_int_equal(keyfile_read("key", second, &failure), 0);
	assert_memory_not_equal(first, second, sizeof(first));
}

static void keyfile_create__whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 0777 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
		struct failure failure;
		mode_t before = umask(masks[i]);
		int error = keyfile_create("key", &failure);

		umask(before);
		assert_int_equal(error, 0);
		expect_mode_0400();
		unlink("key");
	}
}

static void keyfile_create__never_replaces(void **state)
{
	struct failure failure;

	(void)state;
	write_file(TEXT "\n", 0600);
	assert_int_equal(keyfile_create("key", &failure), -EEXIST);
	assert_int_equal(failure.status, EXIT_FILE);
	expect_key("key");
	unlink("key");
	/* Nor goes where a link leads. */
	assert_int_equal(symlink("key", "link"), 0);
	assert_int_equal(keyfile_create("link", &failure), -EEXIST);
	assert_int_equal(access("key", F_OK), -1);
}

static void keyfile_create__no_folder(void **state)
{
	struct failure failure;

	(void)state;
	assert_int_equal(keyfile_create("folder/key", &failure), -ENOENT);
	assert_string_equal(failure.what, "folder/key");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void keyfile__no_descriptor(void **state)
{
	struct failure failure = { 0 };
	uint8_t key[KEYFILE_KEY_BYTES];
	struct rlimit before;
	int error;

	(void)state;
	write_file(TEXT, 0400);
	before = refuse_descriptors();
	error = keyfile_read("key", key, &failure);
	release_descriptors(before);
	assert_int_equal(error, -EMFILE);
	assert_int_equal(failure.status, EXIT_RESOURCES);
	before = refuse_descriptors();
	error = keyfile_create("link", &failure);
	release_descriptors(before);
	assert_int_equal(error, -EMFILE);
	assert_int_equal(failure.status, EXIT_RESOURCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(keyfile_read__modes),
		CASE(keyfile_read__named_modes),
		CASE(keyfile_read__without_newline),
		CASE(keyfile_read__other_texts),
		CASE(keyfile_read__half_a_key_is_none),
		CASE(keyfile_read__not_a_file),
		CASE(keyfile_read__descriptor),
		CASE(keyfile_read__descriptor_refused),
		CASE(keyfile_read__link),
		CASE(keyfile_read__of_another_user),
		CASE(keyfile_create__can_be_read),
		CASE(keyfile_create__whatever_the_umask),
		CASE(keyfile_create__never_replaces),
		CASE(keyfile_create__no_folder),
		CASE(keyfile__no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
