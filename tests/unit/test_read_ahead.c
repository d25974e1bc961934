/* Whatever the ring brings, refuses or cuts short: each extent is handed out in
 * its turn with the bytes that pread(2) would read. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/failure.h"
#include "io/input/read_ahead.h"
#include "descriptors.h"
#include "random.h"
#include "skip.h"
#include "refusal.h"

#define SLOT_BYTES (64 * KIB)
#define LENGTH_MAX (SLOT_BYTES - 2 * PAGE_BYTES)
#define DEPTH_MAX 8
#define EXTENTS 100
/* Not a whole number of pages: the last one is read only in part. */
#define FILE_BYTES (MIB + 1234)

static uint8_t content[FILE_BYTES];
static uint8_t *memory; /* of the slots */

/* One file, open in several ways.  Without O_DIRECT direct_fd is -1. */
static struct {
	int plain_fd, direct_fd;
	int half_fd; /* a copy of its first half */
	int unreadable_fd;
} file;

static int open_unnamed(const uint8_t *bytes, size_t count)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	return fd;
}

static int open_file(void **state)
{
	char self[32];

	(void)state;
	for (size_t i = 0; i < FILE_BYTES; i++)
		content[i] = (uint8_t)random_next();
	file.plain_fd = open_unnamed(content, FILE_BYTES);
	file.half_fd = open_unnamed(content, FILE_BYTES / 2);
	file.unreadable_fd = open("/dev/null", O_WRONLY);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file.plain_fd);
	file.direct_fd = open(self, O_RDONLY | O_DIRECT);
	return posix_memalign((void **)&memory, PAGE_BYTES,
			      DEPTH_MAX * SLOT_BYTES);
}

static int close_file(void **state)
{
	(void)state;
	free(memory);
	close(file.plain_fd);
	close(file.half_fd);
	close(file.unreadable_fd);
	if (file.direct_fd >= 0)
		close(file.direct_fd);
	return 0;
}

/* --- a sequence ----------------------------------------------------------- */

struct sequence {
	struct read_extent extents[EXTENTS];
	unsigned count;
	unsigned named;	      /* that the callback has handed over */
	unsigned pause_every; /* it has none for now each Nth time; 0: never */
	unsigned calls;
};

static bool next_extent(void *context, struct read_extent *extent)
{
	struct sequence *sequence = context;

	sequence->calls++;
	if (sequence->named == sequence->count ||
	    (sequence->pause_every != 0 &&
	     sequence->calls % sequence->pause_every == 0))
		return false;
	*extent = sequence->extents[sequence->named++];
	return true;
}

/* Extents of any place and length; the first ones are extreme. */
static void draw(struct sequence *sequence, int direct_fd)
{
	*sequence = (struct sequence){ .count = EXTENTS };
	for (unsigned i = 0; i < EXTENTS; i++) {
		uint32_t length = 1 + (uint32_t)(random_next() % LENGTH_MAX);

		sequence->extents[i] = (struct read_extent){
			.direct_fd = direct_fd,
			.plain_fd = file.plain_fd,
			.offset_bytes = random_next() % (FILE_BYTES - length),
			.length_bytes = length,
			.path = "the file",
		};
	}
	sequence->extents[0].offset_bytes = PAGE_BYTES - 1;
	sequence->extents[0].length_bytes = LENGTH_MAX;
	sequence->extents[1].offset_bytes = FILE_BYTES - 1;
	sequence->extents[1].length_bytes = 1;
	sequence->extents[2].offset_bytes = FILE_BYTES - LENGTH_MAX;
	sequence->extents[2].length_bytes = LENGTH_MAX;
	sequence->extents[3].offset_bytes = 0;
	sequence->extents[3].length_bytes = PAGE_BYTES;
}

/* NULL, or what is wrong with an extent that was handed out. */
static const char *check(const struct read_extent *wanted,
			 const struct read_extent *extent, const uint8_t *bytes)
{
	if (extent->offset_bytes != wanted->offset_bytes ||
	    extent->length_bytes != wanted->length_bytes)
		return "not the next one";
	if (memcmp(bytes, content + wanted->offset_bytes,
		   wanted->length_bytes) != 0)
		return "wrong bytes";
	return NULL;
}

/* Take them all.  NULL, or what is wrong; no assertions, for children. */
static const char *read_all(struct sequence *sequence, unsigned depth)
{
	struct failure failure = { 0 };
	const char *wrong = NULL;
	struct stage_table table = { 0 };
	struct stage_clock clock = { 0 };
	struct read_extent extent;
	struct read_ahead ahead;
	const uint8_t *bytes;
	uint64_t sum = 0;
	unsigned i = 0;

	read_ahead_init(&ahead, depth, memory, SLOT_BYTES, next_extent,
			sequence);
	stage_begin(&clock, &table, STAGE_BUCKET, NULL, clock_now_ns());
	read_ahead_resume(&ahead, &clock);
	while (i < sequence->count && !wrong) {
		int more = read_ahead_take(&ahead, &extent, &bytes, &failure);

		if (more < 0)
			wrong = "failed";
		if (more == 0 && sequence->pause_every == 0)
			wrong = "ended too early";
		if (more <= 0)
			continue;
		wrong = check(&sequence->extents[i++], &extent, bytes);
		sum += extent.length_bytes;
		if (sequence->named > i - 1 + depth)
			wrong = "too many at once";
	}
	if (!wrong && table.sums[STAGE_READ].bytes < sum)
		wrong = "read bytes are missing";
	if (!wrong && ahead.queue.under_way > 0)
		wrong = "a read has not ended";
	for (unsigned j = 0; j < 2 && !wrong; j++)
		if (read_ahead_take(&ahead, &extent, &bytes, &failure) != 0)
			wrong = "no end";
	read_ahead_close(&ahead);
	return wrong;
}

static void assert_reads(struct sequence *sequence, unsigned depth)
{
	const char *wrong = read_all(sequence, depth);

	if (wrong)
		fail_msg("depth %u, extent %u: %s", depth, sequence->named,
			 wrong);
}

/* --- reads that succeed --------------------------------------------------- */

static void read_ahead_take__any_extents_at_any_depth(void **state)
{
	const int direct_fds[] = { file.direct_fd, -1 };
	unsigned before = open_descriptors();

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(direct_fds); i++)
		for (unsigned depth = 1; depth <= DEPTH_MAX; depth++) {
			struct sequence sequence;

			draw(&sequence, direct_fds[i]);
			assert_reads(&sequence, depth);
		}
	assert_int_equal(open_descriptors(), before);
}

/* A callback that has none for now is asked again. */
static void read_ahead_take__sequence_with_pauses(void **state)
{
	(void)state;
	for (unsigned every = 2; every < 6; every++)
		for (unsigned depth = 1; depth <= DEPTH_MAX; depth += 3) {
			struct sequence sequence;

			draw(&sequence, file.direct_fd);
			sequence.pause_every = every;
			assert_reads(&sequence, depth);
		}
}

/* As many as there are slots, and none before the first is wanted. */
static void read_ahead_take__reads_ahead(void **state)
{
	struct failure failure = { 0 };
	struct read_extent extent;
	struct sequence sequence;
	struct read_ahead ahead;
	const uint8_t *bytes;

	(void)state;
	draw(&sequence, file.direct_fd);
	read_ahead_init(&ahead, 5, memory, SLOT_BYTES, next_extent, &sequence);
	assert_int_equal(sequence.calls, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			read_ahead_take(&ahead, &extent, &bytes, &failure), 1);
		assert_int_equal(sequence.named, 5 + i);
	}
	read_ahead_close(&ahead);
	/* What was under way has landed: the slots are the caller's again. */
	memset(memory, 0, DEPTH_MAX * SLOT_BYTES);
	usleep(1000);
	for (size_t i = 0; i < DEPTH_MAX * SLOT_BYTES; i++)
		assert_int_equal(memory[i], 0);
}

static void read_ahead_close__zeroed_and_twice(void **state)
{
	struct read_ahead ahead = { 0 };

	(void)state;
	read_ahead_close(&ahead);
	read_ahead_init(&ahead, 1, memory, SLOT_BYTES, next_extent, NULL);
	read_ahead_close(&ahead);
	read_ahead_close(&ahead);
}

/* --- reads that the ring does not bring ----------------------------------- */

/* Each Nth extent has a direct descriptor that cannot be read, or one of a file
 * that ends in its middle. */
static void read_ahead_take__ring_reads_fail_or_are_short(void **state)
{
	const int instead[] = { file.unreadable_fd, file.half_fd };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(instead); i++)
		for (unsigned nth = 1; nth <= 4; nth++) {
			struct sequence sequence;

			draw(&sequence, file.direct_fd);
			for (unsigned j = nth - 1; j < EXTENTS; j += nth)
				sequence.extents[j].direct_fd = instead[i];
			assert_reads(&sequence, nth);
		}
}

/* No io_uring; one that takes nothing. */
static void read_ahead_take__refused_by_the_kernel(void **state)
{
	static const struct refusal refusals[] = {
		{ SYS_io_uring_setup, -1, 0, 0, EPERM },
		{ SYS_io_uring_enter, -1, 0, 0, EPERM },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(refusals); i++) {
		struct sequence sequence;
		pid_t child;

		draw(&sequence, file.direct_fd);
		child = fork();
		if (child == 0) {
			if (!refuse(&refusals[i]))
				_exit(CHILD_CANNOT);
			_exit(read_all(&sequence, 4) != NULL);
		}
		assert_int_equal(wait_for(child), 0);
	}
}

/* --- reads that fail ------------------------------------------------------ */

/* Take all up to this one, which must fail with the reason. */
static void assert_fails(struct sequence *sequence, unsigned bad,
			 unsigned depth, int error, const char *why)
{
	struct failure failure = { 0 };
	struct read_extent extent;
	struct read_ahead ahead;
	const uint8_t *bytes;

	sequence->extents[bad].path = "bad";
	read_ahead_init(&ahead, depth, memory, SLOT_BYTES, next_extent,
			sequence);
	for (unsigned i = 0; i < bad; i++)
		assert_int_equal(
			read_ahead_take(&ahead, &extent, &bytes, &failure), 1);
	assert_int_equal(read_ahead_take(&ahead, &extent, &bytes, &failure),
			 error);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, "bad");
	assert_string_equal(failure.why, why);
	read_ahead_close(&ahead);
}

/* Only the plain read's error counts. */
static void read_ahead_take__nothing_can_read_it(void **state)
{
	(void)state;
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth++) {
		struct sequence sequence;

		draw(&sequence, file.direct_fd);
		sequence.extents[9].direct_fd = -1;
		sequence.extents[9].plain_fd = file.unreadable_fd;
		assert_fails(&sequence, 9, depth, -EBADF,
			     "cannot read: Bad file descriptor");
	}
}

/* The file ends before the extent, within its first page, or one byte early. */
static void read_ahead_take__file_is_short(void **state)
{
	static const uint64_t missing[] = { 1, 1234, 1235, 9999, 3 * MIB };
	const int direct_fds[] = { file.direct_fd, -1 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(missing); i++)
		for (unsigned j = 0; j < ARRAY_LEN(direct_fds); j++) {
			struct sequence sequence;

			draw(&sequence, direct_fds[j]);
			sequence.extents[5].length_bytes = 10000;
			sequence.extents[5].offset_bytes =
				FILE_BYTES - 10000 + missing[i];
			assert_fails(&sequence, 5, 4, -EINVAL,
				     "shrank while it was read");
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_ahead_take__any_extents_at_any_depth),
		cmocka_unit_test(read_ahead_take__sequence_with_pauses),
		cmocka_unit_test(read_ahead_take__reads_ahead),
		cmocka_unit_test(read_ahead_close__zeroed_and_twice),
		cmocka_unit_test(read_ahead_take__ring_reads_fail_or_are_short),
		cmocka_unit_test(read_ahead_take__refused_by_the_kernel),
		cmocka_unit_test(read_ahead_take__nothing_can_read_it),
		cmocka_unit_test(read_ahead_take__file_is_short),
	};

	random_begin();
	return cmocka_run_group_tests(tests, open_file, close_file);
}
