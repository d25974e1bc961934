/*
 * test_write_queue.c - writes of a file through the queue, and what it refuses
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/output/write_queue.h"
#include "random.h"
#include "skip.h"

#define DEPTH 4
#define WRITES 40
#define WRITE_BYTES 5000

static uint8_t content[WRITES][WRITE_BYTES];
static uint8_t read_back[WRITES][WRITE_BYTES];
static struct write_queue queue;
static int fd;

static void open_queue(void)
{
	write_queue_open(&queue, DEPTH);
	if (!queue.ring)
		skip_because("io_uring is refused here");
	assert_int_equal(queue.in_flight, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
}

static bool submit(unsigned n)
{
	return write_queue_submit(&queue, fd, content[n], WRITE_BYTES,
				  (uint64_t)n * WRITE_BYTES, content[n]);
}

static void check_file(void)
{
	assert_int_equal(pread(fd, read_back, sizeof(read_back), 0),
			 sizeof(read_back));
	assert_memory_equal(read_back, content, sizeof(content));
}

/* Far more writes than the depth; each tag comes back once. */
static void write_queue__many(void **state)
{
	bool seen[WRITES] = { false };

	(void)state;
	open_queue();
	for (unsigned n = 0; n < WRITES; n++)
		assert_true(submit(n));
	assert_int_equal(queue.in_flight, WRITES);
	/* Else the kernel needs memory for them, and may get none. */
	assert_true(queue.ring->cq.ring_entries >= WRITES);
	while (queue.in_flight > 0) {
		int result;
		uint8_t *tag = write_queue_reap(&queue, &result);
		size_t n = (size_t)(tag - content[0]) / WRITE_BYTES;

		assert_int_equal(result, WRITE_BYTES);
		assert_false(seen[n]);
		seen[n] = true;
	}
	write_queue_close(&queue);
	check_file();
}

static void write_queue_close__waits(void **state)
{
	(void)state;
	open_queue();
	for (unsigned n = 0; n < WRITES; n++)
		assert_true(submit(n));
	write_queue_close(&queue);
	check_file();
	/* Again, and on what never was open. */
	write_queue_close(&queue);
}

static void write_queue_reap__tells_errors(void **state)
{
	int result, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(null >= 0);
	open_queue();
	assert_true(write_queue_submit(&queue, null, content[0], 10, 0, &null));
	assert_ptr_equal(write_queue_reap(&queue, &result), &null);
	assert_int_equal(result, -EBADF);
	/* A write that failed says nothing of the next. */
	assert_true(submit(1));
	write_queue_close(&queue);
	close(null);
}

/* No descriptor is left for the ring. */
static void write_queue_open__refused(void **state)
{
	struct rlimit before, limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	write_queue_open(&queue, DEPTH);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(queue.ring);
	assert_false(submit(0));
	assert_int_equal(queue.in_flight, 0);
	write_queue_close(&queue);
}

/* The ring's descriptor is another file's until it is mended. */
static int break_ring(void)
{
	int ring_fd = queue.ring->ring_fd, saved = dup(ring_fd);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(null >= 0 && saved >= 0);
	assert_int_equal(dup2(null, ring_fd), ring_fd);
	close(null);
	return saved;
}

static void mend_ring(int saved)
{
	assert_int_equal(dup2(saved, queue.ring->ring_fd), queue.ring->ring_fd);
	close(saved);
}

/* The kernel takes nothing.  What was under way before is reaped. */
static void write_queue_submit__refused_later(void **state)
{
	int result, saved;

	(void)state;
	open_queue();
	assert_true(submit(0));
	saved = break_ring();
	assert_false(submit(1));
	mend_ring(saved);
	/* Nor does the queue try again. */
	assert_false(submit(2));
	assert_int_equal(queue.in_flight, 1);
	assert_ptr_equal(write_queue_reap(&queue, &result), content[0]);
	assert_int_equal(result, WRITE_BYTES);
	write_queue_close(&queue);
}

static void make_full_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], content, sizeof(content)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
}

/* A write is under way that ends when a reader comes. */
static void write_queue_reap__ring_fails(void **state)
{
	int result = 0, ends[2], saved;

	(void)state;
	open_queue();
	make_full_pipe(ends);
	assert_true(write_queue_submit(&queue, ends[1], content[0], 10, 0,
				       content[0]));
	saved = break_ring();
	assert_null(write_queue_reap(&queue, &result));
	mend_ring(saved);
	assert_true(result < 0);
	assert_int_equal(queue.in_flight, 0);
	assert_false(submit(1));
	write_queue_close(&queue);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_queue__many),
		cmocka_unit_test(write_queue_close__waits),
		cmocka_unit_test(write_queue_reap__tells_errors),
		cmocka_unit_test(write_queue_open__refused),
		cmocka_unit_test(write_queue_submit__refused_later),
		cmocka_unit_test(write_queue_reap__ring_fails),
	};
	FILE *stream = tmpfile();
	int failed;

	if (!stream)
		return EXIT_FAILURE;
	fd = fileno(stream);
	random_begin();
	for (size_t i = 0; i < sizeof(content); i++)
		content[i / WRITE_BYTES][i % WRITE_BYTES] =
			(uint8_t)random_next();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	fclose(stream);
	return failed;
}
