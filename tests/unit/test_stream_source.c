/*
 * test_stream_source.c - streams and files, one behind the other, into batches
 * by several threads
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
#include "external/read/stream_source.h"
#include "random.h"

#define THREADS_MAX 4
#define STREAMS_MAX 4
#define BYTES_MAX (3 * MIB)

static uint8_t content[BYTES_MAX]; /* of all streams, one after the other */
static uint8_t memory[BYTES_MAX + PAGE_BYTES];
static char folder[64], names[STREAMS_MAX][80];
static const char *paths[STREAMS_MAX];
static uint64_t lengths[STREAMS_MAX];
static unsigned stream_count, thread_count;
static uint32_t record_size;
static struct stream_source source;
static struct first_failure run_failure;
static struct failure failure;
static struct batch batch;

/* --- the other end ---------------------------------------------------------
 */

enum way { A_FILE, A_FIFO, A_PIPE, A_SOCKET, WAYS };

/* "a pipe" and "a socket" are standard input: one of the streams at most. */
static enum way ways[STREAMS_MAX];
static int stdin_end;
static bool is_slow;

static void write_pieces(int fd, const uint8_t *bytes, uint64_t length)
{
	while (length > 0) {
		size_t wanted = MIN(length, is_slow ? 30011 : 1000003);
		ssize_t n = write(fd, bytes, wanted);

		assert_true(n > 0);
		if (is_slow)
			usleep(100);
		bytes += n;
		length -= (uint64_t)n;
	}
	close(fd);
}

/* One writer for all, in order, as one program may be: it opens a FIFO only
 * when it has written the one before. */
static void *write_streams(void *context)
{
	const uint8_t *bytes = content;

	(void)context;
	for (unsigned i = 0; i < stream_count; i++) {
		if (ways[i] == A_FIFO)
			write_pieces(open(names[i], O_WRONLY), bytes,
				     lengths[i]);
		else if (ways[i] != A_FILE)
			write_pieces(stdin_end, bytes, lengths[i]);
		bytes += lengths[i];
	}
	return NULL;
}

static void make_file(const char *name, const uint8_t *bytes, uint64_t length)
{
	int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static void make_stdin(bool is_socket, bool blocks)
{
	int ends[2];

	if (is_socket)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	else
		assert_int_equal(pipe(ends), 0);
	if (!blocks)
		assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
	close(ends[0]);
	stdin_end = ends[1];
}

/* Streams of all kinds; whole records, some of them none. */
static uint64_t make_streams(void)
{
	uint64_t bytes = 0;
	bool has_stdin = false;

	stream_count = 1 + (unsigned)(random_next() % STREAMS_MAX);
	for (unsigned i = 0; i < stream_count; i++) {
		uint64_t most = (BYTES_MAX - bytes) / record_size;

		lengths[i] = random_next() % 4
				     ? random_next() % (most + 1) * record_size
				     : 0;
		ways[i] = (enum way)(random_next() % (has_stdin ? 2 : WAYS));
		snprintf(names[i], sizeof(names[i]), "%s/%u", folder, i);
		unlink(names[i]);
		paths[i] = names[i];
		if (ways[i] == A_FILE)
			make_file(names[i], content + bytes, lengths[i]);
		if (ways[i] == A_FIFO)
			assert_int_equal(mkfifo(names[i], 0600), 0);
		if (ways[i] >= A_PIPE) {
			make_stdin(ways[i] == A_SOCKET, random_next() % 2);
			has_stdin = true;
			paths[i] = "-";
		}
		bytes += lengths[i];
	}
	return bytes;
}

/* --- the workers -----------------------------------------------------------
 */

static _Atomic uint64_t taken_records;
static _Atomic unsigned wrong_runs;
static bool resident;

static void *read_share(void *context)
{
	struct source_reader reader = {
		.source = &source.source,
		.worker = *(unsigned *)context,
	};
	uint64_t first, count, end = 0;
	struct source_run run;
	struct failure own;
	int more;

	source.source.ops->share(&source.source, reader.worker, thread_count,
				 &first, &count);
	assert_int_equal(
		source.source.ops->open(&reader, first, count, resident, &own),
		0);
	while ((more = source.source.ops->next(&reader, &run, &own)) > 0) {
		/* Slots of one worker ascend. */
		wrong_runs += run.slot < end;
		wrong_runs += run.records != memory + run.slot * record_size;
		end = run.slot + run.record_count;
		taken_records += run.record_count;
	}
	if (more < 0)
		first_failure_note(&run_failure, &own);
	return NULL;
}

static void run_workers(void)
{
	static unsigned numbers[THREADS_MAX] = { 0, 1, 2, 3 };
	pthread_t threads[THREADS_MAX];

	taken_records = 0;
	for (unsigned t = 0; t < thread_count; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, read_share,
						&numbers[t]),
				 0);
	for (unsigned t = 0; t < thread_count; t++)
		pthread_join(threads[t], NULL);
}

/* --- a whole input ---------------------------------------------------------
 */

static int open_source(void)
{
	const struct input_layout layout = { .record_size = record_size };
	static const struct widening none;

	run_failure = (struct first_failure){ 0 };
	return stream_source_open(&source, paths, stream_count, &layout, &none,
				  &run_failure, &failure);
}

/* Returns the bytes of one batch, which are checked; 0 at the end. */
static uint64_t read_batch(const uint8_t *expected, uint64_t left_bytes)
{
	uint64_t before = source.record_count, count;

	batch.capacity = 1 + random_next() % (BYTES_MAX / record_size);
	batch.records = memory;
	assert_true(stream_source_begin(&source, &batch, &failure) >= 0);
	assert_int_equal(batch.first_record, before);
	resident = false;
	run_workers();
	assert_false(first_failure_stops(&run_failure));
	stream_source_end(&source);
	count = source.record_count - before;
	assert_int_equal(taken_records, count);
	assert_int_equal(count, MIN(batch.capacity, left_bytes / record_size));
	assert_memory_equal(memory, expected, count * record_size);
	resident = true;
	run_workers();
	assert_int_equal(taken_records, count);
	assert_int_equal(wrong_runs, 0);
	return count * record_size;
}

static void check_input(void)
{
	uint64_t bytes = make_streams(), done = 0, got;
	pthread_t writer;

	assert_int_equal(open_source(), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_streams, NULL), 0);
	do {
		got = read_batch(content + done, bytes - done);
		done += got;
	} while (got > 0);
	pthread_join(writer, NULL);
	assert_int_equal(done, bytes);
	assert_int_equal(source.record_count, bytes / record_size);
	assert_true(source.has_ended);
	stream_source_close(&source);
}

static void streams_become_batches(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 100, 4096, 70000, 1000000 };

	(void)state;
	for (unsigned i = 0; i < 36; i++) {
		record_size = sizes[i % ARRAY_LEN(sizes)];
		thread_count = 1 + i % THREADS_MAX;
		is_slow = i % 7 == 0;
		check_input();
	}
}

/* --- what goes wrong -------------------------------------------------------
 */

static void begin_stdin(uint64_t length)
{
	stream_count = 1;
	paths[0] = "-";
	ways[0] = A_PIPE;
	lengths[0] = length;
	is_slow = false;
	make_stdin(false, true);
}

static void read_to_the_end(void)
{
	batch.capacity = BYTES_MAX / record_size;
	batch.records = memory;
	assert_true(stream_source_begin(&source, &batch, &failure) >= 0);
	resident = false;
	run_workers();
}

static void cut_record_is_named(void **state)
{
	pthread_t writer;

	(void)state;
	record_size = 100;
	thread_count = 3;
	begin_stdin(1234567);
	assert_int_equal(open_source(), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_streams, NULL), 0);
	read_to_the_end();
	pthread_join(writer, NULL);
	assert_true(first_failure_stops(&run_failure));
	assert_int_equal(run_failure.failure.status, EXIT_FILE);
	assert_string_equal(run_failure.failure.what, "standard input");
	assert_string_equal(
		run_failure.failure.why,
		"1234567 bytes are not a whole number of 100-byte "
		"records (the default): is there a header (--header), or "
		"another --record-size?");
	stream_source_close(&source);
}

static void *fail_elsewhere(void *context)
{
	struct failure elsewhere = { .status = EXIT_FILE, .why = "elsewhere" };

	(void)context;
	usleep(20000);
	first_failure_note(&run_failure, &elsewhere);
	return NULL;
}

static void read_until_failure_elsewhere(void)
{
	pthread_t other;

	record_size = 100;
	thread_count = 3;
	assert_int_equal(open_source(), 0);
	assert_int_equal(pthread_create(&other, NULL, fail_elsewhere, NULL), 0);
	alarm(60);
	read_to_the_end();
	alarm(0);
	pthread_join(other, NULL);
	assert_string_equal(run_failure.failure.why, "elsewhere");
	stream_source_close(&source);
}

/* Nothing comes and the writer stays: the readers end nevertheless. */
static void failure_elsewhere_ends_reading(void **state)
{
	(void)state;
	begin_stdin(0);
	read_until_failure_elsewhere();
	close(stdin_end);
}

/* No program has opened the FIFO to write. */
static void failure_elsewhere_ends_waiting_for_a_writer(void **state)
{
	(void)state;
	stream_count = 1;
	snprintf(names[0], sizeof(names[0]), "%s/fifo", folder);
	paths[0] = names[0];
	assert_int_equal(mkfifo(names[0], 0600), 0);
	read_until_failure_elsewhere();
	unlink(names[0]);
}

static void missing_inputs_are_refused_at_once(void **state)
{
	(void)state;
	record_size = 100;
	begin_stdin(0);
	stream_count = 2;
	paths[1] = "/nowhere/at/all";
	assert_int_equal(open_source(), -ENOENT);
	assert_string_equal(failure.what, paths[1]);
	stream_source_close(&source);
	paths[1] = "/";
	assert_true(open_source() < 0);
	assert_string_equal(failure.what, "/");
	stream_source_close(&source);
	close(stdin_end);
}

static void only_streams_suit(void **state)
{
	const char *some[] = { "/", "/nowhere", "/bin/sh", "-" };
	const char *null = "/dev/null";

	(void)state;
	assert_false(stream_source_suits(some, 3));
	assert_true(stream_source_suits(some, 4));
	assert_true(stream_source_suits(&null, 1));
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_stream_source.XXXXXX");
	for (size_t i = 0; i < BYTES_MAX; i++)
		content[i] = (uint8_t)random_next();
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STREAMS_MAX; i++)
		unlink(names[i]);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_become_batches),
		cmocka_unit_test(cut_record_is_named),
		cmocka_unit_test(failure_elsewhere_ends_reading),
		cmocka_unit_test(failure_elsewhere_ends_waiting_for_a_writer),
		cmocka_unit_test(missing_inputs_are_refused_at_once),
		cmocka_unit_test(only_streams_suit),
	};

	random_begin();
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
