#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base.h"
#include "hugefile.h"

/* Linux 6.1; the headers of Debian 12 lack it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

bool hugefile_is_for(int fd)
{
	struct statfs fs;
	struct stat status;

	/* A tmpfs with huge pages names their size here. */
	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       fstat(fd, &status) == 0 &&
	       status.st_blksize < (blksize_t)HUGE_PAGE_BYTES;
}

/* A last page may waste so much of what others may want to write. */
#define LAST_PAGE_WASTE_BYTES (HUGE_PAGE_BYTES / 4)
#define LAST_PAGE_ROOM_BYTES (256 * MIB)

static uint64_t pages_wanted(int fd, uint64_t size_bytes)
{
	struct statfs fs;

	/* Of a tmpfs without limits all is 0. */
	if (fstatfs(fd, &fs) == 0 &&
	    (fs.f_blocks == 0 || fs.f_bavail * (uint64_t)fs.f_bsize >
					 size_bytes + LAST_PAGE_ROOM_BYTES))
		size_bytes += LAST_PAGE_WASTE_BYTES;
	return size_bytes / HUGE_PAGE_BYTES;
}

/* One byte of each huge page; on a file system that is full those that come
 * first.  Who writes the file finds that out by itself. */
static uint64_t begin_pages(int fd, uint64_t page_count)
{
	uint64_t page;

	for (page = 0; page < page_count; page++)
		if (pwrite(fd, "", 1, (off_t)(page * HUGE_PAGE_BYTES)) != 1)
			break;
	return page;
}

void hugefile_open(struct hugefile *file, int fd, uint64_t size_bytes)
{
	uint64_t map_bytes = ROUND_UP(size_bytes, HUGE_PAGE_BYTES);
	uint8_t *begin;

	memset(file, 0, sizeof(*file));
	if (size_bytes == 0 || map_bytes > SIZE_MAX - HUGE_PAGE_BYTES)
		return;
	/* Huge pages only lie at multiples of their size; and whole ones, also
	 * the last. */
	file->room_bytes = map_bytes + HUGE_PAGE_BYTES;
	file->room = mmap(NULL, file->room_bytes, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (file->room == MAP_FAILED) {
		file->room = NULL;
		return;
	}
	begin = file->room;
	begin += -(uintptr_t)begin % HUGE_PAGE_BYTES;
	if (mmap(begin, map_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
		hugefile_close(file);
		return;
	}
	file->map = begin;
	file->page_count = begin_pages(fd, pages_wanted(fd, size_bytes));
}

static void make_page(struct hugefile *file, uint64_t page)
{
	uint8_t *at = file->map + page * HUGE_PAGE_BYTES;

	/* EAGAIN: somebody was at one of its pages; the next may do. */
	if (madvise(at, HUGE_PAGE_BYTES, MADV_COLLAPSE) < 0 && errno != EAGAIN)
		atomic_store_explicit(&file->refused, true,
				      memory_order_relaxed);
}

void hugefile_make(struct hugefile *file, uint64_t end_bytes)
{
	uint64_t end =
		MIN(DIV_ROUND_UP(end_bytes, HUGE_PAGE_BYTES), file->page_count);
	uint64_t page =
		atomic_load_explicit(&file->next_page, memory_order_relaxed);

	while (page < end &&
	       !atomic_load_explicit(&file->refused, memory_order_relaxed))
		if (atomic_compare_exchange_weak_explicit(
			    &file->next_page, &page, page + 1,
			    memory_order_relaxed, memory_order_relaxed))
			make_page(file, page++);
}

void hugefile_close(struct hugefile *file)
{
	if (file->room)
		munmap(file->room, file->room_bytes);
	memset(file, 0, sizeof(*file));
}
