/*
 * scratch.c - room for what does not fit into memory, in files without names
 */
#include "io/scratch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/format.h"
#include "system/descriptors.h"
#include "system/ramdisk.h"

/* Room allocated at once: ext4 does it in a millisecond, while a disk writes as
 * much in 0.2 s.  Writes into allocated extents are 25 % faster. */
#define EXTENT_BYTES (256 * MIB)
/* FAT has no file of 4 GiB or more; in whole pages. */
#define FAT_FILE_BYTES (4 * GIB - PAGE_BYTES)
/* Names of directories in one message. */
#define NAMES_BYTES 4096
/* Length of the text about the room of one directory. */
#define ROOM_TEXT_BYTES 160
/* A full file system may still call some room free that it needs itself; no
 * file system needs as much as this. */
#define FREE_BYTES_MIN (4 * MIB)

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static bool is_no_room(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* --- room ----------------------------------------------------------------- */

/* Returns the bytes that the file's file system has left for this user;
 * UINT64_MAX: it does not tell (a tmpfs without a limit, ramfs).  Root gets the
 * blocks, too, that are reserved for it. */
static uint64_t free_bytes(int fd)
{
	struct statvfs fs;
	uint64_t blocks, bytes;

	if (fd < 0 || fstatvfs(fd, &fs) < 0 || fs.f_blocks == 0)
		return UINT64_MAX;
	blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
	return __builtin_mul_overflow(blocks, (uint64_t)fs.f_frsize, &bytes)
		       ? UINT64_MAX
		       : bytes;
}

/* Returns how many bytes a directory's file may still grow by. */
static uint64_t growth_bytes(const struct scratch_directory *directory)
{
	if (directory->bytes_max == UINT64_MAX)
		return UINT64_MAX;
	return less_or_none(directory->bytes_max, directory->end_bytes);
}

uint64_t scratch_room(const struct scratch *scratch, unsigned directory)
{
	const struct scratch_directory *in = &scratch->directories[directory];

	return MIN(free_bytes(in->fd), growth_bytes(in));
}

/* Adds up growth_bytes() for the file system whose first directory this is. */
static uint64_t growth_of_all(const struct scratch *scratch, unsigned first)
{
	uint64_t sum = 0;

	for (unsigned i = first; i < scratch->directory_count; i++)
		if (scratch->directories[i].first == first)
			sum = add_capped(
				sum, growth_bytes(&scratch->directories[i]));
	return sum;
}

/* Ask each file system for its room.  What is allocated and not yet taken is
 * room, too.  Returns the sum. */
static uint64_t look_at_room(struct scratch *scratch)
{
	struct scratch_directory *directories = scratch->directories;
	uint64_t sum = 0;

	for (unsigned i = 0; i < scratch->directory_count; i++) {
		struct scratch_directory *directory = &directories[i];
		struct scratch_directory *first =
			&directories[directory->first];

		if (first == directory)
			first->room_bytes = free_bytes(directory->fd);
		first->room_bytes = add_capped(first->room_bytes,
					       directory->allocated_bytes -
						       directory->end_bytes);
	}
	for (unsigned i = 0; i < scratch->directory_count; i++) {
		if (directories[i].first != i)
			continue;
		directories[i].room_bytes = MIN(directories[i].room_bytes,
						growth_of_all(scratch, i));
		sum = add_capped(sum, directories[i].room_bytes);
	}
	return sum;
}

static const char *describe_limit(const struct scratch_directory *directory,
				  char text[64])
{
	if (directory->bytes_max == FAT_FILE_BYTES)
		return "in files of 4 GiB, FAT's largest";
	if (directory->is_memory)
		return "of memory left";
	snprintf(text, 64, "in files of %s, by RLIMIT_FSIZE",
		 FORMAT_SIZE(directory->bytes_max));
	return text;
}

/* Adds up what stripes take on the file system whose first directory this is.
 */
static uint64_t held_by_all(const struct scratch *scratch, unsigned first)
{
	uint64_t sum = 0;

	for (unsigned i = first; i < scratch->directory_count; i++)
		if (scratch->directories[i].first == first)
			sum += scratch->directories[i].held_bytes;
	return sum;
}

/* Name also what we have written ourselves, and room that a file system does
 * not give, as btrfs does not: readers would wonder at the free bytes alone. */
static const char *describe_room(const struct scratch *scratch, unsigned number,
				 char text[ROOM_TEXT_BYTES])
{
	const struct scratch_directory *directory =
		&scratch->directories[number];
	uint64_t held = held_by_all(scratch, number);
	char limit[64];
	int length;

	if (directory->fd < 0)
		return "no room for a file";
	if (directory->first != number)
		return "the same file system";
	if (directory->room_bytes == UINT64_MAX)
		return "unknown room";
	length =
		snprintf(text, ROOM_TEXT_BYTES, "%s %s",
			 FORMAT_SIZE(directory->room_bytes),
			 directory->room_bytes == growth_of_all(scratch, number)
				 ? describe_limit(directory, limit)
				 : "free");
	if (directory->is_full && directory->room_bytes >= FREE_BYTES_MIN)
		length += snprintf(text + length,
				   ROOM_TEXT_BYTES - (size_t)length,
				   ", of which the file system gives none");
	if (held > 0)
		snprintf(text + length, ROOM_TEXT_BYTES - (size_t)length,
			 ", beside %s of this sort", FORMAT_SIZE(held));
	return text;
}

/*
 * Lists all directories with their room, for failure.what.  The failure
 * outlives the scratch, so the text belongs to the process.  Threads that fail
 * at once fail for one scratch, and so write the same text.
 */
static const char *name_all(struct scratch *scratch)
{
	static char names[NAMES_BYTES];
	size_t length = 0;

	look_at_room(scratch);
	for (unsigned i = 0; i < scratch->directory_count; i++) {
		char text[ROOM_TEXT_BYTES];

		length += (size_t)snprintf(
			names + length, sizeof(names) - length, "%s%s (%s)",
			i > 0 ? ", " : "", scratch->directories[i].path,
			describe_room(scratch, i, text));
		if (length >= sizeof(names))
			break;
	}
	return names;
}

int scratch_reserve(struct scratch *scratch, uint64_t bytes,
		    struct failure *failure)
{
	uint64_t room = look_at_room(scratch);

	if (scratch->expected_bytes == UINT64_MAX)
		scratch->expected_bytes = 0;
	scratch->expected_bytes = add_capped(scratch->expected_bytes, bytes);
	if (room >= scratch->expected_bytes)
		return 0;
	failure_set(failure, EXIT_FILE, name_all(scratch), 0,
		    "too little room for scratch files: %s are needed, %s are "
		    "missing",
		    FORMAT_SIZE(scratch->expected_bytes),
		    FORMAT_SIZE(scratch->expected_bytes - room));
	return -ENOSPC;
}

/* --- places --------------------------------------------------------------- */

/* True if a is the better of two for a stripe of this many bytes. */
static bool is_better(const struct scratch *scratch,
		      const struct scratch_directory *a,
		      const struct scratch_directory *b, uint64_t bytes)
{
	bool a_has_room = scratch->directories[a->first].room_bytes >= bytes;
	bool b_has_room = scratch->directories[b->first].room_bytes >= bytes;

	if (a_has_room != b_has_room)
		return a_has_room;
	if (a->in_flight_bytes != b->in_flight_bytes)
		return a->in_flight_bytes < b->in_flight_bytes;
	return a->written_bytes < b->written_bytes;
}

/* NULL: all are full. */
static struct scratch_directory *choose(struct scratch *scratch, uint64_t bytes)
{
	struct scratch_directory *best = NULL;

	for (unsigned i = 0; i < scratch->directory_count; i++) {
		struct scratch_directory *directory = &scratch->directories[i];

		if (!directory->is_full &&
		    (!best || is_better(scratch, directory, best, bytes)))
			best = directory;
	}
	return best;
}

/* Give what is allocated behind this place back to the file system. */
static void cut_off(struct scratch_directory *directory, uint64_t end_bytes)
{
	if (directory->can_allocate &&
	    ftruncate(directory->fd, (off_t)end_bytes) == 0)
		directory->allocated_bytes = end_bytes;
}

/* Allocate up to there.  0, or -errno; without fallocate(2) 0 at once.  Where
 * the room ends on the way, ext4 keeps what it has allocated until then. */
static int allocate(struct scratch_directory *directory, uint64_t end_bytes)
{
	int error = 0;

	if (!directory->can_allocate || end_bytes <= directory->allocated_bytes)
		return 0;
	do
		error = fallocate(
			directory->fd, 0, (off_t)directory->allocated_bytes,
			(off_t)(end_bytes - directory->allocated_bytes));
	while (error && errno == EINTR);
	error = error ? -errno : 0;
	if (is_no_room(-error)) {
		cut_off(directory, directory->allocated_bytes);
		return error;
	}
	if (error)
		directory->can_allocate = false;
	else
		directory->allocated_bytes = end_bytes;
	return 0;
}

/* Returns the expected bytes for which no directory has allocated room. */
static uint64_t unallocated_bytes(const struct scratch *scratch)
{
	uint64_t ahead = 0;

	for (unsigned i = 0; i < scratch->directory_count; i++)
		ahead += scratch->directories[i].allocated_bytes -
			 scratch->directories[i].end_bytes;
	return less_or_none(scratch->expected_bytes, ahead);
}

/* Allocate up to the end of the next extent; where even the rest of the room is
 * less, single stripes may still have room. */
static int allocate_ahead(const struct scratch *scratch,
			  struct scratch_directory *directory, uint64_t bytes)
{
	uint64_t end = directory->end_bytes + bytes;
	uint64_t extent =
		MIN(directory->extent_bytes, unallocated_bytes(scratch));
	int error;

	if (end > directory->bytes_max)
		return -EFBIG;
	if (end <= directory->allocated_bytes)
		return 0;
	error = allocate(directory,
			 MIN(MAX(end, directory->allocated_bytes + extent),
			     directory->bytes_max));
	if (error) {
		directory->extent_bytes = 0;
		error = allocate(directory, end);
	}
	return error;
}

static void count_taken(struct scratch *scratch,
			struct scratch_directory *directory, uint64_t bytes)
{
	struct scratch_directory *first =
		&scratch->directories[directory->first];

	directory->end_bytes += bytes;
	directory->allocated_bytes =
		MAX(directory->allocated_bytes, directory->end_bytes);
	directory->in_flight_bytes += bytes;
	if (first->room_bytes != UINT64_MAX)
		first->room_bytes = less_or_none(first->room_bytes, bytes);
	if (scratch->expected_bytes != UINT64_MAX)
		scratch->expected_bytes =
			less_or_none(scratch->expected_bytes, bytes);
	directory->held_bytes += bytes;
	scratch->held_bytes += bytes;
	scratch->peak_bytes = MAX(scratch->peak_bytes, scratch->held_bytes);
}

static int no_room(struct scratch *scratch, int error, struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, name_all(scratch), error,
			   "no room for scratch files");
}

int scratch_take(struct scratch *scratch, uint64_t bytes,
		 struct scratch_place *place, struct failure *failure)
{
	struct scratch_directory *directory;
	int error = -ENOSPC;

	bytes = ROUND_UP(bytes, PAGE_BYTES);
	pthread_mutex_lock(&scratch->lock);
	while ((directory = choose(scratch, bytes)) != NULL) {
		error = allocate_ahead(scratch, directory, bytes);
		if (!error)
			break;
		directory->is_full = true;
	}
	if (directory) {
		place->directory = (unsigned)(directory - scratch->directories);
		place->offset_bytes = directory->end_bytes;
		count_taken(scratch, directory, bytes);
	} else {
		error = no_room(scratch, -error, failure);
	}
	pthread_mutex_unlock(&scratch->lock);
	return error;
}

void scratch_written(struct scratch *scratch, const struct scratch_place *place,
		     uint64_t bytes)
{
	struct scratch_directory *directory =
		&scratch->directories[place->directory];

	pthread_mutex_lock(&scratch->lock);
	directory->in_flight_bytes -= ROUND_UP(bytes, PAGE_BYTES);
	directory->written_bytes += bytes;
	scratch->written_bytes += bytes;
	pthread_mutex_unlock(&scratch->lock);
}

bool scratch_gave_up(struct scratch *scratch, const struct scratch_place *place,
		     int error)
{
	assert(error > 0);
	if (!is_no_room(error))
		return false;
	pthread_mutex_lock(&scratch->lock);
	scratch->directories[place->directory].is_full = true;
	pthread_mutex_unlock(&scratch->lock);
	return true;
}

void scratch_release(struct scratch *scratch, const struct scratch_place *place,
		     uint64_t bytes)
{
	struct scratch_directory *directory =
		&scratch->directories[place->directory];
	struct scratch_directory *first =
		&scratch->directories[directory->first];

	bytes = ROUND_UP(bytes, PAGE_BYTES);
	if (fallocate(directory->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)place->offset_bytes, (off_t)bytes))
		return;
	pthread_mutex_lock(&scratch->lock);
	directory->held_bytes -= bytes;
	scratch->held_bytes -= bytes;
	first->room_bytes = add_capped(first->room_bytes, bytes);
	pthread_mutex_unlock(&scratch->lock);
}

void scratch_trim(struct scratch *scratch)
{
	pthread_mutex_lock(&scratch->lock);
	for (unsigned i = 0; i < scratch->directory_count; i++)
		cut_off(&scratch->directories[i],
			scratch->directories[i].end_bytes);
	pthread_mutex_unlock(&scratch->lock);
}

int scratch_fd(const struct scratch *scratch, unsigned directory)
{
	const struct scratch_directory *in = &scratch->directories[directory];

	return in->direct_fd >= 0 ? in->direct_fd : in->fd;
}

/* --- its life ------------------------------------------------------------- */

/* Returns how large a file may become; UINT64_MAX: nothing limits it. */
static uint64_t find_bytes_max(bool is_fat)
{
	uint64_t bytes_max = is_fat ? FAT_FILE_BYTES : UINT64_MAX;
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		bytes_max =
			MIN(bytes_max, ROUND_DOWN(limit.rlim_cur, PAGE_BYTES));
	return bytes_max;
}

/* Find out what the file system can do with the file.  0 or -errno. */
static int look_at_file(struct scratch_directory *directory)
{
	struct stat status;
	struct statfs fs;
	bool is_fat;

	if (fstat(directory->fd, &status) || fstatfs(directory->fd, &fs))
		return -errno;
	is_fat = fs.f_type == MSDOS_SUPER_MAGIC;
	directory->device = status.st_dev;
	directory->is_memory = ramdisk_is(&fs);
	/* Room that is allocated ahead would take memory at once on a ramdisk,
	 * and be written as zeros on FAT. */
	directory->can_allocate = !directory->is_memory && !is_fat;
	directory->bytes_max = find_bytes_max(is_fat);
	directory->direct_fd =
		descriptors_reopen(directory->fd, O_RDWR | O_DIRECT);
	return 0;
}

/* A hidden file that has its name for a moment only, a random one, which no
 * other file has.  The descriptor or -errno. */
static int make_hidden(int folder_fd)
{
	char name[64];
	uint64_t random;
	sigset_t all, old;
	int fd, error = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), ".blinksort-scratch-%016" PRIx64, random);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	fd = openat(folder_fd, name,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || unlinkat(folder_fd, name, 0) < 0)
		error = -errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return error;
}

/* Make a file in the folder that never gets a name or, where the file system
 * has no O_TMPFILE, loses it at once: scratch.h says what may be left of it.
 * Its descriptor, to read and write, or -errno. */
static int make_file(const char *folder_path)
{
	int folder_fd = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (folder_fd < 0)
		return -errno;
	/* O_EXCL keeps it from ever getting a name. */
	fd = openat(folder_fd, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC,
		    0600);
	/* These errors mean that there is no O_TMPFILE: the file system's
	 * answer, an old kernel's, and that of an old kernel's C library. */
	if (fd < 0)
		fd = errno == EOPNOTSUPP || errno == EISDIR ||
				     errno == EINVAL || errno == ENOENT
			     ? make_hidden(folder_fd)
			     : -errno;
	close(folder_fd);
	return fd;
}

static int open_directory(struct scratch *scratch, const char *path,
			  struct failure *failure)
{
	unsigned number = scratch->directory_count++;
	struct scratch_directory *directory = &scratch->directories[number];
	int fd = make_file(path), error;

	*directory = (struct scratch_directory){
		.path = path,
		.fd = MAX(fd, -1),
		.device = (dev_t)-1,
		.direct_fd = -1,
		.first = number,
		.is_full = true,
		.extent_bytes = EXTENT_BYTES,
	};
	error = fd < 0 ? fd : look_at_file(directory);
	if (error)
		return failure_set(failure, EXIT_FILE, path, -error,
				   "cannot make a scratch file in it");
	scratch->memory_count += directory->is_memory;
	directory->is_full = false;
	directory->first = 0;
	while (scratch->directories[directory->first].device !=
	       directory->device)
		directory->first++;
	return 0;
}

int scratch_open(struct scratch *scratch, const char *const *paths,
		 unsigned count, struct failure *failure)
{
	unsigned open_count = 0;
	int error = 0;

	assert(count > 0);
	*scratch = (struct scratch){ .expected_bytes = UINT64_MAX };
	if (count > SCRATCH_DIRECTORIES_MAX)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "more than %d scratch directories",
				   SCRATCH_DIRECTORIES_MAX);
	pthread_mutex_init(&scratch->lock, NULL);
	for (unsigned i = 0; i < count; i++) {
		error = open_directory(scratch, paths[i], failure);
		open_count += error == 0;
		if (error && !is_no_room(-error))
			break;
	}
	/* The other folders take over from those that were full already. */
	if (is_no_room(-error))
		error = open_count > 0 ? 0 : no_room(scratch, -error, failure);
	if (error)
		scratch_close(scratch);
	else
		look_at_room(scratch);
	return error;
}

void scratch_bound_memory(struct scratch *scratch, uint64_t bytes)
{
	uint64_t part =
		ROUND_DOWN(bytes / MAX(1, scratch->memory_count), PAGE_BYTES);

	for (unsigned i = 0; i < scratch->directory_count; i++) {
		struct scratch_directory *directory = &scratch->directories[i];

		if (directory->is_memory)
			directory->bytes_max = MIN(directory->bytes_max, part);
	}
	look_at_room(scratch);
}

void scratch_close(struct scratch *scratch)
{
	if (scratch->directory_count == 0)
		return;
	for (unsigned i = 0; i < scratch->directory_count; i++) {
		if (scratch->directories[i].direct_fd >= 0)
			close(scratch->directories[i].direct_fd);
		if (scratch->directories[i].fd >= 0)
			close(scratch->directories[i].fd);
	}
	pthread_mutex_destroy(&scratch->lock);
	scratch->directory_count = 0;
}
