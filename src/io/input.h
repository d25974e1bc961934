/*
 * input.h - the records of one or several files as one array in memory
 *
 * Slot i is the record at base + i * record_size.  Each file lies at an address
 * that is a multiple both of the page (so that it can be mapped, or read with
 * O_DIRECT) and of record_size away from base; so between two files there are
 * slots without a record, fewer than PAGE_BYTES of them each, and an index
 * of slot_count's bits finds every record of every file with one
 * multiplication. Slots ascend as records do, so comparing slots is comparing
 * input order.
 *
 * Ways to bring the bytes in:
 *   mmap      the page cache itself is mapped; nothing is copied.  A file that
 *             another process cuts short raises SIGBUS: the handler prints one
 *             line and ends the process with EXIT_FILE.
 *   buffered  read(2) into memory.
 *   direct    O_DIRECT by io_uring, past the page cache; where the kernel or
 *             the file system refuses, plain reads take its place.
 *   auto      mmap if the files are (nearly) all in the page cache, else
 *             direct; what was chosen stands in mode.
 *
 * Each member of the team reads its share, or piece after piece, with a reader
 * of its own.
 */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"

enum input_mode { INPUT_AUTO, INPUT_BUFFERED, INPUT_MMAP, INPUT_DIRECT };

#define INPUT_FILES_MAX 1024

struct input_file {
	const char *path; /* borrowed */
	int fd;
	int direct_fd; /* -1: none; opened by input_map in direct mode */
	dev_t device;
	ino_t inode;
	uint64_t size_bytes;   /* when it was opened; more may come, not less */
	uint64_t first_record; /* number of its first record, of all files' */
	uint64_t first_slot;
	uint64_t record_count;
};

struct input {
	struct input_file *files; /* owned */
	unsigned file_count;
	uint32_t record_size;
	uint64_t record_count; /* of all files */
	uint64_t slot_count;   /* >= record_count: holes between files */
	/* The fewest records that end at a page boundary: lcm / size. */
	uint64_t align_records;
	enum input_mode mode; /* as wanted; after input_choose never AUTO */
	uint8_t *base;	      /* NULL until input_map; a multiple of 2 MiB */
	size_t map_bytes;
	/* Address space to keep free on both sides, for records of others:
	 * wished for before input_map, which rounds it up. */
	uint64_t room_before_bytes, room_after_bytes;
	bool apart; /* nothing goes into the last huge page of ours */
};

/*
 * Open all, check that each is a regular file (a block device is one, too, for
 * reading) and a whole number of records.  A file that says that it is empty
 * and is not (procfs) is refused.  Nothing else is read, and nothing mapped
 * yet. Returns 0 or -errno with *failure filled; then nothing is left open.
 */
int input_open(struct input *input, const char *const *paths,
	       unsigned path_count, uint32_t record_size, enum input_mode mode,
	       struct failure *failure);

/* Decide what AUTO means for these files (looks at the page cache). */
void input_choose(struct input *input);

/* Memory needed beyond mapped files: 0 for mmap. */
uint64_t input_memory_bytes(const struct input *input);

/* Lay out the address space, map the files or reserve the memory.  In mmap
 * mode also installs the SIGBUS handler.  0 or -errno with *failure filled; the
 * input is still to be closed then. */
int input_map(struct input *input, struct failure *failure);

/*
 * Records of others around our own, in one array with them, without a copy of
 * ours: memory for record_count records that end exactly at base (they have the
 * slots from -record_count on), or that begin with input_after_slot().  Within
 * the room that was wished for; after input_map; once each.  0 or -errno with
 * *failure filled.
 */
int input_open_before(struct input *input, uint64_t record_count,
		      struct failure *failure);
int input_open_after(struct input *input, uint64_t record_count,
		     struct failure *failure);

/* The first slot whose record shares no page with the files: a hole may lie
 * before it, as between two files. */
uint64_t input_after_slot(const struct input *input);

/* When all has been used: an error if a file has become shorter meanwhile.  Cut
 * within its last page it raises no SIGBUS, and zeros take the place of what
 * was there. */
int input_check(const struct input *input, struct failure *failure);

/* Unmaps too; safe on a zeroed struct. */
void input_close(struct input *input);

/* One of so many parts of a mapped input is not read any more: what it takes in
 * the page tables goes back.  Any thread. */
void input_forget(const struct input *input, unsigned part, unsigned parts);

/* "buffered", "mmap", "direct", "auto" */
const char *input_mode_name(enum input_mode mode);

/*
 * Up to count records from the beginning of the input, copied to buffer by
 * plain reads (they tell what kind of keys these are).  Returns how many there
 * were, or -errno.
 */
int64_t input_peek(const struct input *input, uint8_t *buffer, uint64_t count,
		   struct failure *failure);

/*
 * Of each of count records of the first file `width` bytes from `offset` on,
 * packed one behind the other into target; as many records at each of several
 * places spread over the file.  count is a multiple of places, and no more than
 * the file has; a place's records do not reach over the file's end.  Read, not
 * touched where they are mapped: a page fault on a mapped file costs 6 to 20
 * us, a read of a kilobyte one.  0 or -errno with *failure filled.
 */
int input_peek_places(const struct input *input, uint32_t offset,
		      uint32_t width, uint64_t count, unsigned places,
		      uint8_t *target, struct failure *failure);

/* Member's share of the records: shares follow each other, cover all, and
 * begin at a multiple of align_records within a file if there is more than one
 * member, so that no page belongs to two members. */
void input_share(const struct input *input, unsigned member,
		 unsigned member_count, uint64_t *first_record,
		 uint64_t *record_count);

/* Some records that follow each other in memory. */
struct input_run {
	uint64_t slot; /* of the first */
	uint64_t record_count;
	const uint8_t *records; /* base + slot * record_size */
};

#define INPUT_QUEUE_DEPTH 16

/* How a reader gets its records. */
enum input_way {
	INPUT_WALK,  /* they are there */
	INPUT_TOUCH, /* mapped: they come when they are touched */
	INPUT_READ,  /* plain reads */
	INPUT_QUEUE, /* direct reads, many at a time */
};

/* Brings in a share run by run, in order; one thread's. */
struct input_reader {
	struct input *input;
	uint64_t next_record;
	uint64_t end_record;
	unsigned file; /* that next_record lies in */
	enum input_way way;
	uint64_t landed_record;	   /* INPUT_QUEUE: all before it are there */
	struct input_queue *queue; /* owned, or NULL */
};

/* resident: walk over what an earlier reader brought in.  0 or -errno with
 * *failure filled. */
int input_reader_init(struct input_reader *reader, struct input *input,
		      uint64_t first_record, uint64_t record_count,
		      bool resident, struct failure *failure);

/* 1 with *run filled, 0 at the end, -errno with *failure filled; then no read
 * is under way any more. */
int input_reader_next(struct input_reader *reader, struct input_run *run,
		      struct failure *failure);

/* Waits for reads that are under way.  Safe on a zeroed struct. */
void input_reader_fini(struct input_reader *reader);

/* Where record number lies, of all files' and in memory by now. */
static inline const uint8_t *input_record(const struct input *input,
					  uint64_t number)
{
	const struct input_file *file = input->files;

	while (number >= file->first_record + file->record_count)
		file++;
	return input->base + (file->first_slot + number - file->first_record) *
				     input->record_size;
}

/* --- for input_queue.c -----------------------------------------------------
 */

/* The file that a record lies in; record < record_count. */
unsigned input_find_file(const struct input *input, uint64_t record);

/* Where a file's byte is or will be. */
static inline uint8_t *input_address(const struct input *input,
				     const struct input_file *file,
				     uint64_t offset)
{
	return input->base + file->first_slot * input->record_size + offset;
}

/* Bytes of a file to their place, by pread(2).  0, or -errno with *failure
 * filled: the end of the file comes too early, too. */
int input_read_plainly(const struct input *input, unsigned file,
		       uint64_t offset, uint64_t bytes,
		       struct failure *failure);

#endif /* INPUT_H */
