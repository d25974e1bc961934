/* Scratch files leave nothing behind, share the stripes out by the bytes in
 * flight, and hand over when one is full.
 *
 * What a file system says and refuses is pretended: the program's calls go to
 * the __wrap_ functions below. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/failure.h"
#include "io/scratch.h"
#include "descriptors.h"
#include "skip.h"

#define PIECE_BYTES (64 * KIB)
#define DIRECTORIES 3
#define THREADS 4

static const char *const paths[DIRECTORIES] = { "one", "two", "three" };

static char folder[64];
static int root_fd;

/* --- what is pretended ---------------------------------------------------- */

static struct {
	int tmpfile_error;	  /* of openat() with O_TMPFILE ... */
	unsigned tmpfile_errors;  /* ... in so many folders; 0: in all */
	int signal;		  /* that comes right before unlinkat() */
	int allocate_error;	  /* of fallocate() ... */
	off_t allocate_bytes_max; /* ... of more than this ... */
	off_t allocated_bytes;	  /* ... which keeps so much, as ext4 does */
	bool no_holes;
	long magic;	/* of the file system */
	bool has_sizes; /* each directory is a file system of its own ... */
	uint64_t free_bytes[DIRECTORIES]; /* ... with this room */
	int fds[DIRECTORIES];		  /* in the order of the directories */
	unsigned fd_count;
	/* What was asked for. */
	unsigned allocate_calls;
} pretend;

int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_fstatvfs(int fd, struct statvfs *fs);
int __wrap_fstatvfs(int fd, struct statvfs *fs);
int __real_openat(int folder_fd, const char *path, int flags, ...);
int __wrap_openat(int folder_fd, const char *path, int flags, ...);
int __real_unlinkat(int folder_fd, const char *path, int flags);
int __wrap_unlinkat(int folder_fd, const char *path, int flags);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	bool fails = mode == 0 ? pretend.allocate_error &&
					 length > pretend.allocate_bytes_max
			       : pretend.no_holes;

	if (mode == 0)
		pretend.allocate_calls++;
	if (!fails)
		return __real_fallocate(fd, mode, offset, length);
	if (mode == 0 && pretend.allocated_bytes > 0)
		(void)__real_fallocate(fd, mode, offset,
				       pretend.allocated_bytes);
	errno = mode == 0 ? pretend.allocate_error : EOPNOTSUPP;
	return -1;
}

int __wrap_fstat(int fd, struct stat *status)
{
	int ret = __real_fstat(fd, status);

	if (pretend.has_sizes) {
		status->st_dev = pretend.fd_count;
		pretend.fds[pretend.fd_count++] = fd;
	}
	return ret;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int ret = __real_fstatfs(fd, fs);

	if (pretend.magic)
		fs->f_type = pretend.magic;
	return ret;
}

/* A file system that keeps one of its free pages for root. */
int __wrap_fstatvfs(int fd, struct statvfs *fs)
{
	bool is_root = geteuid() == 0;
	uint64_t pages;
	unsigned i = 0;

	if (!pretend.has_sizes)
		return __real_fstatvfs(fd, fs);
	while (pretend.fds[i] != fd)
		i++;
	pages = pretend.free_bytes[i] / PAGE_BYTES;
	*fs = (struct statvfs){ .f_bsize = 1, .f_frsize = PAGE_BYTES };
	if (pretend.free_bytes[i] == UINT64_MAX)
		return 0;
	fs->f_blocks = 1 << 30;
	fs->f_bfree = pages + !is_root;
	fs->f_bavail = pages - is_root;
	return 0;
}

int __wrap_openat(int folder_fd, const char *path, int flags, ...)
{
	va_list rest;
	mode_t mode;

	va_start(rest, flags);
	mode = va_arg(rest, mode_t);
	va_end(rest);
	if ((flags & O_TMPFILE) != O_TMPFILE || !pretend.tmpfile_error)
		return __real_openat(folder_fd, path, flags, mode);
	errno = pretend.tmpfile_error;
	if (pretend.tmpfile_errors > 0 && --pretend.tmpfile_errors == 0)
		pretend.tmpfile_error = 0;
	return -1;
}

int __wrap_unlinkat(int folder_fd, const char *path, int flags)
{
	if (pretend.signal)
		raise(pretend.signal);
	return __real_unlinkat(folder_fd, path, flags);
}

/* --- a fresh folder for each test ----------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memset(&pretend, 0, sizeof(pretend));
	/* /tmp may be a tmpfs. */
	pretend.magic = EXT4_SUPER_MAGIC;
	snprintf(folder, sizeof(folder), "/tmp/test_scratch.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		assert_int_equal(mkdir(paths[i], 0755), 0);
	return 0;
}

static int setup_hidden(void **state)
{
	setup(state);
	pretend.tmpfile_error = EOPNOTSUPP;
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	assert_int_equal(fchdir(root_fd), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* The folders hold nothing: a folder that does can't be removed. */
static void assert_nothing_is_left(void)
{
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		assert_int_equal(rmdir(paths[i]), 0);
		assert_int_equal(mkdir(paths[i], 0755), 0);
	}
}

static void open_ok(struct scratch *scratch)
{
	struct failure failure = { 0 };

	if (scratch_open(scratch, paths, DIRECTORIES, &failure))
		fail_msg("%s: %s", failure.what, failure.why);
}

static void reserve_ok(struct scratch *scratch, uint64_t bytes)
{
	struct failure failure = { 0 };

	if (scratch_reserve(scratch, bytes, &failure))
		fail_msg("%s: %s", failure.what, failure.why);
}

static struct scratch_place take_ok(struct scratch *scratch, uint64_t bytes)
{
	struct scratch_place place = { 0 };
	struct failure failure = { 0 };

	if (scratch_take(scratch, bytes, &place, &failure))
		fail_msg("%s: %s", failure.what, failure.why);
	assert_int_equal(place.offset_bytes % PAGE_BYTES, 0);
	return place;
}

/* Size of a directory's file: stripes and what is allocated. */
static uint64_t file_bytes(const struct scratch *scratch, unsigned directory)
{
	struct stat status;

	assert_int_equal(
		__real_fstat(scratch->directories[directory].fd, &status), 0);
	return (uint64_t)status.st_size;
}

static void skip_unless_allocates(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);
	bool can =
		fd >= 0 && __real_fallocate(fd, 0, 0, PAGE_BYTES) == 0 &&
		__real_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 0, PAGE_BYTES) == 0;

	if (fd >= 0)
		close(fd);
	if (!can)
		skip_because("the file system of /tmp has no fallocate()");
}

/* --- scratch_open --------------------------------------------------------- */

static bool is_direct(int fd)
{
	return fcntl(fd, F_GETFL) & O_DIRECT;
}

static void scratch_open__leaves_nothing(void **state)
{
	int direct_fd = open("file", O_CREAT | O_RDWR | O_DIRECT, 0600);
	bool can_direct = direct_fd >= 0;
	unsigned before = open_descriptors();
	struct scratch scratch;
	struct stat status;

	(void)state;
	open_ok(&scratch);
	assert_nothing_is_left();
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		int fd = scratch.directories[i].fd;

		assert_int_equal(__real_fstat(fd, &status), 0);
		assert_int_equal(status.st_mode, S_IFREG | 0600);
		assert_int_equal(status.st_nlink, 0);
		assert_false(is_direct(fd));
		assert_int_equal(scratch.directories[i].direct_fd >= 0,
				 can_direct);
		assert_int_equal(is_direct(scratch_fd(&scratch, i)),
				 can_direct);
	}
	scratch_close(&scratch);
	scratch_close(&scratch);
	assert_int_equal(open_descriptors(), before);
	if (can_direct)
		close(direct_fd);
}

static void open_fails(const char *bad, int error, const char *why)
{
	const char *const with_bad[] = { "one", bad, "two" };
	unsigned before = open_descriptors();
	struct failure failure = { 0 };
	struct scratch scratch;

	assert_int_equal(scratch_open(&scratch, with_bad, 3, &failure), error);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, bad);
	assert_string_equal(failure.why, why);
	assert_int_equal(open_descriptors(), before);
	scratch_close(&scratch);
}

static void scratch_open__path_that_cannot_be_used(void **state)
{
	int fd = open("file", O_WRONLY | O_CREAT, 0600);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	open_fails("nowhere", -ENOENT,
		   "cannot make a scratch file in it: No such file or "
		   "directory");
	open_fails("", -ENOENT,
		   "cannot make a scratch file in it: No such file or "
		   "directory");
	open_fails("file", -ENOTDIR,
		   "cannot make a scratch file in it: Not a directory");
}

static void scratch_open__not_permitted(void **state)
{
	(void)state;
	assert_int_equal(chmod(".", 0755), 0);
	assert_int_equal(chmod("one", 0777), 0);
	if (geteuid() == 0 && seteuid(65534))
		skip_because("root cannot become another user");
	open_fails("/", -EACCES,
		   "cannot make a scratch file in it: Permission denied");
	assert_int_equal(seteuid(getuid()), 0);
}

static void scratch_open__too_many(void **state)
{
	const char *many[SCRATCH_DIRECTORIES_MAX + 1];
	struct failure failure = { 0 };
	struct scratch scratch;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(many); i++)
		many[i] = "one";
	assert_int_equal(
		scratch_open(&scratch, many, ARRAY_LEN(many), &failure),
		-EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_int_equal(
		scratch_open(&scratch, many, SCRATCH_DIRECTORIES_MAX, &failure),
		0);
	scratch_close(&scratch);
}

static void scratch_open__other_errors_of_tmpfile(void **state)
{
	static const int missing[] = { EISDIR, EINVAL, ENOENT };
	struct scratch scratch;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(missing); i++) {
		pretend.tmpfile_error = missing[i];
		open_ok(&scratch);
		scratch_close(&scratch);
	}
	pretend.tmpfile_error = EROFS;
	open_fails("one", -EROFS,
		   "cannot make a scratch file in it: Read-only file system");
}

static void scratch_open__memory(void **state)
{
	static const long magics[] = { TMPFS_MAGIC, RAMFS_MAGIC };
	struct scratch scratch;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(magics); i++) {
		pretend.magic = magics[i];
		open_ok(&scratch);
		assert_true(scratch.directories[1].is_memory);
		/* None of it is allocated ahead. */
		take_ok(&scratch, PIECE_BYTES);
		assert_int_equal(pretend.allocate_calls, 0);
		scratch_close(&scratch);
	}
	pretend.magic = NFS_SUPER_MAGIC;
	open_ok(&scratch);
	assert_false(scratch.directories[1].is_memory);
	scratch_close(&scratch);
}

/* There, what is allocated ahead would be written as zeros. */
static void scratch_open__fat(void **state)
{
	struct scratch scratch;

	(void)state;
	pretend.magic = MSDOS_SUPER_MAGIC;
	open_ok(&scratch);
	reserve_ok(&scratch, PIECE_BYTES);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(pretend.allocate_calls, 0);
	scratch_close(&scratch);
}

/* A child ends by this signal, which comes in scratch_open() before the name of
 * a hidden file is removed, or while the files are open. */
static void end_by_signal(int number, bool within_open)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct failure failure = { 0 };
		struct scratch scratch;

		if (within_open)
			pretend.signal = number;
		scratch_open(&scratch, paths, DIRECTORIES, &failure);
		raise(number);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), number);
	assert_nothing_is_left();
}

static void scratch_open__signals_leave_nothing(void **state)
{
	(void)state;
	end_by_signal(SIGKILL, false);
	end_by_signal(SIGTERM, false);
	end_by_signal(SIGTERM, true);
	end_by_signal(SIGINT, true);
}

/* --- scratch_reserve ------------------------------------------------------ */

static void pretend_sizes(uint64_t one, uint64_t two, uint64_t three)
{
	pretend.has_sizes = true;
	pretend.free_bytes[0] = one;
	pretend.free_bytes[1] = two;
	pretend.free_bytes[2] = three;
	pretend.fd_count = 0;
}

static void scratch_reserve__sum_of_file_systems(void **state)
{
	struct failure failure = { 0 };
	struct scratch scratch;

	(void)state;
	pretend_sizes(MIB + 4096, 2 * MIB + 4096, 3 * MIB + 4096);
	open_ok(&scratch);
	reserve_ok(&scratch, MIB);
	/* It adds to what was reserved before. */
	reserve_ok(&scratch, 5 * MIB);
	assert_int_equal(scratch_reserve(&scratch, MIB, &failure), -ENOSPC);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(
		failure.what,
		"one (1.0 MiB free), two (2.0 MiB free), three (3.0 MiB free)");
	assert_string_equal(failure.why,
			    "too little room for scratch files: 7.0 MiB are "
			    "needed, 1012.0 KiB are missing");
	scratch_close(&scratch);
	/* It can be printed now. */
	assert_non_null(strstr(failure.what, "three"));
}

/* FAT's files are smaller than 4 GiB, however much room there is. */
static void scratch_reserve__fat(void **state)
{
	const uint64_t file_bytes_max = 4 * GIB - PAGE_BYTES;
	struct failure failure = { 0 };
	struct scratch scratch;

	(void)state;
	pretend.magic = MSDOS_SUPER_MAGIC;
	pretend_sizes(GIB + PAGE_BYTES, 100 * GIB, UINT64_MAX);
	open_ok(&scratch);
	assert_int_equal(scratch_room(&scratch, 1), file_bytes_max);
	assert_int_equal(scratch_room(&scratch, 2), file_bytes_max);
	reserve_ok(&scratch, 9 * GIB - 2 * PAGE_BYTES);
	assert_int_equal(scratch_reserve(&scratch, 2 * PAGE_BYTES, &failure),
			 -ENOSPC);
	assert_string_equal(failure.what,
			    "one (1.0 GiB free), "
			    "two (4.0 GiB in files of 4 GiB, FAT's largest), "
			    "three (4.0 GiB in files of 4 GiB, FAT's largest)");
	scratch_close(&scratch);
}

/* A process may be allowed only smaller files, here of 1 MiB and a part of a
 * page.  Of two limits the smaller one counts. */
static void scratch_reserve__file_size_limit(void **state)
{
	static const long magics[] = { EXT4_SUPER_MAGIC, MSDOS_SUPER_MAGIC };
	struct failure failure = { 0 };
	struct rlimit before, limit;
	struct scratch scratch;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = MIB + PAGE_BYTES - 1;
	for (unsigned i = 0; i < ARRAY_LEN(magics); i++) {
		pretend.magic = magics[i];
		pretend_sizes(GIB, 512 * KIB, UINT64_MAX);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		open_ok(&scratch);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(scratch_room(&scratch, 0), MIB);
		assert_int_equal(scratch_room(&scratch, 2), MIB);
		reserve_ok(&scratch, 2 * MIB + 512 * KIB);
		assert_int_equal(
			scratch_reserve(&scratch, PAGE_BYTES, &failure),
			-ENOSPC);
		assert_string_equal(
			failure.what,
			"one (1.0 MiB in files of 1.0 MiB, by RLIMIT_FSIZE), "
			"two (512.0 KiB free), "
			"three (1.0 MiB in files of 1.0 MiB, by RLIMIT_FSIZE)");
		scratch_close(&scratch);
	}
}

/* What is allocated is not free any more, but it is there. */
static void scratch_reserve__room_that_is_allocated(void **state)
{
	struct scratch scratch;

	(void)state;
	skip_unless_allocates();
	pretend_sizes(2 * MIB, 2 * MIB, 2 * MIB);
	open_ok(&scratch);
	reserve_ok(&scratch, 4 * MIB);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(file_bytes(&scratch, 0), 4 * MIB);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		pretend.free_bytes[i] = PAGE_BYTES;
	reserve_ok(&scratch, 2 * PAGE_BYTES);
	scratch_close(&scratch);
}

/* The folders of a test are on one file system: half as much again as it has is
 * too much, though it has that in each of them. */
static void scratch_reserve__one_file_system_counts_once(void **state)
{
	struct failure failure = { 0 };
	struct scratch scratch;
	struct statvfs fs;

	(void)state;
	assert_int_equal(statvfs("one", &fs), 0);
	open_ok(&scratch);
	assert_int_equal(scratch_reserve(&scratch,
					 fs.f_bfree * fs.f_frsize / 2 * 3,
					 &failure),
			 -ENOSPC);
	assert_non_null(strstr(
		failure.what,
		"two (the same file system), three (the same file system)"));
	assert_int_equal(file_bytes(&scratch, 0), 0);
	scratch_close(&scratch);
}

static void scratch_reserve__file_system_of_unknown_size(void **state)
{
	struct failure failure = { 0 };
	struct scratch scratch;

	(void)state;
	pretend_sizes(MIB, UINT64_MAX, MIB);
	open_ok(&scratch);
	assert_int_equal(scratch_reserve(&scratch, UINT64_MAX / 2, &failure),
			 0);
	scratch_close(&scratch);
}

/* Names that do not fit into a line are cut. */
static void scratch_reserve__long_names(void **state)
{
	const char *many[SCRATCH_DIRECTORIES_MAX];
	struct failure failure = { 0 };
	struct scratch scratch;
	char name[256];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	assert_int_equal(mkdir(name, 0755), 0);
	for (unsigned i = 0; i < ARRAY_LEN(many); i++)
		many[i] = name;
	assert_int_equal(
		scratch_open(&scratch, many, ARRAY_LEN(many), &failure), 0);
	assert_int_equal(scratch_reserve(&scratch, UINT64_MAX / 2, &failure),
			 -ENOSPC);
	assert_true(strlen(failure.what) > 4000);
	scratch_close(&scratch);
}

/* --- scratch_take --------------------------------------------------------- */

/* A byte that each page of a stripe holds. */
static uint8_t mark(unsigned directory, uint64_t offset_bytes)
{
	return (uint8_t)(1 + directory * 50 + offset_bytes / PIECE_BYTES % 50);
}

/* Take, write, check a stripe, count.  False: it failed. */
static bool write_stripe(struct scratch *scratch, struct scratch_place *place)
{
	struct failure failure = { 0 };
	uint8_t *bytes = NULL;
	bool ok;

	*place = (struct scratch_place){ 0 };
	if (posix_memalign((void **)&bytes, PAGE_BYTES, PIECE_BYTES))
		return false;
	ok = scratch_take(scratch, PIECE_BYTES, place, &failure) == 0;
	if (ok) {
		memset(bytes, mark(place->directory, place->offset_bytes),
		       PIECE_BYTES);
		ok = pwrite(scratch_fd(scratch, place->directory), bytes,
			    PIECE_BYTES,
			    (off_t)place->offset_bytes) == (ssize_t)PIECE_BYTES;
		scratch_written(scratch, place, PIECE_BYTES);
	}
	free(bytes);
	return ok;
}

static bool is_stripe(const struct scratch *scratch,
		      const struct scratch_place *place)
{
	static uint8_t bytes[PIECE_BYTES], wanted[PIECE_BYTES];

	memset(wanted, mark(place->directory, place->offset_bytes),
	       PIECE_BYTES);
	return pread(scratch->directories[place->directory].fd, bytes,
		     PIECE_BYTES,
		     (off_t)place->offset_bytes) == (ssize_t)PIECE_BYTES &&
	       memcmp(bytes, wanted, PIECE_BYTES) == 0;
}

static bool is_same(const struct scratch_place *a,
		    const struct scratch_place *b)
{
	return a->directory == b->directory &&
	       a->offset_bytes == b->offset_bytes;
}

#define THREAD_PIECES 50

struct writer {
	struct scratch *scratch;
	struct scratch_place places[THREAD_PIECES];
	unsigned done;
};

static void *write_stripes(void *argument)
{
	struct writer *writer = argument;

	while (writer->done < THREAD_PIECES &&
	       write_stripe(writer->scratch, &writer->places[writer->done]))
		writer->done++;
	return NULL;
}

/* Two stripes at one place would overwrite each other. */
static void scratch_take__threads_share_no_place(void **state)
{
	static struct writer writers[THREADS];
	pthread_t threads[THREADS];
	struct scratch scratch;

	(void)state;
	open_ok(&scratch);
	reserve_ok(&scratch, THREADS * THREAD_PIECES * PIECE_BYTES);
	for (unsigned i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ .scratch = &scratch };
		assert_int_equal(pthread_create(&threads[i], NULL,
						write_stripes, &writers[i]),
				 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(writers[i].done, THREAD_PIECES);
		for (unsigned j = 0; j < THREAD_PIECES; j++) {
			struct scratch_place *place = &writers[i].places[j];

			assert_true(is_stripe(&scratch, place));
			for (unsigned k = 0; k < i * THREAD_PIECES + j; k++)
				assert_false(is_same(
					place,
					&writers[k / THREAD_PIECES]
						 .places[k % THREAD_PIECES]));
		}
	}
	assert_int_equal(scratch.written_bytes,
			 THREADS * THREAD_PIECES * PIECE_BYTES);
	scratch_close(&scratch);
}

/* Pieces of odd sizes begin at whole pages. */
static void scratch_take__whole_pages(void **state)
{
	struct scratch scratch;
	uint64_t ends[DIRECTORIES] = { 0 };

	(void)state;
	open_ok(&scratch);
	for (unsigned i = 0; i < 30; i++) {
		uint64_t bytes = 1 + 777 * i;
		struct scratch_place place = take_ok(&scratch, bytes);

		assert_int_equal(place.offset_bytes, ends[place.directory]);
		ends[place.directory] += ROUND_UP(bytes, PAGE_BYTES);
		scratch_written(&scratch, &place, bytes);
	}
	assert_int_equal(scratch.peak_bytes, ends[0] + ends[1] + ends[2]);
	scratch_close(&scratch);
}

/* Where nothing is written, nothing more goes; all else takes turns. */
static void scratch_take__fewest_bytes_in_flight(void **state)
{
	unsigned taken[DIRECTORIES] = { 0 };
	struct scratch_place places[DIRECTORIES];
	struct scratch scratch;

	(void)state;
	open_ok(&scratch);
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		places[i] = take_ok(&scratch, PIECE_BYTES);
		assert_int_equal(places[i].directory, i);
	}
	scratch_written(&scratch, &places[0], PIECE_BYTES);
	scratch_written(&scratch, &places[2], PIECE_BYTES);
	for (unsigned i = 0; i < 10; i++) {
		struct scratch_place place = take_ok(&scratch, PIECE_BYTES);

		taken[place.directory]++;
		scratch_written(&scratch, &place, PIECE_BYTES);
	}
	assert_int_equal(taken[0], 5);
	assert_int_equal(taken[1], 0);
	assert_int_equal(taken[2], 5);
	/* Two small ones are in flight less than a large one is. */
	for (unsigned i = 0; i < 4; i++)
		assert_int_not_equal(
			take_ok(&scratch, PIECE_BYTES / 2).directory, 1);
	scratch_close(&scratch);
}

/* --- room that is allocated ahead ----------------------------------------- */

/* No more than what is expected, in all files together. */
static void scratch_take__allocates_what_is_reserved(void **state)
{
	struct scratch scratch;
	uint64_t sum = 0;

	(void)state;
	skip_unless_allocates();
	open_ok(&scratch);
	reserve_ok(&scratch, 10 * PIECE_BYTES);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(file_bytes(&scratch, 0), 10 * PIECE_BYTES);
	assert_int_equal(pretend.allocate_calls, 1);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(file_bytes(&scratch, 1), PIECE_BYTES);
	for (unsigned i = 0; i < 28; i++)
		take_ok(&scratch, PIECE_BYTES);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		sum += file_bytes(&scratch, i);
	assert_int_equal(sum, 30 * PIECE_BYTES);
	scratch_close(&scratch);
}

static void scratch_take__allocates_extents(void **state)
{
	struct scratch scratch;

	(void)state;
	skip_unless_allocates();
	open_ok(&scratch);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(file_bytes(&scratch, 0), 256 * MIB);
	assert_int_equal(file_bytes(&scratch, 1), 0);
	scratch_close(&scratch);
}

static void scratch_take__file_system_cannot_allocate(void **state)
{
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	pretend.allocate_error = EOPNOTSUPP;
	open_ok(&scratch);
	reserve_ok(&scratch, 30 * PIECE_BYTES);
	for (unsigned i = 0; i < 30; i++)
		assert_true(write_stripe(&scratch, &place));
	/* It is asked once for each file. */
	assert_int_equal(pretend.allocate_calls, DIRECTORIES);
	scratch_close(&scratch);
}

/* Then stripes are allocated one by one. */
static void scratch_take__no_room_for_an_extent(void **state)
{
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	skip_unless_allocates();
	pretend.allocate_error = ENOSPC;
	pretend.allocate_bytes_max = PIECE_BYTES;
	pretend.allocated_bytes = 100 * PIECE_BYTES;
	open_ok(&scratch);
	for (unsigned i = 0; i < 30; i++)
		assert_true(write_stripe(&scratch, &place));
	assert_int_equal(file_bytes(&scratch, 0), 10 * PIECE_BYTES);
	scratch_close(&scratch);
}

/* The stripes stay, and further ones are taken behind them. */
static void scratch_trim__gives_back_what_is_ahead(void **state)
{
	struct scratch_place places[2];
	struct scratch scratch;

	(void)state;
	skip_unless_allocates();
	open_ok(&scratch);
	assert_true(write_stripe(&scratch, &places[0]));
	scratch_trim(&scratch);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		assert_int_equal(file_bytes(&scratch, i),
				 i == 0 ? PIECE_BYTES : 0);
	assert_true(is_stripe(&scratch, &places[0]));
	for (unsigned i = 0; i < DIRECTORIES; i++)
		assert_true(write_stripe(&scratch, &places[1]));
	assert_int_equal(file_bytes(&scratch, 0), 256 * MIB + PIECE_BYTES);
	scratch_close(&scratch);
}

/* --- directories that are full -------------------------------------------- */

/* A file system without room, or without inodes, takes no file at all. */
static void scratch_open__others_take_over(void **state)
{
	static const int errors[] = { ENOSPC, EDQUOT };

	(void)state;
	pretend_sizes(MIB, MIB, MIB);
	for (unsigned i = 0; i < 4; i++) {
		unsigned before = open_descriptors();
		struct scratch_place place;
		struct failure failure = { 0 };
		struct scratch scratch;

		pretend.fd_count = 0;
		pretend.tmpfile_error = errors[i % 2];
		pretend.tmpfile_errors = 1 + i / 2;
		open_ok(&scratch);
		assert_int_equal(scratch.directories[0].fd, -1);
		assert_int_equal(scratch_room(&scratch, 0), 0);
		/* Two have so much room, one has not. */
		assert_int_equal(scratch_reserve(&scratch, 2 * MIB, &failure),
				 i / 2 ? -ENOSPC : 0);
		if (i / 2)
			assert_non_null(strstr(failure.what,
					       "one (no room for a file), two "
					       "(no room for a file), three "
					       "(1.0 MiB free"));
		for (unsigned n = 0; n < 10; n++) {
			assert_true(write_stripe(&scratch, &place));
			assert_true(place.directory > i / 2);
			assert_true(is_stripe(&scratch, &place));
		}
		scratch_trim(&scratch);
		scratch_close(&scratch);
		assert_int_equal(open_descriptors(), before);
	}
}

static void scratch_open__all_are_full(void **state)
{
	static const int errors[] = { ENOSPC, EDQUOT };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
		unsigned before = open_descriptors();
		struct failure failure = { 0 };
		struct scratch scratch;
		char why[128];

		snprintf(why, sizeof(why), "no room for scratch files: %s",
			 strerror(errors[i]));
		pretend.tmpfile_error = errors[i];
		assert_int_equal(
			scratch_open(&scratch, paths, DIRECTORIES, &failure),
			-errors[i]);
		assert_int_equal(failure.status, EXIT_FILE);
		assert_string_equal(failure.what,
				    "one (no room for a file), two (no room "
				    "for a file), three (no room for a file)");
		assert_string_equal(failure.why, why);
		scratch_close(&scratch);
		assert_int_equal(open_descriptors(), before);
	}
	/* Another reason counts, whatever comes before it. */
	pretend.tmpfile_errors = 1;
	open_fails("nowhere", -ENOENT,
		   "cannot make a scratch file in it: No such file or "
		   "directory");
}

/* What is free is told beside what the sort has there, and what the file system
 * keeps to itself. */
static void scratch_take__tells_what_is_there(void **state)
{
	struct failure failure = { 0 };
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	pretend_sizes(PAGE_BYTES, 47 * MIB, 0);
	pretend.allocate_error = ENOSPC;
	pretend.allocate_bytes_max = PIECE_BYTES;
	open_ok(&scratch);
	for (unsigned i = 0; i < 8; i++)
		(void)take_ok(&scratch, PIECE_BYTES);
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		place.directory = i;
		assert_true(scratch_gave_up(&scratch, &place, ENOSPC));
	}
	assert_int_equal(scratch_take(&scratch, PIECE_BYTES, &place, &failure),
			 -ENOSPC);
	assert_string_equal(
		failure.what,
		"one (4.0 KiB free), two (47.0 MiB free, of which the file "
		"system gives none, beside 512.0 KiB of this sort), three "
		"(0 B free)");
	scratch_close(&scratch);
}

static void assert_all_full(struct scratch *scratch, int error, const char *why)
{
	struct failure failure = { 0 };
	struct scratch_place place;

	assert_int_equal(scratch_take(scratch, PIECE_BYTES, &place, &failure),
			 -error);
	assert_int_equal(failure.status, EXIT_FILE);
	for (unsigned i = 0; i < DIRECTORIES; i++)
		assert_non_null(strstr(failure.what, paths[i]));
	assert_string_equal(failure.why, why);
}

static void scratch_take__no_room_for_a_stripe(void **state)
{
	static const int errors[] = { ENOSPC, EDQUOT, EFBIG };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
		struct scratch scratch;
		char why[128];

		snprintf(why, sizeof(why), "no room for scratch files: %s",
			 strerror(errors[i]));
		pretend.allocate_error = errors[i];
		open_ok(&scratch);
		assert_all_full(&scratch, errors[i], why);
		scratch_close(&scratch);
	}
}

/* No more than may be written is allocated ahead. */
static void scratch_take__below_file_size_limit(void **state)
{
	struct rlimit before, limit;
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	skip_unless_allocates();
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 2 * PIECE_BYTES;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	open_ok(&scratch);
	reserve_ok(&scratch, 2 * DIRECTORIES * PIECE_BYTES);
	for (unsigned i = 0; i < 2 * DIRECTORIES; i++)
		assert_true(write_stripe(&scratch, &place));
	assert_int_equal(pretend.allocate_calls, DIRECTORIES);
	assert_all_full(&scratch, EFBIG,
			"no room for scratch files: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	scratch_close(&scratch);
}

/* The kernel's own answer to a file beyond the limit. */
static void scratch_take__file_size_limit(void **state)
{
	struct rlimit before, limit;
	struct scratch scratch;
	struct scratch_place place;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 2 * PIECE_BYTES;
	open_ok(&scratch);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (unsigned i = 0; i < 2 * DIRECTORIES; i++)
		assert_true(write_stripe(&scratch, &place));
	assert_all_full(&scratch, EFBIG,
			"no room for scratch files: File too large");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	scratch_close(&scratch);
}

/* A full file on FAT leaves its pieces to the others. */
static void scratch_take__fat_file_size(void **state)
{
	struct failure failure = { 0 };
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	pretend.magic = MSDOS_SUPER_MAGIC;
	pretend_sizes(9 * GIB, 9 * GIB, 9 * GIB);
	open_ok(&scratch);
	for (unsigned i = 0; i < DIRECTORIES; i++) {
		place = take_ok(&scratch, 4 * GIB - PAGE_BYTES);
		assert_int_equal(place.directory, i);
		assert_int_equal(place.offset_bytes, 0);
	}
	assert_int_equal(scratch_take(&scratch, PAGE_BYTES, &place, &failure),
			 -EFBIG);
	assert_string_equal(failure.why,
			    "no room for scratch files: File too large");
	scratch_close(&scratch);
}

/* The noted room says which one is, where nothing is allocated. */
static void scratch_take__room_is_known(void **state)
{
	unsigned taken[DIRECTORIES] = { 0 };
	struct scratch scratch;

	(void)state;
	pretend_sizes(MIB, 2 * PIECE_BYTES + PAGE_BYTES, PAGE_BYTES);
	pretend.allocate_error = EOPNOTSUPP;
	open_ok(&scratch);
	reserve_ok(&scratch, 10 * PIECE_BYTES);
	for (unsigned i = 0; i < 10; i++)
		taken[take_ok(&scratch, PIECE_BYTES).directory]++;
	assert_int_equal(taken[0], 8);
	assert_int_equal(taken[1], 2);
	/* Of what is released, there is room again. */
	if (__real_fallocate(scratch.directories[1].fd,
			     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			     PAGE_BYTES) == 0) {
		struct scratch_place place = { .directory = 1 };

		for (unsigned i = 0; i < 8; i++)
			take_ok(&scratch, PIECE_BYTES);
		scratch_release(&scratch, &place, PIECE_BYTES);
		assert_int_equal(take_ok(&scratch, PIECE_BYTES).directory, 1);
	}
	scratch_close(&scratch);
}

static void scratch_gave_up__others_take_over(void **state)
{
	struct scratch_place first, place;
	struct scratch scratch;

	(void)state;
	open_ok(&scratch);
	assert_true(write_stripe(&scratch, &first));
	for (unsigned i = 1; i < DIRECTORIES; i++)
		assert_true(write_stripe(&scratch, &place));
	place = take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(place.directory, first.directory);
	assert_false(scratch_gave_up(&scratch, &place, EIO));
	assert_true(scratch_gave_up(&scratch, &place, ENOSPC));
	for (unsigned i = 0; i < 10; i++)
		assert_int_not_equal(take_ok(&scratch, PIECE_BYTES).directory,
				     first.directory);
	assert_true(is_stripe(&scratch, &first));
	place.directory = 1;
	assert_true(scratch_gave_up(&scratch, &place, EDQUOT));
	assert_int_equal(take_ok(&scratch, PIECE_BYTES).directory, 2);
	place.directory = 2;
	assert_true(scratch_gave_up(&scratch, &place, EFBIG));
	assert_all_full(&scratch, ENOSPC,
			"no room for scratch files: No space left on device");
	scratch_close(&scratch);
}

/* --- scratch_release ------------------------------------------------------ */

static uint64_t blocks(const struct scratch *scratch, unsigned directory)
{
	struct stat status;

	assert_int_equal(
		__real_fstat(scratch->directories[directory].fd, &status), 0);
	return (uint64_t)status.st_blocks;
}

static void scratch_release__makes_a_hole(void **state)
{
	struct scratch_place places[9];
	struct scratch scratch;
	uint64_t before;

	(void)state;
	skip_unless_allocates();
	open_ok(&scratch);
	reserve_ok(&scratch, 9 * PIECE_BYTES);
	for (unsigned i = 0; i < ARRAY_LEN(places); i++)
		assert_true(write_stripe(&scratch, &places[i]));
	assert_int_equal(places[3].directory, 0);
	before = blocks(&scratch, 0);
	scratch_release(&scratch, &places[3], PIECE_BYTES - 5);
	assert_int_equal(before - blocks(&scratch, 0), PIECE_BYTES / 512);
	assert_int_equal(file_bytes(&scratch, 0), 9 * PIECE_BYTES);
	for (unsigned i = 0; i < ARRAY_LEN(places); i++)
		assert_int_equal(is_stripe(&scratch, &places[i]), i != 3);
	assert_int_equal(scratch.held_bytes, 8 * PIECE_BYTES);
	take_ok(&scratch, PIECE_BYTES);
	assert_int_equal(scratch.peak_bytes, 9 * PIECE_BYTES);
	scratch_close(&scratch);
}

static void scratch_release__no_holes(void **state)
{
	struct scratch_place place;
	struct scratch scratch;

	(void)state;
	pretend.no_holes = true;
	open_ok(&scratch);
	assert_true(write_stripe(&scratch, &place));
	scratch_release(&scratch, &place, PIECE_BYTES);
	assert_true(is_stripe(&scratch, &place));
	assert_int_equal(scratch.held_bytes, PIECE_BYTES);
	scratch_close(&scratch);
}

#define UNNAMED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define HIDDEN(test)                                                           \
	cmocka_unit_test_setup_teardown(test, setup_hidden, teardown)
#define BOTH(test) UNNAMED(test), HIDDEN(test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(scratch_open__leaves_nothing),
		BOTH(scratch_open__path_that_cannot_be_used),
		BOTH(scratch_open__not_permitted),
		UNNAMED(scratch_open__too_many),
		UNNAMED(scratch_open__other_errors_of_tmpfile),
		UNNAMED(scratch_open__memory),
		UNNAMED(scratch_open__fat),
		BOTH(scratch_open__signals_leave_nothing),
		UNNAMED(scratch_reserve__sum_of_file_systems),
		UNNAMED(scratch_reserve__fat),
		UNNAMED(scratch_reserve__file_size_limit),
		UNNAMED(scratch_reserve__room_that_is_allocated),
		UNNAMED(scratch_reserve__one_file_system_counts_once),
		UNNAMED(scratch_reserve__file_system_of_unknown_size),
		UNNAMED(scratch_reserve__long_names),
		BOTH(scratch_take__threads_share_no_place),
		UNNAMED(scratch_take__whole_pages),
		UNNAMED(scratch_take__fewest_bytes_in_flight),
		UNNAMED(scratch_take__allocates_what_is_reserved),
		UNNAMED(scratch_take__allocates_extents),
		UNNAMED(scratch_take__file_system_cannot_allocate),
		UNNAMED(scratch_take__no_room_for_an_extent),
		UNNAMED(scratch_trim__gives_back_what_is_ahead),
		UNNAMED(scratch_open__others_take_over),
		UNNAMED(scratch_open__all_are_full),
		UNNAMED(scratch_take__tells_what_is_there),
		UNNAMED(scratch_take__no_room_for_a_stripe),
		UNNAMED(scratch_take__below_file_size_limit),
		UNNAMED(scratch_take__file_size_limit),
		UNNAMED(scratch_take__fat_file_size),
		UNNAMED(scratch_take__room_is_known),
		UNNAMED(scratch_gave_up__others_take_over),
		UNNAMED(scratch_release__makes_a_hole),
		UNNAMED(scratch_release__no_holes),
	};

	root_fd = open("/", O_RDONLY | O_DIRECTORY);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
