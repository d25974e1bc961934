/*
 * output.h - the sink that is one or several files
 *
 * The workers fill staging slots and hand them over.  Writes to one file take
 * turns in the kernel (its inode lock).  So a worker that hands over a slot and
 * finds the file idle writes the slot, and goes on writing while slots are
 * ready; a worker that finds the file busy goes back to filling.  So the one
 * file is always being written, no worker waits for it as long as a slot is
 * free, and the slot that is written is still in a cache.
 *
 * A slot holds chunk_bytes at a multiple of chunk_bytes in the file (the last
 * holds the rest, and a header takes of the first), whatever the size of a
 * record: a huge page that is written as a whole needs not be cleared first.
 * A slot may also hold a part of that,
 * from any byte to any byte: where two parts meet within a page, the two bring
 * it together in the page cache, also if the output is direct.
 *
 * On tmpfs a chunk is filled where it lies in the file, on huge pages, and
 * there is nothing to write (hugefile.h).  Where those cannot be, making small
 * pages costs more than filling them, and a second writer pays: a worker that
 * would wait stores a ready slot through the mapping meanwhile.  Direct output
 * is written by io_uring, several slots at a time.
 *
 * Part i of the sink is file i.  The functions belong to the thread that opened
 * the output, but for the sink's operations.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/first_failure.h"
#include "io/output/outfile.h"
#include "io/output/sink.h"
#include "io/output/write_queue.h"
#include "system/hugefile.h"

#define OUTPUT_FILES_MAX 256
#define OUTPUT_SLOTS_MAX 512
/* On tmpfs chunks are whole huge pages: half of one costs clearing the other
 * half, 13 % of the CPU time. */
#define OUTPUT_CHUNK_BYTES_MAX HUGE_PAGE_BYTES
/* Elsewhere they are large enough for few system calls, small enough to stay in
 * a cache until they are written: 2 MiB take 10 % longer on ext4. */
#define OUTPUT_CHUNK_BYTES MIB

/* States of a sink_slot. */
enum output_slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_WRITING };

struct output_file {
	const char *path;	/* borrowed, as the user gave it */
	struct outfile outfile; /* not open: the output is on devices */
	int fd;			/* the outfile's, or the device's */
	int write_fd;		/* O_DIRECT, or fd */
	uint64_t begin_bytes;	/* where our records begin in the file */
	struct hugefile pages;	/* of a file on tmpfs */
	/* Written with the lock held. */
	bool busy;	  /* a worker is in write(2) */
	bool map_refused; /* stores through the mapping do not work here */
};

struct output {
	struct sink sink;	   /* the first member; its parts are files */
	struct output_file *files; /* owned */
	uint64_t *part_bytes;	   /* owned: records that each will hold */
	unsigned file_count;
	/* Each file begins with so many bytes that are no records.  The owner
	 * sets the header before it commits, and keeps it. */
	uint64_t header_bytes;
	const uint8_t *header;
	bool direct;	    /* the output bypasses the page cache */
	bool on_devices;    /* the files are block devices (outdevice.h) */
	bool sizes_lowered; /* files may hold more than they are to */
	/* Pages of the page cache are to lie on the NUMA node of the worker
	 * that has filled the slot, whichever worker writes the slot. */
	bool by_node;
	unsigned slot_count;
	/* The workers write what follows, with the lock held, and so the
	 * states of the slots. */
	pthread_mutex_t lock;
	struct write_queue queue; /* of direct output; the tags are slots */
	struct sink_slot slots[OUTPUT_SLOTS_MAX];
	struct first_failure failure; /* of any write */
};

/* The inputs of a sort, on which no output device may lie. */
struct output_inputs {
	const char *const *paths;
	unsigned count;
};

/*
 * Make the files, unnamed, and their room on the disk where that pays.
 * sizes_bytes[i] is what file i will hold of records, behind header_bytes.
 * direct is a wish: output->direct
 * tells what became of it.  With inputs the paths are those of block devices,
 * of which the output takes the first bytes; bytes behind it stay as they are.
 * Returns 0 or -errno with *failure filled; the output is still to be closed
 * then.
 */
int output_open(struct output *output, const char *const *paths,
		const uint64_t *sizes_bytes, unsigned file_count,
		uint64_t header_bytes, const struct output_inputs *inputs,
		bool direct, struct failure *failure);

/* Our part of one file that several processes write at once. */
struct output_part {
	const char *mark; /* as in outfile_open() */
	uint64_t begin_bytes, size_bytes;
	uint64_t whole_bytes; /* of the file: the same in all of them */
	/* Before the parts, written by the one that commits the file. */
	uint64_t header_bytes;
};

/* Do what output_open() does, for our part of the file: offsets count from its
 * beginning.  The part goes through the page cache, by write(2) alone: parts
 * share pages. */
int output_open_part(struct output *output, const char *path,
		     const struct output_part *part, struct failure *failure);

/* File i will hold sizes_bytes[i].  The output was opened by output_open().
 * Call before the first chunk, if the sizes were 0, since they were not known;
 * or before the finish, when no worker fills a chunk any more, if they were the
 * most that the files may hold.  0 or -errno with *failure filled. */
int output_set_sizes(struct output *output, const uint64_t *sizes_bytes,
		     struct failure *failure);

/* Our part begins elsewhere in the file than output_open_part() was told, and
 * is smaller.  The file keeps its size. */
void output_move_part(struct output *output, uint64_t begin_bytes,
		      uint64_t size_bytes);

/* Take the pages of a chunk from the NUMA node of the worker that fills it;
 * there are several.  It is not done where chunks are best filled in
 * order, since a disk moves its heads least then; nor for huge pages of the
 * file, which come from these nodes in turn.  Call before the first take;
 * output->by_node tells what became of it. */
void output_place_by_node(struct output *output, uint64_t nodes);

/* Slots over memory of slot_count * chunk_bytes, page aligned; chunk_bytes is a
 * multiple of the page.  Call before the first take. */
void output_set_slots(struct output *output, uint8_t *memory,
		      unsigned slot_count, size_t chunk_bytes);

/* Returns the most bytes that a chunk may have: whole pages of a file that has
 * huge ones, else what stays in a cache until it is written. */
size_t output_chunk_bytes_max(const struct output *output);

/* Return how many slots this many workers should have, and the most that they
 * have, whatever the output. */
unsigned output_slots_wanted(const struct output *output, unsigned workers);
unsigned output_slots_max(unsigned workers);

/* The operations of output->sink, which output_open.c alone sets. */
extern const struct sink_ops output_operations;

/* Finish the sink, and give the files their names; also, if not NULL, is one
 * more that gets its name with them or not at all.  Devices have taken all
 * before that.  0 or -errno with *failure filled. */
int output_commit(struct output *output, bool sync, struct outfile *also,
		  struct failure *failure);

/* Roll back a commit, because the run has failed elsewhere: take the names away
 * again, but from files that have replaced others. */
void output_roll_back(struct output *output);

/* The room that the files have on their disks so far. */
uint64_t output_room_bytes(const struct output *output);

/* Close.  What was not committed is gone, but for what devices have taken.
 * Safe on a zeroed struct. */
void output_close(struct output *output);

#endif /* OUTPUT_H */
