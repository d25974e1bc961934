/*
 * output.h - the sorted bytes on their way into one or several files
 *
 * The members of the team fill staging slots and hand them over; writes to one
 * file take turns in the kernel (its inode lock), so a member that hands over a
 * slot and finds the file idle writes it, and goes on writing while slots are
 * ready; who finds it busy goes back to filling.  So the one file is always
 * being written, nobody waits for it as long as a slot is free, and the slot
 * that is written is still in a cache.
 *
 * A slot holds chunk_bytes at a multiple of chunk_bytes in the file (the last
 * holds the rest), whatever the size of a record: a huge page that is written
 * whole needs not be cleared first.
 *
 * On tmpfs a chunk is filled where it lies in the file, on huge pages, and
 * there is nothing to write (hugefile.h).  Where those cannot be, making small
 * pages costs more than filling them, and a second writer pays: a member that
 * would wait stores a ready slot through the mapping meanwhile.  Direct output
 * is written by io_uring, several slots at a time.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/failure.h"
#include "system/hugefile.h"
#include "io/outfile.h"

#define OUTPUT_FILES_MAX 256
#define OUTPUT_SLOTS_MAX 512
#define OUTPUT_CHUNK_BYTES_MAX HUGE_PAGE_BYTES

enum output_slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_WRITING };

struct output_slot {
	uint8_t *data; /* chunk_bytes, page aligned */
	enum output_slot_state state;
	/* Set by who fills it. */
	unsigned file;
	uint64_t offset_bytes;
	size_t length_bytes;
};

struct output_file {
	struct outfile outfile;
	uint64_t size_bytes;   /* when it will be complete; of our part */
	uint64_t begin_bytes;  /* of our part, in the file */
	int write_fd;	       /* O_DIRECT, or the outfile's own */
	bool busy;	       /* a member is in write(2) */
	bool map_refused;      /* stores through the mapping do not work here */
	struct hugefile pages; /* of a file on tmpfs */
};

struct output {
	struct output_file *files; /* owned */
	unsigned file_count;
	bool direct; /* the page cache is passed by */
	size_t chunk_bytes;
	struct io_uring *ring; /* of direct output, or NULL */
	bool ring_refused;     /* the kernel took no more of it */
	unsigned in_flight;
	unsigned slot_count;
	struct output_slot slots[OUTPUT_SLOTS_MAX];
	pthread_mutex_t lock; /* of all that follows and the states above */
	bool failed;
	struct failure failure; /* the first */
};

/*
 * Make the files, unnamed, and their room on the disk where that pays.
 * sizes_bytes[i] is what file i will hold.  direct is a wish: output->direct
 * tells what became of it.  Returns 0 or -errno with *failure filled.
 */
int output_open(struct output *output, const char *const *paths,
		const uint64_t *sizes_bytes, unsigned file_count, bool direct,
		struct failure *failure);

/* Of one file that several processes write at once. */
struct output_part {
	const char *mark; /* as of outfile_open_shared() */
	uint64_t begin_bytes, size_bytes;
	uint64_t whole_bytes; /* of the file: the same in all of them */
};

/* As output_open(), for our part of the file: offsets count from its beginning.
 * It goes through the page cache, by write(2) alone: parts share pages. */
int output_open_part(struct output *output, const char *path,
		     const struct output_part *part, struct failure *failure);

/* Slots over memory of slot_count * chunk_bytes, page aligned; chunk_bytes is a
 * multiple of the page.  Call before the first take. */
void output_set_slots(struct output *output, uint8_t *memory,
		      unsigned slot_count, size_t chunk_bytes);

/* How large chunks may be: whole pages of a file that has huge ones, else what
 * stays in a cache until it is written. */
size_t output_chunk_bytes_max(const struct output *output);

/* How many slots this team should have, and at most, whatever the output. */
unsigned output_slots_wanted(const struct output *output, unsigned members);
unsigned output_slots_max(unsigned members);

/* Where this chunk lies in its file, to be filled there and forgotten; NULL:
 * take a slot for it. */
uint8_t *output_place(struct output *output, unsigned file,
		      uint64_t offset_bytes, size_t length_bytes);

/* A slot to fill; waits for one, writing others' meanwhile.  NULL: the output
 * has failed. */
struct output_slot *output_take(struct output *output);

/* The slot is filled: file, offset_bytes and length_bytes say where it goes. */
void output_put(struct output *output, struct output_slot *slot);

/* Write what is ready; for a member that has nothing left to fill.  When all
 * members have returned from it, all is written or on its way. */
void output_help(struct output *output);

/* After the team has ended: wait until all is written.  0 or -errno with
 * *failure filled. */
int output_finish(struct output *output, struct failure *failure);

/* Finish, and give the files their names; also, if not NULL, is one more that
 * gets its name with them or not at all.  0 or -errno with *failure filled. */
int output_commit(struct output *output, bool sync, struct outfile *also,
		  struct failure *failure);

/* After a commit, when the whole has failed elsewhere: take the names away
 * again, but from files that have replaced others. */
void output_withdraw(struct output *output);

/* Close; what was not committed is gone.  Safe on a zeroed struct. */
void output_close(struct output *output);

#endif /* OUTPUT_H */
