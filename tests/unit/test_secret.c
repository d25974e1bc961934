#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "descriptors.h"
#include "shell/secret.h"

static const uint8_t zeros[WIRE_SECRET_BYTES];
static const uint8_t ours[WIRE_SECRET_BYTES] =
	"of the first job ..............";

/* Reads to the end, as a process that is given the descriptor does. */
static void expect_content(const struct secret *secret, const uint8_t *wanted)
{
	uint8_t bytes[2 * WIRE_SECRET_BYTES];

	assert_int_equal(read(secret->fd, bytes, sizeof(bytes)),
			 WIRE_SECRET_BYTES);
	assert_memory_equal(bytes, wanted, WIRE_SECRET_BYTES);
	assert_int_equal(read(secret->fd, bytes, sizeof(bytes)), 0);
}

static void open_one(struct secret *secret)
{
	assert_int_equal(secret_open(secret), 0);
	assert_int_equal(fcntl(secret->fd, F_GETFD), FD_CLOEXEC);
	assert_memory_equal(secret->bytes, zeros, WIRE_SECRET_BYTES);
}

static void open__a_file_to_read(void **state)
{
	struct secret secret;

	(void)state;
	open_one(&secret);
	memcpy(secret.bytes, ours, WIRE_SECRET_BYTES);
	expect_content(&secret, ours);
	secret_close(&secret);
	assert_int_equal(secret.fd, -1);
}

/* Neither by the descriptor nor by another of the same file. */
static void open__only_the_mapping_writes(void **state)
{
	struct secret secret;
	char path[64];
	int fds[2];

	(void)state;
	open_one(&secret);
	memcpy(secret.bytes, ours, WIRE_SECRET_BYTES);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", secret.fd);
	fds[0] = secret.fd;
	fds[1] = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fds[1] >= 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pwrite(fds[i], "x", 1, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(fds[i], 0), -1);
		assert_int_equal(ftruncate(fds[i], 64), -1);
		assert_ptr_equal(mmap(NULL, 32, PROT_READ | PROT_WRITE,
				      MAP_SHARED, fds[i], 0),
				 MAP_FAILED);
	}
	close(fds[1]);
	expect_content(&secret, ours);
	secret_close(&secret);
}

/* Another file, though the first one was given back. */
static void open__a_new_file_each_time(void **state)
{
	struct secret first, second;
	unsigned count = open_descriptors();
	int copy;

	(void)state;
	open_one(&first);
	copy = dup(first.fd);
	secret_close(&first);
	open_one(&second);
	memcpy(second.bytes, ours, WIRE_SECRET_BYTES);
	assert_int_equal(lseek(copy, WIRE_SECRET_BYTES, SEEK_SET),
			 WIRE_SECRET_BYTES);
	expect_content(&second, ours);
	assert_int_equal(lseek(copy, 0, SEEK_SET), 0);
	expect_content(&(struct secret){ .fd = copy }, zeros);
	secret_close(&second);
	close(copy);
	assert_int_equal(open_descriptors(), count);
}

/* A copy of the descriptor that a process may hold is of no use then. */
static void close__wiped(void **state)
{
	struct secret secret;
	int copy;

	(void)state;
	open_one(&secret);
	memcpy(secret.bytes, ours, WIRE_SECRET_BYTES);
	copy = dup(secret.fd);
	secret_close(&secret);
	assert_int_equal(secret.fd, -1);
	expect_content(&(struct secret){ .fd = copy }, zeros);
	close(copy);
	secret_close(&secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__a_file_to_read),
		cmocka_unit_test(open__only_the_mapping_writes),
		cmocka_unit_test(open__a_new_file_each_time),
		cmocka_unit_test(close__wiped),
	};

	return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
