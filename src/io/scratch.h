/*
 * scratch.h - room for what does not fit into memory: one file without a name
 * in each of several directories, to which stripes are appended
 *
 * A stripe is what is written at once, in one directory.
 *
 * A file is made by O_TMPFILE, and nothing is left of it however the process
 * ends.  Where a file system has none, a hidden file of a random name is made
 * and loses its name at once.  In between the calling thread holds signals
 * back; so only SIGKILL in that moment, or a signal that another thread of the
 * program gets, can leave an empty file.
 *
 * A stripe goes to the directory with the fewest bytes in flight, so a slow
 * device gets fewer of them.  A directory that has no room left takes no more
 * stripes, and the others take over; what it holds can still be read.
 *
 * On FAT no file has 4 GiB: more room there takes several files, in the same
 * directory or in others.  Room that is given back there, while the file is
 * open, stays with the file; and what is written goes through the page cache,
 * although O_DIRECT is taken, since a file that grows has no other way.
 *
 * Nor may a file grow beyond what RLIMIT_FSIZE is when it is opened.  If that
 * is lowered later, the program must ignore SIGXFSZ, so that the kernel answers
 * EFBIG instead, which counts as no room.
 *
 * Threads: scratch_open(), scratch_reserve() and scratch_close() belong to the
 * thread that opened it, while no other thread uses it; all else may be called
 * by any thread at any time.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct failure;

#define SCRATCH_DIRECTORIES_MAX 64

struct scratch_directory {
	const char *path; /* borrowed */
	bool is_memory;	  /* it is a tmpfs: what it holds takes memory */
	int direct_fd;	  /* its file, with O_DIRECT; below 0: it takes none */
	int fd; /* its file without it, for what direct reads and writes do not
		   do; -1: none could be made */
	/* Private, as is what follows; written with the lock held. */
	dev_t device;
	bool is_full; /* it takes no more stripes */
	bool can_allocate;
	uint64_t bytes_max;	  /* of a file here; UINT64_MAX: any */
	uint64_t extent_bytes;	  /* how far ahead room is allocated */
	uint64_t end_bytes;	  /* of the file's last stripe */
	uint64_t allocated_bytes; /* of the file; >= end_bytes */
	uint64_t in_flight_bytes, written_bytes;
	uint64_t held_bytes; /* of stripes not released; whole pages */
	/* Room that is believed to be free for stripes; UINT64_MAX: unknown.
	 * Only the first directory on a file system has it. */
	uint64_t room_bytes;
	unsigned first; /* number of that first directory */
};

struct scratch {
	struct scratch_directory directories[SCRATCH_DIRECTORIES_MAX];
	unsigned directory_count;
	unsigned memory_count; /* directories whose files are memory */
	/* Private, written with the lock held; but to be read when no stripe is
	 * under way. */
	pthread_mutex_t lock;
	uint64_t written_bytes; /* of all stripes */
	uint64_t held_bytes;	/* of stripes not released; whole pages */
	uint64_t peak_bytes;	/* the most that were held */
	/* bytes of stripes yet to be taken; UINT64_MAX: unknown */
	uint64_t expected_bytes;
};

struct scratch_place {
	unsigned directory;
	uint64_t offset_bytes; /* a multiple of PAGE_BYTES */
};

/*
 * Make a file in each of `count` directories, at least one.  The paths are
 * borrowed until scratch_close().  A directory that has no room for a file is
 * full from the beginning, and has no descriptor: the others take over, if
 * there is one.  0, or -errno with *failure filled and nothing left open: a
 * path that cannot be used for scratch files is named; EXIT_USAGE for more than
 * SCRATCH_DIRECTORIES_MAX.
 */
int scratch_open(struct scratch *scratch, const char *const *paths,
		 unsigned count, struct failure *failure);

/* Files that are memory get no more than this together.  Call it before any
 * stripe is taken. */
void scratch_bound_memory(struct scratch *scratch, uint64_t bytes);

/*
 * Reserve room for stripes of this many bytes in all, each counted in whole
 * pages, which will be taken from now on.  0; or -ENOSPC with *failure filled
 * (EXIT_FILE): the file systems have less room together, and the failure names
 * each directory with its room, and what is missing.  Directories on one file
 * system share its room.  Nothing is written.  Without this call stripes are
 * taken while there is room.
 */
int scratch_reserve(struct scratch *scratch, uint64_t bytes,
		    struct failure *failure);

/*
 * Take a place for a stripe, which the caller then writes there by
 * scratch_fd(), in whole pages.  Its bytes are in flight until
 * scratch_written() is called.  Where the file system can allocate room ahead
 * of the writes, it is allocated.  0; -errno with *failure filled: no directory
 * takes more, and all of them are named.
 */
int scratch_take(struct scratch *scratch, uint64_t bytes,
		 struct scratch_place *place, struct failure *failure);

/* A stripe that was taken has been written. */
void scratch_written(struct scratch *scratch, const struct scratch_place *place,
		     uint64_t bytes);

/*
 * The write of a stripe has failed, with this errno value (above 0).  True: the
 * directory has no room (ENOSPC, EDQUOT, EFBIG) and takes no more stripes; the
 * caller releases this one, and may take another place and write there.  False:
 * any other error.
 */
bool scratch_gave_up(struct scratch *scratch, const struct scratch_place *place,
		     int error);

/* A stripe is not needed any more, or its write has failed: give its room back
 * to the file system, by a hole in the file.  Where that is not possible,
 * nothing happens. */
void scratch_release(struct scratch *scratch, const struct scratch_place *place,
		     uint64_t bytes);

/* Give back what is allocated ahead of the stripes, which something else is to
 * have.  Further stripes may be taken nevertheless. */
void scratch_trim(struct scratch *scratch);

/* The file of a directory, to write stripes and to read them: with O_DIRECT if
 * the directory takes it.  The caller does not close it. */
int scratch_fd(const struct scratch *scratch, unsigned directory);

/* The room that the directory's file system has, for scratch files and all
 * else, but at most what the directory's file may yet grow by; UINT64_MAX: it
 * does not tell. */
uint64_t scratch_room(const struct scratch *scratch, unsigned directory);

/* Close the files, which frees their room.  No write or read is under way.
 * Safe on a zeroed struct. */
void scratch_close(struct scratch *scratch);

#endif /* SCRATCH_H */
