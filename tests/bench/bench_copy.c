/*
 * bench_copy.c - copy a file past the page cache, reading and writing at once
 *
 * USAGE: bench_copy INPUT [OUTPUT]
 *
 * Without an output it only reads.
 * This is the floor for one pass over a file on this disk: the copy does
 * nothing else, and keeps both queues of the disk full until the end.  The
 * output is allocated before it is written, and on the medium when the program
 * ends.  external.sh compares sorts with it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_FILE 3
/* Virtual disks and SSDs reach their full rate by blocks of 1 to 8 MiB. */
#define BLOCK_BYTES ((size_t)2 << 20)
/* A queue of 8 is full also while one request takes several times as long. */
#define READS_MAX 8
#define WRITES_MAX 8
#define BLOCK_COUNT (READS_MAX + WRITES_MAX)
/* What O_DIRECT asks of offsets and lengths, on every disk. */
#define SECTOR_BYTES 4096

enum block_state { FREE, READING, WRITING };

struct block {
	void *memory;
	enum block_state state;
	off_t offset;
	size_t length; /* what the file has there, whole sectors */
};

struct copy {
	struct io_uring ring;
	int input, output; /* the latter -1: there is none */
	off_t size;	   /* of the file */
	off_t next;	   /* to be read */
	off_t done; /* written, or read if there is no output; whole sectors */
	unsigned reads;
	struct block blocks[BLOCK_COUNT];
};

static off_t whole_sectors(off_t size)
{
	return (size + SECTOR_BYTES - 1) & -(off_t)SECTOR_BYTES;
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC, 0666);

	if (fd < 0)
		err(EXIT_FILE, "%s", path);
	return fd;
}

/* On huge pages: blocks of small ones made the copy take 1.5 times as long. */
static void take_memory(struct copy *copy)
{
	size_t bytes = BLOCK_COUNT * BLOCK_BYTES;
	char *memory = aligned_alloc(BLOCK_BYTES, bytes);

	if (!memory)
		errx(EXIT_FILE, "no memory");
	madvise(memory, bytes, MADV_HUGEPAGE);
	for (unsigned i = 0; i < BLOCK_COUNT; i++)
		copy->blocks[i].memory = memory + i * BLOCK_BYTES;
}

static void copy_open(struct copy *copy, char **paths)
{
	struct stat found;
	int ret;

	copy->input = open_file(paths[0], O_RDONLY);
	copy->output = -1;
	if (paths[1])
		copy->output = open_file(paths[1], O_RDWR | O_CREAT | O_TRUNC);
	if (fstat(copy->input, &found) < 0)
		err(EXIT_FILE, "%s", paths[0]);
	copy->size = found.st_size;
	/* Only some file systems can; the others allocate block by block. */
	if (paths[1] && copy->size > 0 &&
	    fallocate(copy->output, 0, 0, copy->size) < 0 &&
	    errno != EOPNOTSUPP)
		err(EXIT_FILE, "%s", paths[1]);
	ret = io_uring_queue_init(BLOCK_COUNT, &copy->ring, 0);
	if (ret < 0)
		errx(EXIT_FILE, "io_uring: %s", strerror(-ret));
	take_memory(copy);
}

static void start_read(struct copy *copy, struct block *block)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&copy->ring);
	off_t left = whole_sectors(copy->size) - copy->next;

	block->state = READING;
	block->offset = copy->next;
	block->length = left < (off_t)BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
	copy->next += (off_t)block->length;
	copy->reads++;
	io_uring_prep_read(entry, copy->input, block->memory,
			   (unsigned)block->length, (uint64_t)block->offset);
	io_uring_sqe_set_data(entry, block);
}

static void start_write(struct copy *copy, struct block *block)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(&copy->ring);

	block->state = WRITING;
	io_uring_prep_write(entry, copy->output, block->memory,
			    (unsigned)block->length, (uint64_t)block->offset);
	io_uring_sqe_set_data(entry, block);
}

/* A read must bring what the file has there, a write take all. */
static void finish(struct copy *copy, struct block *block, int got)
{
	bool reading = block->state == READING;
	off_t wanted = (off_t)block->length;

	if (reading && copy->size - block->offset < wanted)
		wanted = copy->size - block->offset;
	if (got < 0)
		errx(EXIT_FILE, "%s: %s", reading ? "read" : "write",
		     strerror(-got));
	if (got < wanted)
		errx(EXIT_FILE, "%s: %d bytes instead of %lld",
		     reading ? "read" : "write", got, (long long)wanted);
	if (reading) {
		copy->reads--;
		if (copy->output >= 0) {
			start_write(copy, block);
			return;
		}
	}
	block->state = FREE;
	copy->done += (off_t)block->length;
}

static void start_reads(struct copy *copy)
{
	for (unsigned i = 0; i < BLOCK_COUNT; i++)
		if (copy->blocks[i].state == FREE && copy->next < copy->size &&
		    copy->reads < READS_MAX)
			start_read(copy, &copy->blocks[i]);
}

static void submit_and_wait(struct copy *copy)
{
	int ret = io_uring_submit_and_wait(&copy->ring, 1);

	if (ret < 0 && ret != -EINTR)
		errx(EXIT_FILE, "io_uring: %s", strerror(-ret));
}

static void copy_blocks(struct copy *copy)
{
	struct io_uring_cqe *done;

	while (copy->done < copy->size) {
		start_reads(copy);
		submit_and_wait(copy);
		while (io_uring_peek_cqe(&copy->ring, &done) == 0) {
			struct block *block = io_uring_cqe_get_data(done);
			int got = done->res;

			io_uring_cqe_seen(&copy->ring, done);
			finish(copy, block, got);
		}
	}
}

int main(int argc, char **argv)
{
	static struct copy copy;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: bench_copy INPUT [OUTPUT]\n");
		return 2;
	}
	copy_open(&copy, argv + 1);
	copy_blocks(&copy);
	if (copy.output >= 0 &&
	    (ftruncate(copy.output, copy.size) < 0 || fsync(copy.output) < 0))
		err(EXIT_FILE, "%s", argv[2]);
	return 0;
}
