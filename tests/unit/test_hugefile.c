/*
 * test_hugefile.c - huge pages made ahead of the threads that write
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

#include "base/base.h"
#include "system/hugefile.h"
#include "system/numa.h"
#include "system/topology.h"
#include "random.h"
#include "skip.h"

#define FILE_BYTES_MAX (9 * MIB)

static int fd = -1;
static struct hugefile file;
static uint8_t want[FILE_BYTES_MAX], found[FILE_BYTES_MAX];

static void open_file(uint64_t size_bytes)
{
	fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		skip_because("no files without a name in /dev/shm");
	assert_int_equal(ftruncate(fd, (off_t)size_bytes), 0);
	hugefile_open(&file, fd, size_bytes);
	if (file.huge_anyway || (!file.map && size_bytes > 0))
		skip_because("the files of /dev/shm can't be mapped, or have "
			     "huge pages anyway");
}

/* Make the pages of these bytes; true if there are huge ones. */
static bool make(uint64_t begin_bytes, size_t length_bytes,
		 uint64_t ahead_bytes)
{
	return hugefile_place(&file, begin_bytes, length_bytes, ahead_bytes) !=
	       NULL;
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
	made = make(0, 1, 0) && file_blocks_bytes() == HUGE_PAGE_BYTES;
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

/* A file that was not written reads as zeroes, whatever pages were made. */
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
		if (cases[i].size_bytes > 0)
			make(0, 1, cases[i].size_bytes);
		expect_content(cases[i].size_bytes);
		close_file();
	}
}

/* Each page once, in order, and only as far as asked. */
static void hugefile_place__as_far_as_asked(void **state)
{
	(void)state;
	if (!kernel_makes_pages())
		skip_because("mapped pages can't be made beforehand here");
	open_file(8 * MIB);
	assert_int_equal(file_blocks_bytes(), 4 * PAGE_BYTES);
	assert_true(make(0, 1, 0));
	assert_int_equal(file.next_page, 1);
	assert_int_equal(file_blocks_bytes(), HUGE_PAGE_BYTES + 3 * PAGE_BYTES);
	assert_true(make(PAGE_BYTES, HUGE_PAGE_BYTES - PAGE_BYTES, 0));
	assert_int_equal(file.next_page, 1);
	assert_true(make(100, PAGE_BYTES, 2 * HUGE_PAGE_BYTES));
	assert_int_equal(file.next_page, 3);
	assert_int_equal(file_blocks_bytes(), 3 * HUGE_PAGE_BYTES + PAGE_BYTES);
	close_file();
	/* Few of them at once. */
	open_file(6 * MIB);
	assert_true(make(0, 1, 0));
	assert_int_equal(file.next_page, 3);
	assert_int_equal(file_blocks_bytes(), 3 * HUGE_PAGE_BYTES);
	close_file();
}

/* A kernel that makes none is asked once. */
static void hugefile_place__refused(void **state)
{
	(void)state;
	/* An emulator may say yes to whatever it does not know. */
	if (!kernel_makes_pages())
		skip_because("mapped pages can't be made beforehand here");
	open_file(8 * MIB);
	assert_int_equal(munmap(file.map, 2 * HUGE_PAGE_BYTES), 0);
	assert_false(make(0, 1, 4 * HUGE_PAGE_BYTES));
	assert_true(file.refused);
	assert_int_equal(file.next_page, 1);
	assert_false(make(3 * HUGE_PAGE_BYTES, 1, 0));
	close_file();
}

/* A short end has small pages: it is to be written. */
static void hugefile_place__short_end(void **state)
{
	(void)state;
	if (!kernel_makes_pages())
		skip_because("mapped pages can't be made beforehand here");
	open_file(HUGE_PAGE_BYTES + MIB);
	assert_int_equal(file.page_count, 1);
	assert_true(make(PAGE_BYTES, HUGE_PAGE_BYTES - PAGE_BYTES, MIB));
	assert_false(make(PAGE_BYTES, HUGE_PAGE_BYTES, MIB));
	assert_false(make(HUGE_PAGE_BYTES, MIB, 0));
	assert_false(file.refused);
	close_file();
}

/* The bytes are the file's own, wherever they begin. */
static void hugefile_place__is_the_file(void **state)
{
	uint8_t *at;

	(void)state;
	if (!kernel_makes_pages())
		skip_because("mapped pages can't be made beforehand here");
	open_file(2 * HUGE_PAGE_BYTES);
	at = hugefile_place(&file, HUGE_PAGE_BYTES - 3, 7, 0);
	assert_ptr_equal(at, file.map + HUGE_PAGE_BYTES - 3);
	memset(at, 'x', 7);
	assert_int_equal(pread(fd, found, 9, HUGE_PAGE_BYTES - 4), 9);
	assert_memory_equal(found, "\0xxxxxxx\0", 9);
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
		uint8_t *at;

		if (begin >= size_written)
			return NULL;
		bytes = (size_t)MIN(PIECE_BYTES, size_written - begin);
		/* Now and then not ahead of the others, but among them. */
		at = hugefile_place(&file, begin, bytes,
				    begin * 5 % (8 * PIECE_BYTES));
		if (at && begin / PIECE_BYTES % 2)
			memcpy(at, want + begin, bytes);
		else
			assert_int_equal(
				pwrite(fd, want + begin, bytes, (off_t)begin),
				bytes);
	}
}

static void hugefile_place__while_others_write(void **state)
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

/* Of no use where it is not a tmpfs, and no trouble. */
static void hugefile_open__other_file_systems(void **state)
{
	int other = open("/proc/filesystems", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(other >= 0);
	hugefile_open(&file, other, 4 * MIB);
	assert_null(file.map);
	assert_false(make(0, 1, MIB));
	hugefile_close(&file);
	close(other);
	hugefile_open(&file, -1, 4 * MIB);
	assert_null(file.map);
	hugefile_close(&file);
}

/* Here all nodes are those of this machine, mostly one: the pages are begun
 * anew there, and all is as before. */
static void hugefile_spread__begins_anew(void **state)
{
	struct topology topology;
	bool made;

	(void)state;
	topology_read(&topology);
	topology_read_nodes(&topology);
	open_file(FILE_BYTES_MAX);
	/* What is there goes with the small page. */
	assert_int_equal(pwrite(fd, "x", 1, 1), 1);
	hugefile_spread(&file, fd, numa_nodes_of(&topology));
	assert_int_equal(file.page_count, FILE_BYTES_MAX / HUGE_PAGE_BYTES);
	for (uint64_t page = 0; page < file.page_count; page++)
		assert_int_equal(file.map[page * HUGE_PAGE_BYTES + 1], 0);
	assert_int_equal(file_blocks_bytes(), file.page_count * PAGE_BYTES);
	made = make(0, HUGE_PAGE_BYTES, 0);
	close_file();
	if (!made)
		skip_because("no huge pages here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hugefile_open__other_file_systems),
		cmocka_unit_test(hugefile_open__sizes),
		cmocka_unit_test(hugefile_place__as_far_as_asked),
		cmocka_unit_test(hugefile_spread__begins_anew),
		cmocka_unit_test(hugefile_place__refused),
		cmocka_unit_test(hugefile_place__short_end),
		cmocka_unit_test(hugefile_place__is_the_file),
		cmocka_unit_test(hugefile_place__while_others_write),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
