/*
 * test_hugefile.c - pages made ahead of those who write
 *
 * What the kernel makes of it is its own affair, so a test asks for huge pages
 * only where this one has made some; the content must be right everywhere.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "hugefile.h"
#include "random.h"

#define FILE_BYTES_MAX (9 * MIB)

static int fd = -1;
static struct hugefile file;
static uint8_t want[FILE_BYTES_MAX], found[FILE_BYTES_MAX];

static void open_file(uint64_t size_bytes)
{
	fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || !hugefile_is_for(fd))
		skip();
	assert_int_equal(ftruncate(fd, (off_t)size_bytes), 0);
	hugefile_open(&file, fd, size_bytes);
}

static void close_file(void)
{
	hugefile_close(&file);
	assert_null(file.map);
	close(fd);
}

static uint64_t file_blocks_bytes(void)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

static void expect_content(uint64_t size_bytes)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, size_bytes);
	assert_int_equal(pread(fd, found, size_bytes, 0), size_bytes);
	assert_memory_equal(found, want, size_bytes);
}

static bool kernel_makes_pages(void)
{
	bool made;

	open_file(HUGE_PAGE_BYTES);
	hugefile_make(&file, 1);
	made = !file.refused && file_blocks_bytes() == HUGE_PAGE_BYTES;
	close_file();
	return made;
}

/* Else a last page that is not full is not wanted. */
static bool there_is_plenty(void)
{
	struct statfs fs;

	assert_int_equal(fstatfs(fd, &fs), 0);
	return fs.f_blocks == 0 ||
	       fs.f_bavail * (uint64_t)fs.f_bsize > 300 * MIB;
}

/* A file that nobody has written to reads as zeroes, whatever was made. */
static void hugefile_open__sizes(void **state)
{
	static const struct {
		uint64_t size_bytes, page_count;
	} cases[] = {
		{ 0, 0 },	    { 1, 0 },	    { 3 * MIB / 2 - 1, 0 },
		{ 3 * MIB / 2, 1 }, { 2 * MIB, 1 }, { 2 * MIB + 1, 1 },
		{ 6250000, 3 },	    { 7 * MIB, 3 }, { 15 * MIB / 2, 4 },
	};

	(void)state;
	memset(want, 0, sizeof(want));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		open_file(cases[i].size_bytes);
		assert_int_equal(file.page_count,
				 there_is_plenty() ? cases[i].page_count
						   : cases[i].size_bytes /
							     HUGE_PAGE_BYTES);
		assert_int_equal(file.map != NULL, cases[i].size_bytes > 0);
		assert_int_equal((uintptr_t)file.map % HUGE_PAGE_BYTES, 0);
		hugefile_make(&file, UINT64_MAX);
		expect_content(cases[i].size_bytes);
		close_file();
	}
}

/* Each page once, in order, and only as far as asked. */
static void hugefile_make__as_far_as_asked(void **state)
{
	(void)state;
	if (!kernel_makes_pages())
		skip();
	open_file(8 * MIB);
	assert_int_equal(file_blocks_bytes(), 4 * PAGE_BYTES);
	hugefile_make(&file, 0);
	assert_int_equal(file.next_page, 0);
	hugefile_make(&file, 1);
	assert_int_equal(file.next_page, 1);
	assert_int_equal(file_blocks_bytes(), HUGE_PAGE_BYTES + 3 * PAGE_BYTES);
	hugefile_make(&file, HUGE_PAGE_BYTES);
	assert_int_equal(file.next_page, 1);
	hugefile_make(&file, 2 * HUGE_PAGE_BYTES + 1);
	assert_int_equal(file.next_page, 3);
	assert_int_equal(file_blocks_bytes(), 3 * HUGE_PAGE_BYTES + PAGE_BYTES);
	close_file();
}

/* A kernel that makes none is asked once. */
static void hugefile_make__refused(void **state)
{
	(void)state;
	open_file(8 * MIB);
	assert_int_equal(munmap(file.map, 2 * HUGE_PAGE_BYTES), 0);
	hugefile_make(&file, 4 * HUGE_PAGE_BYTES);
	assert_true(file.refused);
	assert_int_equal(file.next_page, 1);
	close_file();
}

#define WRITERS 3
#define PIECE_BYTES (64 * KIB)

static _Atomic uint64_t next_piece;
static uint64_t size_written;

static void *write_pieces(void *context)
{
	(void)context;
	for (;;) {
		uint64_t begin = next_piece++ * PIECE_BYTES;
		size_t bytes;

		if (begin >= size_written)
			return NULL;
		bytes = (size_t)MIN(PIECE_BYTES, size_written - begin);
		/* Now and then not ahead of the others, but among them. */
		hugefile_make(&file, begin + begin * 5 % (8 * PIECE_BYTES));
		assert_int_equal(pwrite(fd, want + begin, bytes, (off_t)begin),
				 bytes);
	}
}

static void hugefile_make__while_others_write(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(want); i++)
		want[i] = (uint8_t)(i * 0x9e3779b97f4a7c15u >> 51);
	for (int turn = 0; turn < 20; turn++) {
		pthread_t threads[WRITERS];

		size_written = 1 + random_next() % FILE_BYTES_MAX;
		next_piece = 0;
		open_file(size_written);
		for (unsigned t = 0; t < WRITERS; t++)
			assert_int_equal(pthread_create(&threads[t], NULL,
							write_pieces, NULL),
					 0);
		for (unsigned t = 0; t < WRITERS; t++)
			pthread_join(threads[t], NULL);
		expect_content(size_written);
		if (file.map)
			assert_memory_equal(file.map, want, size_written);
		close_file();
	}
}

static void hugefile_is_for__tmpfs_only(void **state)
{
	int other = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(other >= 0);
	assert_false(hugefile_is_for(other));
	assert_false(hugefile_is_for(-1));
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hugefile_is_for__tmpfs_only),
		cmocka_unit_test(hugefile_open__sizes),
		cmocka_unit_test(hugefile_make__as_far_as_asked),
		cmocka_unit_test(hugefile_make__refused),
		cmocka_unit_test(hugefile_make__while_others_write),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
