/*
 * test_output.c - chunks in any order, from several threads, into files that
 * are whole or not there
 *
 * Every test runs on a disk and on tmpfs, written directly and not: the ways
 * that output.c goes differ.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "folder.h"
#include "io/output/output.h"
#include "random.h"
#include "system/residency.h"

#define FILES_MAX 4
#define THREADS_MAX 4
#define CHUNKS_MAX 1024
#define SLOTS_MAX (THREADS_MAX + 5)
#define CHUNK_BYTES_MAX (256 * KIB)

static char folders[2][128]; /* on a disk, on tmpfs ("": there is none) */
static const char *paths[FILES_MAX];
static uint64_t sizes[FILES_MAX];
static uint64_t part_begin; /* of the only file, if it is written in parts */
static unsigned file_count;
static struct output output;
static struct failure failure;
static uint8_t *memory;

/* What belongs at this place of this file. */
static uint8_t content(unsigned file, uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15 + file * 77) >> 51);
}

/* Files a, b, c, ... in the folder, of nothing yet. */
static void set_files(const char *folder, unsigned count)
{
	static char names[FILES_MAX][160];

	file_count = count;
	for (unsigned i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%s/%c", folder, 'a' + i);
		paths[i] = names[i];
	}
}

static void check_and_remove(void)
{
	for (unsigned i = 0; i < file_count; i++) {
		FILE *stream = fopen(paths[i], "r");
		struct stat status;

		assert_non_null(stream);
		assert_int_equal(fstat(fileno(stream), &status), 0);
		assert_int_equal(status.st_size, sizes[i]);
		for (uint64_t offset = 0; offset < sizes[i]; offset++)
			if (getc(stream) != content(i, offset))
				fail_msg("%s: byte %llu of %llu (SEED=%llu)",
					 paths[i], (unsigned long long)offset,
					 (unsigned long long)sizes[i],
					 (unsigned long long)seed);
		fclose(stream);
		assert_int_equal(unlink(paths[i]), 0);
	}
}

/* ------------------------------------------------------- several writers */

struct chunk {
	unsigned file;
	uint64_t offset_bytes;
	size_t length_bytes;
};

static struct chunk chunks[CHUNKS_MAX];
static unsigned chunk_count;
static _Atomic unsigned next_chunk;
static _Atomic unsigned placed; /* chunks that were filled in their file */

static bool cuts_chunks; /* chunks come in parts */
static unsigned cut_count;

/* The chunk that begins here, or a part of one; it ends within a page of each
 * kind of place: by one byte, in the middle, with a page. */
static size_t length_of(unsigned file, uint64_t offset, size_t chunk_bytes)
{
	size_t length = (size_t)MIN(chunk_bytes - offset % chunk_bytes,
				    sizes[file] - offset);
	size_t cut = random_next() % length + 1;

	if (!cuts_chunks || random_next() % 2)
		return length;
	cut_count++;
	switch (random_next() % 3) {
	case 0:
		return 1;
	case 1:
		return cut > PAGE_BYTES ? ROUND_DOWN(cut, PAGE_BYTES) : cut;
	default:
		return cut;
	}
}

/* All chunks of all files, in no order. */
static void list_chunks(size_t chunk_bytes)
{
	chunk_count = cut_count = 0;
	for (unsigned i = 0; i < file_count; i++)
		for (uint64_t offset = 0; offset < sizes[i];) {
			size_t length = length_of(i, offset, chunk_bytes);
			unsigned at =
				(unsigned)(random_next() % (chunk_count + 1));

			assert_true(chunk_count < CHUNKS_MAX);
			chunks[chunk_count++] = chunks[at];
			chunks[at] = (struct chunk){ i, offset, length };
			offset += length;
		}
	atomic_store(&next_chunk, 0);
}

static void fill_slot(struct sink_slot *slot, const struct chunk *chunk)
{
	slot->part = chunk->file;
	slot->offset_bytes = chunk->offset_bytes;
	slot->length_bytes = chunk->length_bytes;
	for (size_t i = 0; i < slot->length_bytes; i++)
		slot->data[i] = content(chunk->file,
					part_begin + chunk->offset_bytes + i);
	/* Of a chunk before; it may not end up in the file. */
	memset(slot->data + slot->length_bytes, 0xee,
	       output.sink.chunk_bytes - slot->length_bytes);
}

/* False: it is to be written. */
static bool fill_place(const struct chunk *chunk)
{
	uint8_t *place = sink_place(&output.sink, chunk->file,
				    chunk->offset_bytes, chunk->length_bytes);

	for (size_t i = 0; place && i < chunk->length_bytes; i++)
		place[i] = content(chunk->file, chunk->offset_bytes + i);
	placed += place != NULL;
	return place != NULL;
}

static void *write_chunks(void *context)
{
	(void)context;
	for (;;) {
		unsigned number = atomic_fetch_add(&next_chunk, 1);
		struct sink_slot *slot;

		if (number >= chunk_count)
			break;
		if (number % 3 && fill_place(&chunks[number]))
			continue;
		slot = sink_take(&output.sink);
		if (!slot)
			break;
		fill_slot(slot, &chunks[number]);
		sink_put(&output.sink, slot);
	}
	sink_help(&output.sink);
	return NULL;
}

static void run_writers(unsigned thread_count, size_t chunk_bytes)
{
	pthread_t threads[THREADS_MAX];

	output_set_slots(&output, memory,
			 output_slots_wanted(&output, thread_count),
			 chunk_bytes);
	list_chunks(chunk_bytes);
	for (unsigned t = 1; t < thread_count; t++)
		assert_int_equal(
			pthread_create(&threads[t], NULL, write_chunks, NULL),
			0);
	write_chunks(NULL);
	for (unsigned t = 1; t < thread_count; t++)
		pthread_join(threads[t], NULL);
}

/* Everything, from open to close. */
static void check_output(const char *folder, unsigned thread_count,
			 size_t chunk_bytes, bool direct)
{
	assert_int_equal(output_open(&output, paths, sizes, file_count, 0, NULL,
				     direct, &failure),
			 0);
	/* A file has no name before it is complete. */
	assert_int_equal(count_entries(folder), 0);
	run_writers(thread_count, chunk_bytes);
	assert_int_equal(count_entries(folder), 0);
	assert_int_equal(output_commit(&output, direct, NULL, &failure), 0);
	output_close(&output);
	assert_int_equal(count_entries(folder), file_count);
	check_and_remove();
}

/* ------------------------------------------------------------------ tests */

struct world {
	const char *folder;
	bool direct;
};

static const struct world worlds[] = {
	{ folders[0], false },
	{ folders[0], true },
	{ folders[1], false },
	{ folders[1], true },
};

/* Calls check in each world there is. */
static void in_every_world(void (*check)(const struct world *world))
{
	for (size_t i = 0; i < ARRAY_LEN(worlds); i++)
		if (worlds[i].folder[0] != '\0')
			check(&worlds[i]);
}

static void check_sizes(const struct world *world)
{
	static const uint64_t cases[] = { 0,	 1,	 4095,	 4096,	4097,
					  8191,	 8192,	 16383,	 16384, 16385,
					  20480, 100000, 131072, 150001 };

	set_files(world->folder, 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sizes[0] = cases[i];
		check_output(world->folder, 1, PAGE_BYTES, world->direct);
		check_output(world->folder, 2, (size_t)4 * PAGE_BYTES,
			     world->direct);
	}
}

static void output__sizes(void **state)
{
	(void)state;
	in_every_world(check_sizes);
}

static void check_many(const struct world *world)
{
	for (int turn = 0; turn < 30; turn++) {
		unsigned threads = 1 + (unsigned)(random_next() % THREADS_MAX);
		size_t pages = 1 + random_next() % 4;

		set_files(world->folder,
			  1 + (unsigned)(random_next() % FILES_MAX));
		for (unsigned i = 0; i < file_count; i++)
			sizes[i] =
				random_next() % 4 ? random_next() % 200000 : 0;
		check_output(world->folder, threads, pages * PAGE_BYTES,
			     world->direct);
	}
}

static void output__files_and_threads(void **state)
{
	(void)state;
	in_every_world(check_many);
}

static bool has_huge_pages(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct hugefile file;
	bool has;

	if (fd < 0)
		return false;
	assert_int_equal(ftruncate(fd, 4 * MIB), 0);
	hugefile_open(&file, fd, 4 * MIB);
	has = hugefile_place(&file, 0, 1, 0) != NULL;
	hugefile_close(&file);
	close(fd);
	return has;
}

/* Huge pages are made on tmpfs, of chunks that come in any order. */
static void check_large(const struct world *world)
{
	set_files(world->folder, 2);
	sizes[0] = 4 * MIB + random_next() % (4 * MIB);
	sizes[1] = 2 * MIB;
	placed = 0;
	check_output(world->folder, 3, CHUNK_BYTES_MAX, world->direct);
	assert_int_equal(placed > 0, has_huge_pages(world->folder));
}

static void output__large_files(void **state)
{
	(void)state;
	in_every_world(check_large);
}

/* The output's pages in the page cache, before it is committed. */
static uint64_t write_and_count_pages(const struct world *world)
{
	unsigned threads = 1 + (unsigned)(random_next() % THREADS_MAX);
	size_t chunk_bytes = (1 + random_next() % 16) * PAGE_BYTES;
	uint64_t pages;

	assert_int_equal(output_open(&output, paths, sizes, 1, 0, NULL,
				     world->direct, &failure),
			 0);
	run_writers(threads, chunk_bytes);
	assert_int_equal(sink_finish(&output.sink, &failure), 0);
	pages = residency_estimate(output.files[0].fd, sizes[0]) / PAGE_BYTES;
	assert_int_equal(output_commit(&output, false, NULL, &failure), 0);
	output_close(&output);
	check_and_remove();
	return pages;
}

/* Parts of chunks that meet anywhere, in any order.  Where direct output passes
 * the page cache by, only the pages where parts meet go through it, and the one
 * where the file is cut. */
static void check_cut_chunks(const struct world *world)
{
	bool passes_by;

	set_files(world->folder, 1);
	sizes[0] = 100 * PAGE_BYTES - 1;
	cuts_chunks = false;
	passes_by = write_and_count_pages(world) <= 1;
	cuts_chunks = true;
	for (int turn = 0; turn < 30; turn++) {
		uint64_t pages;

		sizes[0] = random_next() % (100 * PAGE_BYTES);
		pages = write_and_count_pages(world);
		if (passes_by)
			assert_in_range(pages, 0, cut_count + 1);
	}
}

static void output_put__parts_of_chunks(void **state)
{
	(void)state;
	cuts_chunks = true;
	in_every_world(check_cut_chunks);
	in_every_world(check_large);
	cuts_chunks = false;
}

/* Opened for more than is written: the file is cut. */
static void check_lowered(const struct world *world)
{
	static const uint64_t cases[][2] = {
		{ 1, 0 },	  { 20000, 0 },	     { 20000, 1 },
		{ 100000, 8192 }, { 100000, 99999 }, { 4 * MIB, 3 * MIB - 7 }
	};

	set_files(world->folder, 1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		sizes[0] = cases[i][0];
		assert_int_equal(output_open(&output, paths, sizes, 1, 0, NULL,
					     world->direct, &failure),
				 0);
		sizes[0] = cases[i][1];
		run_writers(2, (size_t)4 * PAGE_BYTES);
		assert_int_equal(output_set_sizes(&output, sizes, &failure), 0);
		assert_int_equal(output_commit(&output, false, NULL, &failure),
				 0);
		output_close(&output);
		check_and_remove();
	}
}

static void output_set_sizes__lower(void **state)
{
	(void)state;
	in_every_world(check_lowered);
}

/* Chunk number n of file 0, by one thread. */
static void put_chunk(unsigned n)
{
	struct sink_slot *slot = sink_take(&output.sink);
	uint64_t offset_bytes = n * output.sink.chunk_bytes;
	const struct chunk chunk = { 0, offset_bytes,
				     length_of(0, offset_bytes,
					       output.sink.chunk_bytes) };

	assert_non_null(slot);
	fill_slot(slot, &chunk);
	sink_put(&output.sink, slot);
}

static void open_one(const char *folder, uint64_t size, unsigned slot_count,
		     bool direct)
{
	set_files(folder, 1);
	sizes[0] = size;
	assert_int_equal(output_open(&output, paths, sizes, 1, 0, NULL, direct,
				     &failure),
			 0);
	output_set_slots(&output, memory, slot_count, 2 * PAGE_BYTES);
}

/* A member that finds the file busy stores through the mapping, if there is
 * one, or leaves the slot to the member that writes. */
static void check_busy(const struct world *world)
{
	if (world->direct)
		return;
	open_one(world->folder, 20000, 3, false);
	output.files[0].busy = true;
	for (unsigned n = 0; n < 3; n++)
		put_chunk(n);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(output.slots[i].state, SLOT_READY);
	sink_help(&output.sink);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(output.slots[i].state,
				 output.files[0].pages.map ? SLOT_FREE
							   : SLOT_READY);
	output.files[0].busy = false;
	assert_int_equal(output_commit(&output, false, NULL, &failure), 0);
	output_close(&output);
	check_and_remove();
}

static void output_help__while_another_writes(void **state)
{
	(void)state;
	in_every_world(check_busy);
}

/* Stores that the kernel refuses: as on a disk that is full. */
static void check_refused_store(const struct world *world)
{
	if (world->direct)
		return;
	open_one(world->folder, 20000, 3, false);
	if (output.files[0].pages.map) {
		assert_int_equal(ftruncate(output.files[0].fd, 0), 0);
		output.files[0].busy = true;
		for (unsigned n = 0; n < 3; n++)
			put_chunk(n);
		sink_help(&output.sink);
		assert_true(output.files[0].map_refused);
		output.files[0].busy = false;
		assert_int_equal(output_commit(&output, false, NULL, &failure),
				 0);
		check_and_remove();
	}
	output_close(&output);
}

static void output_help__refused_store_is_written(void **state)
{
	(void)state;
	in_every_world(check_refused_store);
}

/* With one slot, the member that takes the next waits until it is written. */
static void check_one_slot(const struct world *world)
{
	open_one(world->folder, 100000, 1, world->direct);
	for (unsigned n = 0; n < 13; n++)
		put_chunk(12 - n);
	assert_int_equal(output_commit(&output, false, NULL, &failure), 0);
	output_close(&output);
	check_and_remove();
}

static void output_take__one_slot(void **state)
{
	(void)state;
	in_every_world(check_one_slot);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void assert_too_large(void)
{
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, paths[0]);
	assert_string_equal(failure.why, strerror(EFBIG));
}

/* The disk is full in the middle of it. */
static void check_full(const struct world *world)
{
	for (unsigned threads = 1; threads <= THREADS_MAX; threads++) {
		set_files(world->folder, 2);
		sizes[0] = 200000;
		sizes[1] = 1000;
		assert_int_equal(output_open(&output, paths, sizes, 2, 0, NULL,
					     world->direct, &failure),
				 0);
		/* A mapping does not know this limit. */
		output.files[0].map_refused = true;
		limit_file_size((rlim_t)(random_next() % 10) * PAGE_BYTES);
		run_writers(threads, PAGE_BYTES);
		failure.status = EXIT_DONE;
		assert_int_not_equal(
			output_commit(&output, false, NULL, &failure), 0);
		limit_file_size(RLIM_INFINITY);
		assert_true(failure.status == EXIT_FILE);
		assert_null(sink_take(&output.sink));
		assert_string_equal(failure.why, strerror(EFBIG));
		output_close(&output);
		assert_int_equal(count_entries(world->folder), 0);
	}
}

static void output__full_disk_leaves_nothing(void **state)
{
	(void)state;
	in_every_world(check_full);
	cuts_chunks = true;
	in_every_world(check_full);
	cuts_chunks = false;
}

/* Of a part of a chunk, only the bytes on the page that is shared cannot be
 * written. */
static void check_full_at_shared_page(const struct world *world)
{
	const struct chunk chunk = { 0, 0, PAGE_BYTES + 10 };
	struct sink_slot *slot;

	open_one(world->folder, 2 * PAGE_BYTES, 2, world->direct);
	slot = sink_take(&output.sink);
	fill_slot(slot, &chunk);
	limit_file_size(PAGE_BYTES);
	sink_put(&output.sink, slot);
	failure.status = EXIT_DONE;
	assert_int_equal(sink_finish(&output.sink, &failure), -EIO);
	limit_file_size(RLIM_INFINITY);
	assert_too_large();
	output_close(&output);
}

static void output_put__full_disk_at_shared_page(void **state)
{
	(void)state;
	in_every_world(check_full_at_shared_page);
}

/* Where room is made ahead it is known at once; where not, when it is
 * written. */
static void check_no_room(const struct world *world)
{
	int error;

	set_files(world->folder, 1);
	sizes[0] = 50000;
	limit_file_size(3 * PAGE_BYTES);
	failure.status = EXIT_DONE;
	error = output_open(&output, paths, sizes, 1, 0, NULL, world->direct,
			    &failure);
	if (error == 0) {
		run_writers(1, PAGE_BYTES);
		error = output_commit(&output, false, NULL, &failure);
	}
	limit_file_size(RLIM_INFINITY);
	assert_int_not_equal(error, 0);
	assert_too_large();
	output_close(&output);
	assert_int_equal(count_entries(world->folder), 0);
}

static void output_open__no_room(void **state)
{
	(void)state;
	in_every_world(check_no_room);
}

static void check_not_committed(const struct world *world)
{
	open_one(world->folder, 30000, 4, world->direct);
	put_chunk(0);
	put_chunk(1);
	output_close(&output);
	assert_int_equal(count_entries(world->folder), 0);
	/* Again, and on what never was open. */
	output_close(&output);
}

static void output_close__nothing_is_left(void **state)
{
	(void)state;
	in_every_world(check_not_committed);
}

/* The first file could be opened; the second has no folder. */
static void check_no_folder(const struct world *world)
{
	char path[200];

	set_files(world->folder, 2);
	snprintf(path, sizeof(path), "%s/missing/b", world->folder);
	paths[1] = path;
	sizes[0] = sizes[1] = 5000;
	failure.status = EXIT_DONE;
	assert_int_equal(output_open(&output, paths, sizes, 2, 0, NULL,
				     world->direct, &failure),
			 -ENOENT);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, path);
	assert_int_equal(count_entries(world->folder), 0);
	output_close(&output);
}

static void output_open__second_file_fails(void **state)
{
	(void)state;
	in_every_world(check_no_folder);
}

/* All files are written directly or none: the second one's descriptor is
 * refused, for want of another. */
static void output_open__direct_for_some_files_only(void **state)
{
	struct rlimit before, limit;
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int error;

	(void)state;
	assert_true(lowest >= 0);
	close(lowest);
	set_files(folders[0], 2);
	sizes[0] = sizes[1] = 10001;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	/* File, folder and direct descriptor; file and folder. */
	limit.rlim_cur = (rlim_t)lowest + 5;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	error = output_open(&output, paths, sizes, 2, 0, NULL, true, &failure);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(error, 0);
	assert_false(output.direct);
	run_writers(2, PAGE_BYTES);
	assert_int_equal(output_commit(&output, false, NULL, &failure), 0);
	output_close(&output);
	check_and_remove();
}

/* Where io_uring is forbidden, as in many containers. */
static void check_no_ring(const struct world *world)
{
	struct rlimit before, limit;
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int error;

	assert_true(lowest >= 0);
	close(lowest);
	if (!world->direct)
		return;
	set_files(world->folder, 1);
	sizes[0] = 70001;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	/* File, folder and direct descriptor, but no ring's. */
	limit.rlim_cur = (rlim_t)lowest + 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	error = output_open(&output, paths, sizes, 1, 0, NULL, true, &failure);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(error, 0);
	assert_null(output.queue.ring);
	run_writers(3, 2 * PAGE_BYTES);
	assert_int_equal(output_commit(&output, false, NULL, &failure), 0);
	output_close(&output);
	check_and_remove();
}

static void output_open__no_ring(void **state)
{
	(void)state;
	in_every_world(check_no_ring);
}

static void output_set_slots__apart_and_as_many(void **state)
{
	(void)state;
	open_one(folders[0], 1, 5, false);
	assert_int_equal(output.slot_count, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_ptr_equal(output.slots[i].data,
				 memory + (size_t)i * 2 * PAGE_BYTES);
		assert_int_equal(output.slots[i].state, SLOT_FREE);
	}
	/* One more slot than members, so that no member waits for another's;
	 * a member that is alone needs one. */
	assert_int_equal(output_slots_wanted(&output, 1), 1);
	for (unsigned members = 2; members < 600; members++)
		assert_in_range(output_slots_wanted(&output, members),
				MIN(members + 1, OUTPUT_SLOTS_MAX),
				OUTPUT_SLOTS_MAX);
	output_close(&output);
}

/* --------------------------------------------------- one file, by several */

/* A part stays open, as it does in its process, while others are written. */
static struct output open_and_write_part(uint64_t begin, uint64_t end,
					 uint64_t whole)
{
	const struct output_part part = { .mark = "mark",
					  .begin_bytes = begin,
					  .size_bytes = end - begin,
					  .whole_bytes = whole };

	assert_int_equal(output_open_part(&output, paths[0], &part, &failure),
			 0);
	assert_false(output.direct);
	part_begin = begin;
	sizes[0] = end - begin;
	run_writers(2, PAGE_BYTES);
	assert_int_equal(sink_finish(&output.sink, &failure), 0);
	part_begin = 0;
	return output;
}

/* Parts end within a page; one is empty; they are not written in order. */
static void check_parts(const struct world *world)
{
	static const uint64_t ends[] = { 0, 10001, 10001, 70000, 100003 };
	static const unsigned order[] = { 2, 0, 3, 1 };
	struct output parts[4];

	set_files(world->folder, 1);
	for (unsigned i = 0; i < 4; i++)
		parts[order[i]] = open_and_write_part(
			ends[order[i]], ends[order[i] + 1], ends[4]);
	assert_int_equal(count_entries(world->folder), 1);
	assert_int_equal(access(paths[0], F_OK), -1);
	assert_int_equal(output_commit(&parts[2], true, NULL, &failure), 0);
	for (unsigned i = 0; i < 4; i++)
		output_close(&parts[i]);
	assert_int_equal(count_entries(world->folder), 1);
	sizes[0] = ends[4];
	check_and_remove();
}

static void output_open_part__all_parts_make_the_file(void **state)
{
	(void)state;
	in_every_world(check_parts);
}

static void check_part_no_room(const struct world *world)
{
	const struct output_part part = { .mark = "mark",
					  .size_bytes = 100,
					  .whole_bytes = 50000 };

	set_files(world->folder, 1);
	limit_file_size(3 * PAGE_BYTES);
	failure.status = EXIT_DONE;
	assert_int_equal(output_open_part(&output, paths[0], &part, &failure),
			 -EFBIG);
	limit_file_size(RLIM_INFINITY);
	assert_too_large();
	output_close(&output);
	assert_int_equal(count_entries(world->folder), 0);
}

static void output_open_part__no_room(void **state)
{
	(void)state;
	in_every_world(check_part_no_room);
}

static bool make_folder(char *folder, size_t folder_bytes, const char *parent)
{
	snprintf(folder, folder_bytes, "%s/test_output.XXXXXX", parent);
	if (mkdtemp(folder))
		return true;
	folder[0] = '\0';
	return false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_set_slots__apart_and_as_many),
		cmocka_unit_test(output__sizes),
		cmocka_unit_test(output__files_and_threads),
		cmocka_unit_test(output__large_files),
		cmocka_unit_test(output_put__parts_of_chunks),
		cmocka_unit_test(output_set_sizes__lower),
		cmocka_unit_test(output_take__one_slot),
		cmocka_unit_test(output_help__while_another_writes),
		cmocka_unit_test(output_help__refused_store_is_written),
		cmocka_unit_test(output__full_disk_leaves_nothing),
		cmocka_unit_test(output_put__full_disk_at_shared_page),
		cmocka_unit_test(output_open__no_room),
		cmocka_unit_test(output_open__second_file_fails),
		cmocka_unit_test(output_open__direct_for_some_files_only),
		cmocka_unit_test(output_open__no_ring),
		cmocka_unit_test(output_close__nothing_is_left),
		cmocka_unit_test(output_open_part__all_parts_make_the_file),
		cmocka_unit_test(output_open_part__no_room),
	};
	const char *build = getenv("BUILD");
	int failed;

	random_begin();
	signal(SIGXFSZ, SIG_IGN);
	memory = mmap(NULL, SLOTS_MAX * CHUNK_BYTES_MAX, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || !make_folder(folders[0], sizeof(folders[0]),
						 build ? build : "/tmp"))
		return EXIT_FAILURE;
	if (!make_folder(folders[1], sizeof(folders[1]), "/dev/shm"))
		printf("no tmpfs: tried on a disk only\n");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (folders[i][0] != '\0')
			rmdir(folders[i]);
	return failed;
}
