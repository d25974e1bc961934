/*
 * test_stream_sink.c - chunks of several threads, into a pipe in order
 *
 * As the orderer does it, ranges follow each other, each from any byte to any
 * byte, and the threads take a range's chunks in ascending order.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "io/output/stream_sink.h"
#include "random.h"

#define THREADS_MAX 5
#define CHUNK_BYTES PAGE_BYTES
#define RANGES_MAX 12

static struct stream_sink sink;
static struct failure failure;
static uint8_t memory[(THREADS_MAX + 4) * CHUNK_BYTES];
static unsigned thread_count;

/* What belongs at this place of the stream. */
static uint8_t content(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15) >> 51);
}

/* --- the other end ---------------------------------------------------------
 */

static struct reader {
	int fd;
	uint64_t limit_bytes; /* then it leaves */
	bool is_slow;	      /* few bytes at a time, and pauses */
	uint64_t read_bytes;
	uint64_t wrong_bytes;
	pthread_t thread;
} reader;

static void *read_all(void *context)
{
	uint8_t bytes[8192];
	ssize_t n = 1;

	(void)context;
	while (n > 0 && reader.read_bytes < reader.limit_bytes) {
		size_t wanted = reader.is_slow ? 700 : sizeof(bytes);

		if (reader.is_slow && reader.read_bytes % 3 == 0)
			usleep(200);
		n = read(reader.fd, bytes,
			 MIN(wanted, reader.limit_bytes - reader.read_bytes));
		for (ssize_t i = 0; i < n; i++)
			reader.wrong_bytes +=
				bytes[i] != content(reader.read_bytes++);
	}
	close(reader.fd);
	return NULL;
}

static void begin_reader(int fd, uint64_t limit_bytes, bool is_slow)
{
	reader = (struct reader){
		.fd = fd,
		.limit_bytes = limit_bytes,
		.is_slow = is_slow,
	};
	assert_int_equal(pthread_create(&reader.thread, NULL, read_all, NULL),
			 0);
}

/* --- the workers -----------------------------------------------------------
 */

static struct {
	uint64_t begin, end; /* bytes of the range */
	_Atomic uint64_t next_chunk;
} range;

/* False: the sink has failed. */
static bool fill(uint64_t begin, uint64_t end)
{
	struct sink_slot *slot;

	assert_null(sink_place(&sink.sink, 0, begin, end - begin));
	slot = sink_take(&sink.sink);
	if (!slot)
		return false;
	for (uint64_t i = begin; i < end; i++)
		slot->data[i - begin] = content(i);
	slot->offset_bytes = begin;
	slot->length_bytes = end - begin;
	sink_put(&sink.sink, slot);
	return true;
}

static void *work(void *context)
{
	(void)context;
	for (;;) {
		uint64_t begin =
			range.begin / CHUNK_BYTES * CHUNK_BYTES +
			atomic_fetch_add(&range.next_chunk, 1) * CHUNK_BYTES;
		uint64_t end = MIN(begin + CHUNK_BYTES, range.end);

		if (begin >= range.end)
			break;
		/* Let other threads come first. */
		if (begin / CHUNK_BYTES % 7 == 0)
			usleep(300);
		if (!fill(MAX(begin, range.begin), end))
			return NULL;
	}
	sink_help(&sink.sink);
	return NULL;
}

static void write_range(uint64_t begin, uint64_t end)
{
	pthread_t threads[THREADS_MAX];

	range.begin = begin;
	range.end = end;
	atomic_store(&range.next_chunk, 0);
	for (unsigned t = 0; t < thread_count; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, work, NULL),
				 0);
	for (unsigned t = 0; t < thread_count; t++)
		pthread_join(threads[t], NULL);
}

static uint64_t write_ranges(void)
{
	unsigned count = 1 + (unsigned)(random_next() % RANGES_MAX);
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t bytes = random_next() % (40 * CHUNK_BYTES);

		write_range(at, at + bytes);
		at += bytes;
	}
	return at;
}

/* --- a stream --------------------------------------------------------------
 */

static char fifo[64];

static void make_ends(int ends[2], bool is_socket)
{
	if (is_socket)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	else
		assert_int_equal(pipe(ends), 0);
}

/* The sink writes to this end, by the name that the process has for it. */
static void open_sink(int fd)
{
	unsigned slots = 2 + (unsigned)(random_next() % (thread_count + 2));

	assert_int_equal(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
	close(fd);
	stream_sink_init(&sink, "-", memory, slots, CHUNK_BYTES);
	assert_int_equal(stream_sink_open(&sink, UINT64_MAX, NULL, 0, &failure),
			 0);
}

/* Its descriptor was standard output. */
static void close_sink(void)
{
	stream_sink_close(&sink);
	assert_int_equal(dup2(STDERR_FILENO, STDOUT_FILENO), STDOUT_FILENO);
}

static void check_stream(bool is_socket, bool is_slow, bool blocks)
{
	int ends[2];
	uint64_t written;

	make_ends(ends, is_socket);
	if (!blocks)
		assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
	begin_reader(ends[0], UINT64_MAX, is_slow);
	open_sink(ends[1]);
	written = write_ranges();
	assert_int_equal(stream_sink_commit(&sink, &failure), 0);
	close_sink();
	pthread_join(reader.thread, NULL);
	assert_int_equal(reader.read_bytes, written);
	assert_int_equal(reader.wrong_bytes, 0);
}

static void bytes_come_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		thread_count = 1 + i % THREADS_MAX;
		check_stream(i % 2, i % 8 == 3, i % 3 > 0);
	}
}

static void nothing_is_a_stream_too(void **state)
{
	int ends[2];

	(void)state;
	make_ends(ends, false);
	begin_reader(ends[0], UINT64_MAX, false);
	open_sink(ends[1]);
	assert_int_equal(stream_sink_commit(&sink, &failure), 0);
	close_sink();
	pthread_join(reader.thread, NULL);
	assert_int_equal(reader.read_bytes, 0);
}

static void reader_that_leaves_is_silent(void **state)
{
	int ends[2];

	(void)state;
	for (thread_count = 1; thread_count <= THREADS_MAX; thread_count++) {
		make_ends(ends, thread_count % 2);
		begin_reader(ends[0], 10000, false);
		open_sink(ends[1]);
		/* More than any pipe or socket holds. */
		write_range(0, 8 * MIB);
		failure = (struct failure){ .why = "untouched" };
		assert_int_not_equal(stream_sink_commit(&sink, &failure), 0);
		assert_int_equal(failure.status, EXIT_FILE);
		assert_string_equal(failure.why, "");
		close_sink();
		pthread_join(reader.thread, NULL);
		assert_int_equal(reader.wrong_bytes, 0);
	}
}

static void other_errors_name_the_stream(void **state)
{
	(void)state;
	thread_count = 3;
	open_sink(open("/dev/full", O_WRONLY));
	write_range(0, 20 * CHUNK_BYTES);
	assert_int_not_equal(stream_sink_commit(&sink, &failure), 0);
	close_sink();
	assert_string_equal(failure.what, "standard output");
	assert_non_null(strstr(failure.why, "No space left"));
}

static void fifo_is_a_stream(void **state)
{
	(void)state;
	snprintf(fifo, sizeof(fifo), "/tmp/test_stream_sink.%d", getpid());
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(stream_sink_suits(fifo));
	assert_true(stream_sink_suits("-"));
	assert_true(stream_sink_suits("/dev/null"));
	assert_false(stream_sink_suits("/dev/full"));
	assert_false(stream_sink_suits("/"));
	assert_false(stream_sink_suits("/nowhere"));
	thread_count = 2;
	stream_sink_init(&sink, fifo, memory, 2, CHUNK_BYTES);
	begin_reader(open(fifo, O_RDONLY | O_NONBLOCK), UINT64_MAX, false);
	pthread_join(reader.thread, NULL); /* no writer: it is at the end */
	begin_reader(open(fifo, O_RDWR), 10 * CHUNK_BYTES, false);
	assert_int_equal(stream_sink_open(&sink, UINT64_MAX, NULL, 0, &failure),
			 0);
	write_range(0, 10 * CHUNK_BYTES);
	pthread_join(reader.thread, NULL);
	assert_int_equal(stream_sink_commit(&sink, &failure), 0);
	stream_sink_close(&sink);
	assert_int_equal(reader.wrong_bytes, 0);
	assert_int_equal(reader.read_bytes, 10 * CHUNK_BYTES);
	unlink(fifo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_in_order),
		cmocka_unit_test(nothing_is_a_stream_too),
		cmocka_unit_test(reader_that_leaves_is_silent),
		cmocka_unit_test(other_errors_name_the_stream),
		cmocka_unit_test(fifo_is_a_stream),
	};

	random_begin();
	signal(SIGPIPE, SIG_IGN);
	/* cmocka prints to standard error. */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
