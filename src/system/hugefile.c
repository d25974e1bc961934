/*
 * hugefile.c - a new file on tmpfs, made of huge pages and filled where it
 * lies
 */
#include "system/hugefile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "system/arena.h"
#include "system/numa.h"

/* Linux 6.1; the headers of Debian 12 lack it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* So few are made by one call, since for each call the kernel empties lists of
 * all CPUs first.  Of more, threads make one each (results/NOTES.md). */
#define PAGES_AT_ONCE 3

/* The most that a last page may waste, and what must be left for other files.
 */
#define LAST_PAGE_WASTE_BYTES (HUGE_PAGE_BYTES / 4)
#define LAST_PAGE_ROOM_BYTES (256 * MIB)

/* A smaller file is better written if the file system makes huge pages itself:
 * a thread that touches such a page waits until all of it is made. */
#define HUGE_ANYWAY_BYTES_MIN (8 * HUGE_PAGE_BYTES)

static uint64_t pages_wanted(const struct statfs *fs, uint64_t size_bytes)
{
	/* A tmpfs without limits says 0 everywhere. */
	if (fs->f_blocks == 0 || fs->f_bavail * (uint64_t)fs->f_bsize >
					 size_bytes + LAST_PAGE_ROOM_BYTES)
		size_bytes += LAST_PAGE_WASTE_BYTES;
	return size_bytes / HUGE_PAGE_BYTES;
}

/* Write one byte of each huge page.  On a full file system only the first ones
 * can be written; the writes of the file will fail for the same reason. */
static uint64_t begin_pages(int fd, uint64_t page_count)
{
	uint64_t page;

	for (page = 0; page < page_count; page++)
		if (pwrite(fd, "", 1, (off_t)(page * HUGE_PAGE_BYTES)) != 1)
			break;
	return page;
}

/* Huge pages lie only at multiples of their size, and the last one is mapped as
 * a whole, too. */
static bool map_file(struct hugefile *file, int fd, uint64_t size_bytes)
{
	uint64_t map_bytes = ROUND_UP(size_bytes, HUGE_PAGE_BYTES);
	uint8_t *begin = arena_reserve(map_bytes, PROT_NONE);

	if (!begin)
		return false;
	if (mmap(begin, map_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(begin, map_bytes);
		return false;
	}
	file->map = begin;
	file->map_bytes = map_bytes;
	return true;
}

void hugefile_open(struct hugefile *file, int fd, uint64_t size_bytes)
{
	struct statfs fs;
	struct stat status;

	memset(file, 0, sizeof(*file));
	if (size_bytes == 0 || size_bytes > SIZE_MAX / 2 ||
	    fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    fstat(fd, &status) < 0)
		return;
	/* A tmpfs with huge pages names their size here. */
	file->huge_anyway = status.st_blksize == HUGE_PAGE_BYTES;
	if (file->huge_anyway && size_bytes < HUGE_ANYWAY_BYTES_MIN)
		return;
	if (!map_file(file, fd, size_bytes)) {
		hugefile_close(file);
		return;
	}
	/* Some file systems make huge pages only on request. */
	if (file->huge_anyway)
		(void)madvise(file->map, size_bytes, MADV_HUGEPAGE);
	else
		file->page_count =
			begin_pages(fd, pages_wanted(&fs, size_bytes));
}

/* The first small page of this huge page once more, where it is to be. */
static bool begin_page_on(int fd, uint64_t page, unsigned node)
{
	off_t offset = (off_t)(page * HUGE_PAGE_BYTES);

	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
		      PAGE_BYTES) < 0)
		return false;
	numa_prefer_new((int)node);
	return pwrite(fd, "", 1, offset) == 1;
}

void hugefile_spread(struct hugefile *file, int fd, uint64_t nodes)
{
	uint64_t left = nodes;

	assert(nodes > 0);
	for (uint64_t page = 0; page < file->page_count; page++) {
		unsigned node = (unsigned)__builtin_ctzll(left);

		if (!begin_page_on(fd, page, node))
			file->page_count = page;
		left &= left - 1;
		left = left ? left : nodes;
	}
	numa_prefer_new(-1);
}

static void collapse(struct hugefile *file, uint64_t page, uint64_t count)
{
	uint8_t *at = file->map + page * HUGE_PAGE_BYTES;

	/* EAGAIN: another thread was using one of its small pages; the next
	 * huge page may succeed. */
	if (madvise(at, count * HUGE_PAGE_BYTES, MADV_COLLAPSE) < 0 &&
	    errno != EAGAIN)
		atomic_store_explicit(&file->refused, true,
				      memory_order_relaxed);
}

static void make_pages(struct hugefile *file, uint64_t end_bytes)
{
	uint64_t end =
		MIN(DIV_ROUND_UP(end_bytes, HUGE_PAGE_BYTES), file->page_count);
	uint64_t count =
		file->page_count <= PAGES_AT_ONCE ? file->page_count : 1;
	uint64_t page =
		atomic_load_explicit(&file->next_page, memory_order_relaxed);

	while (page < end &&
	       !atomic_load_explicit(&file->refused, memory_order_relaxed))
		if (atomic_compare_exchange_weak_explicit(
			    &file->next_page, &page, page + count,
			    memory_order_relaxed, memory_order_relaxed)) {
			collapse(file, page, count);
			page += count;
		}
}

uint8_t *hugefile_place(struct hugefile *file, uint64_t begin_bytes,
			size_t length_bytes, uint64_t ahead_bytes)
{
	uint64_t end_bytes = begin_bytes + length_bytes;
	uint64_t populate = ROUND_DOWN(begin_bytes, PAGE_BYTES);

	if (!file->map)
		return NULL;
	make_pages(file, end_bytes + ahead_bytes);
	/* If the file system makes huge pages itself, all threads that share
	 * one would wait until it has made it. */
	if (file->huge_anyway ? length_bytes < HUGE_PAGE_BYTES
			      : end_bytes > file->page_count * HUGE_PAGE_BYTES)
		return NULL;
	if (atomic_load_explicit(&file->refused, memory_order_relaxed))
		return NULL;
	/* Make the pages now, as a full file system ends the process when a
	 * store finds it. */
	if (madvise(file->map + populate, end_bytes - populate,
		    MADV_POPULATE_WRITE) < 0) {
		atomic_store_explicit(&file->refused, true,
				      memory_order_relaxed);
		return NULL;
	}
	return file->map + begin_bytes;
}

void hugefile_close(struct hugefile *file)
{
	if (file->map)
		munmap(file->map, file->map_bytes);
	memset(file, 0, sizeof(*file));
}
