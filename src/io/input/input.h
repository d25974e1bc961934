/*
 * input.h - the records of one or several files as one array in memory
 *
 * Slot i is the record at base + i * record_size.  Each file lies at an address
 * that is a multiple both of the page (so that it can be mapped, or read with
 * O_DIRECT) and of record_size away from base; so between two files there are
 * slots without a record, fewer than PAGE_BYTES of them each, and an index
 * of slot_count's bits finds every record of every file with one
 * multiplication. Slots ascend as records do, so comparing slots is comparing
 * input order.  Each file may begin with a header, which is no slot's: pages
 * lie in memory as they do in the files, so base is header_bytes behind the
 * beginning of a page.
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
 * As a source (source.h), each worker reads its share, or piece after piece of
 * a mapped input, with a reader of its own.
 */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/failure.h"

enum input_mode { INPUT_AUTO, INPUT_BUFFERED, INPUT_MMAP, INPUT_DIRECT };

#define INPUT_FILES_MAX 1024

/* What is read of each file. */
struct input_layout {
	uint32_t record_size;
	/* The first device_bytes of a block device, with its header; 0: all. */
	uint64_t device_bytes;
	uint64_t header_bytes; /* before the records */
	bool keeps_header;     /* that of the first file */
	/* Refuse a file of NumPy (.npy), which has a header. */
	bool refuses_npy;
};

/* Headers that are kept are in memory. */
#define INPUT_HEADER_KEPT_MAX ((uint64_t)16 << 20)

struct input_file {
	const char *path; /* borrowed */
	int fd;
	int direct_fd; /* -1: none; see input_open_directly() */
	dev_t device;
	ino_t inode;
	bool is_device;	       /* a block device */
	uint64_t size_bytes;   /* at open; the file may grow, but not shrink */
	uint64_t first_record; /* its number, counted over all files */
	uint64_t first_slot;
	uint64_t record_count;
};

struct input {
	struct input_file *files; /* owned */
	unsigned file_count;
	uint32_t record_size;
	uint64_t header_bytes; /* of each file */
	uint8_t *header;       /* owned: of the first file; NULL: not kept */
	uint64_t record_count; /* of all files */
	uint64_t slot_count;   /* >= record_count: holes between files */
	/* The fewest records that end at a page boundary: lcm / size. */
	uint64_t align_records;
	enum input_mode mode; /* as wanted; after input_choose never AUTO */
	/* NULL until input_map; input_lead_bytes() behind a multiple of 2 MiB
	 */
	uint8_t *base;
	size_t map_bytes; /* from that multiple on */
	/* Address space to reserve on both sides, for records that are not the
	 * input's.  The caller sets it before input_map(), which rounds it up.
	 */
	uint64_t reserved_before_bytes, reserved_after_bytes;
	/* The last huge page belongs to the input alone: nothing else goes into
	 * what is left of it.  The caller sets it before input_map(). */
	bool exclusive_tail;
};

/*
 * Open all, check that each is a regular file or a block device, and a header
 * and a whole number of records.  Where none of the inputs is a device,
 * device_bytes has to be 0.
 * Another program that locks a device (flock(2)) is refused it until it is
 * closed, so that none of ours writes there (outdevice.h).  A file that says
 * that it is empty and is not (procfs) is refused.  Nothing else is read but
 * the header, and nothing mapped yet.  Returns 0 or -errno with *failure
 * filled; the input is still to be closed then.
 */
int input_open(struct input *input, const char *const *paths,
	       unsigned path_count, const struct input_layout *layout,
	       enum input_mode mode, struct failure *failure);

/* The message about a file that has fewer bytes than a header; and about one
 * whose bytes behind it are no whole number of records.  hint: why, if it is
 * known; else NULL.  -EINVAL with *failure filled. */
int input_refuse_header(const char *path, uint64_t bytes, uint64_t header_bytes,
			struct failure *failure);
int input_refuse_partial(const char *path, uint64_t bytes,
			 const struct input_layout *layout, const char *hint,
			 struct failure *failure);

/* Decide what AUTO means for these files (looks at the page cache). */
void input_choose(struct input *input);

/* Open the files once more, past the page cache, for direct reads that are not
 * input_map()'s.  direct_fd stays -1 where that is refused, and where it would
 * leave too few descriptors for other files. */
void input_open_directly(struct input *input);

/* Memory that an input of this many bytes takes if it is not mapped. */
uint64_t input_layout_bytes(uint64_t bytes);

/* Memory needed beyond mapped files: 0 for mmap. */
uint64_t input_memory_bytes(const struct input *input);

/* Lay out the address space, map the files or reserve the memory.  In mmap
 * mode also installs the SIGBUS handler.  0 or -errno with *failure filled; the
 * input is still to be closed then. */
int input_map(struct input *input, struct failure *failure);

/*
 * Memory in the reserved space, for records that form one array with the
 * input's own, which need not be copied: slot_count slots that end at base, of
 * which the last input_lead_slots() are not to be used, or record_count records
 * that begin at input_after_slot().  Call each once, after input_map(); the
 * space must have been reserved.  0 or -errno with *failure filled.
 */
int input_open_before(struct input *input, uint64_t slot_count,
		      struct failure *failure);
int input_open_after(struct input *input, uint64_t record_count,
		     struct failure *failure);

/* The first slot behind the input whose record shares no page with the files.
 * Before it some slots may hold no record, as between two files. */
uint64_t input_after_slot(const struct input *input);

/* Call it when all records have been used: it fails if a file has become
 * shorter meanwhile.  A file that is cut within its last page raises no SIGBUS;
 * zeros take the place of the bytes that it had. */
int input_check(const struct input *input, struct failure *failure);

/* Give back what malloc() gave, and leave mappings and descriptors to the end
 * of the process.  Safe on a zeroed struct. */
void input_leave(struct input *input);

/* Unmap and close.  Safe on a zeroed struct. */
void input_close(struct input *input);

/* Give back the page tables of part number `part` of `parts` of a mapped input,
 * which is not read any more.  Any thread may call it. */
void input_forget(const struct input *input, unsigned part, unsigned parts);

/* [enum input_mode]: "auto", "buffered", "mmap", "direct" */
extern const char *const input_mode_names[];

/* Read bytes of a file, by pread(2).  0, or -errno with *failure filled, also
 * if the file ends too early. */
int input_read_at(const struct input_file *file, uint8_t *target,
		  uint64_t offset, uint64_t bytes, struct failure *failure);

/*
 * Copy up to count records from the beginning of the input to buffer, by plain
 * reads, to find out what kind of keys they have.  Returns how many there were,
 * or -errno.
 */
int64_t input_peek(const struct input *input, uint8_t *buffer, uint64_t count,
		   struct failure *failure);

/*
 * Read `width` bytes from `offset` on of each of count records of the first
 * file, packed one behind the other into target.  The records lie at several
 * places spread over the file, as many at each.  count is a multiple of places,
 * and no more than the file has; a place's records do not reach over the file's
 * end.  The bytes are read, not touched through a mapping: a page fault on a
 * mapped file costs 6 to 20 us, a read of a kilobyte one.  0 or -errno with
 * *failure filled.
 */
int input_peek_places(const struct input *input, uint32_t offset,
		      uint32_t width, uint64_t count, unsigned places,
		      uint8_t *target, struct failure *failure);

/* Returns the address of the record of this number, counted over all files.
 * The record must have been brought in. */
static inline const uint8_t *input_record(const struct input *input,
					  uint64_t number)
{
	const struct input_file *file = input->files;

	while (number >= file->first_record + file->record_count)
		file++;
	return input->base + (file->first_slot + number - file->first_record) *
				     input->record_size;
}

/* Returns where in its file the record of this number begins, which lies there,
 * or at the end of the file's records. */
static inline uint64_t input_offset(const struct input *input,
				    const struct input_file *file,
				    uint64_t number)
{
	return input->header_bytes +
	       (number - file->first_record) * input->record_size;
}

/* Returns how many bytes of the header lie before the records in their first
 * page, and how many slots before base share that page. */
static inline uint32_t input_lead_bytes(const struct input *input)
{
	return input->header_bytes % PAGE_BYTES;
}

static inline uint64_t input_lead_slots(const struct input *input)
{
	return DIV_ROUND_UP(input_lead_bytes(input), input->record_size);
}

/* Returns where the pages of the first file begin in memory. */
static inline uint8_t *input_start(const struct input *input)
{
	return input->base - input_lead_bytes(input);
}

/* --- for input_reader.c ----------------------------------------------------
 */

/* The file that a record lies in; record < record_count. */
unsigned input_find_file(const struct input *input, uint64_t record);

/* Returns the address where a file's byte is or will be, of the records or the
 * page where they begin. */
static inline uint8_t *input_address(const struct input *input,
				     const struct input_file *file,
				     uint64_t offset)
{
	return input->base + file->first_slot * input->record_size + offset -
	       input->header_bytes;
}

#endif /* INPUT_H */
