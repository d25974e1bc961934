/*
 * test_file_io.c - a part of a file is read and written whole, also where calls
 * are interrupted or move a few bytes only
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/base.h"
#include "io/file_io.h"

#define FILE_BYTES 1000

/* What the next calls do: every other one is interrupted, and the others move
 * at most so many bytes; or all fail. */
static struct {
	unsigned calls;
	size_t bytes_max;
	int error;
} pretend;

static int fd;
static uint8_t content[FILE_BYTES];

ssize_t __real_pread(int file, void *bytes, size_t count, off_t offset);
ssize_t __wrap_pread(int file, void *bytes, size_t count, off_t offset);
ssize_t __real_pwrite(int file, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t count, off_t offset);

static bool fails(void)
{
	errno = pretend.error ? pretend.error : EINTR;
	return pretend.error || pretend.calls++ % 2 == 0;
}

ssize_t __wrap_pread(int file, void *bytes, size_t count, off_t offset)
{
	if (fails())
		return -1;
	return __real_pread(file, bytes, MIN(count, pretend.bytes_max), offset);
}

ssize_t __wrap_pwrite(int file, const void *bytes, size_t count, off_t offset)
{
	if (fails())
		return -1;
	return __real_pwrite(file, bytes, MIN(count, pretend.bytes_max),
			     offset);
}

static int setup(void **state)
{
	char path[] = "/tmp/test_file_io.XXXXXX";

	(void)state;
	fd = mkstemp(path);
	if (fd < 0 || unlink(path) < 0)
		return -1;
	for (size_t i = 0; i < FILE_BYTES; i++)
		content[i] = (uint8_t)(i * 7 + i / 256);
	if (__real_pwrite(fd, content, FILE_BYTES, 0) != FILE_BYTES)
		return -1;
	pretend.calls = 0;
	pretend.bytes_max = 77;
	pretend.error = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(fd);
}

static void file_read_at__reads_all(void **state)
{
	uint8_t bytes[FILE_BYTES] = { 0 };

	(void)state;
	assert_int_equal(file_read_at(fd, bytes, 600, 123), 600);
	assert_memory_equal(bytes, content + 123, 600);
	assert_int_equal(bytes[600], 0);
}

static void file_read_at__ends_with_the_file(void **state)
{
	uint8_t bytes[FILE_BYTES];

	(void)state;
	assert_int_equal(file_read_at(fd, bytes, FILE_BYTES, 900), 100);
	assert_memory_equal(bytes, content + 900, 100);
	assert_int_equal(file_read_at(fd, bytes, 1, FILE_BYTES), 0);
	pretend.error = EIO;
	assert_int_equal(file_read_at(fd, bytes, 1, 0), -EIO);
}

static void file_write_at__writes_all(void **state)
{
	uint8_t bytes[FILE_BYTES];

	(void)state;
	memset(content + 50, 0xee, 600);
	assert_int_equal(file_write_at(fd, content + 50, 600, 50), 0);
	assert_int_equal(__real_pread(fd, bytes, FILE_BYTES, 0), FILE_BYTES);
	assert_memory_equal(bytes, content, FILE_BYTES);
}

static void file_write_at__fails(void **state)
{
	(void)state;
	pretend.error = ENOSPC;
	assert_int_equal(file_write_at(fd, content, 1, 0), -ENOSPC);
	/* What takes nothing is not asked for ever. */
	pretend.error = 0;
	pretend.bytes_max = 0;
	assert_int_equal(file_write_at(fd, content, 1, 0), -EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_read_at__reads_all),
		TEST(file_read_at__ends_with_the_file),
		TEST(file_write_at__writes_all),
		TEST(file_write_at__fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
