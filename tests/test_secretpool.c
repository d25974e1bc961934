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

#include "base.h"
#include "descriptors.h"
#include "secretpool.h"

static const uint8_t zeros[WIRE_SECRET_BYTES];
static const uint8_t ours[WIRE_SECRET_BYTES] =
	"of the first job ..............";

static struct secretpool pool;

static int tear_down(void **state)
{
	(void)state;
	secretpool_close(&pool);
	return 0;
}

/* What whoever is given the descriptor reads, to the end. */
static void expect_content(const struct secret *secret, const uint8_t *wanted)
{
	uint8_t bytes[2 * WIRE_SECRET_BYTES];

	assert_int_equal(read(secret->fd, bytes, sizeof(bytes)),
			 WIRE_SECRET_BYTES);
	assert_memory_equal(bytes, wanted, WIRE_SECRET_BYTES);
	assert_int_equal(read(secret->fd, bytes, sizeof(bytes)), 0);
}

static void take(struct secret *secret)
{
	assert_int_equal(secretpool_take(&pool, secret), 0);
	assert_int_equal(fcntl(secret->fd, F_GETFD), FD_CLOEXEC);
	assert_memory_equal(secret->bytes, zeros, WIRE_SECRET_BYTES);
}

static void take__a_file_to_read(void **state)
{
	struct secret secret;

	(void)state;
	take(&secret);
	memcpy(secret.bytes, ours, WIRE_SECRET_BYTES);
	expect_content(&secret, ours);
	secretpool_give(&pool, &secret);
	assert_int_equal(secret.fd, -1);
}

/* Neither by the descriptor nor by another of the same file. */
static void take__nobody_else_writes(void **state)
{
	struct secret secret;
	char path[64];
	int fds[2];

	(void)state;
	take(&secret);
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
	secretpool_give(&pool, &secret);
}

/* The same file, wiped, and at its beginning though it was read. */
static void give__used_again(void **state)
{
	struct secret first, again;
	unsigned count;

	(void)state;
	take(&first);
	memcpy(first.bytes, ours, WIRE_SECRET_BYTES);
	expect_content(&first, ours);
	count = open_descriptors();
	secretpool_give(&pool, &first);
	take(&again);
	assert_int_equal(open_descriptors(), count);
	expect_content(&again, zeros);
	secretpool_give(&pool, &again);
}

static void give__no_more_than_so_many(void **state)
{
	struct secret secrets[SECRETPOOL_MAX + 2];
	unsigned count = open_descriptors();

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(secrets); i++)
		take(&secrets[i]);
	for (unsigned i = 0; i < ARRAY_LEN(secrets); i++)
		secretpool_give(&pool, &secrets[i]);
	assert_int_equal(pool.count, SECRETPOOL_MAX);
	assert_int_equal(open_descriptors(), count + SECRETPOOL_MAX);
	secretpool_close(&pool);
	assert_int_equal(open_descriptors(), count);
}

/* What somebody may hold a copy of is as good as gone, and says nothing. */
static void close__wiped(void **state)
{
	struct secret secret;
	int copy;

	(void)state;
	take(&secret);
	memcpy(secret.bytes, ours, WIRE_SECRET_BYTES);
	copy = dup(secret.fd);
	secret_close(&secret);
	assert_int_equal(secret.fd, -1);
	assert_int_equal(pool.count, 0);
	expect_content(&(struct secret){ .fd = copy }, zeros);
	close(copy);
	/* None is closed, or given, for nothing. */
	secret_close(&secret);
	secretpool_give(&pool, &secret);
	assert_int_equal(pool.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(take__a_file_to_read, tear_down),
		cmocka_unit_test_teardown(take__nobody_else_writes, tear_down),
		cmocka_unit_test_teardown(give__used_again, tear_down),
		cmocka_unit_test_teardown(give__no_more_than_so_many,
					  tear_down),
		cmocka_unit_test_teardown(close__wiped, tear_down),
	};

	return cmocka_run_group_tests_name("secretpool", tests, NULL, NULL);
}
