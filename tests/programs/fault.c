/*
 * fault.c - a library for LD_PRELOAD that makes one library call go wrong
 *
 * Calls are counted from the beginning of main, over all threads.  Environment:
 *
 *   FAULT_CALL    the function, as named below
 *   FAULT_NTH     which call of it, from 1; 0: all of them
 *   FAULT_DO      what happens then:
 *     fail          it fails with FAULT_ERRNO (a name: ENOSPC)   [default]
 *     short         it transfers about half of what was asked
 *     truncate      FAULT_PATH is cut to FAULT_SIZE bytes, then it goes on
 *     signal        signal number FAULT_SIGNAL is raised, then it goes on
 *   FAULT_COUNT_FILE  its first 8 bytes become the number of calls there were;
 *                 mapped, so that it is true however the process ends
 *
 * liburing makes its system calls itself, so its functions are wrapped; and
 * "uring_read" and "uring_write" count what is handed to the kernel: one that
 * fails gets a bad descriptor, a short one half its length.  "tmpfile" is
 * openat() with O_TMPFILE, which some file systems refuse; "openat" any other.
 * "linkat_trial" is linkat() to ".", which is always there; "linkat" any other.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum fault_action { FAULT_FAIL, FAULT_SHORT, FAULT_TRUNCATE, FAULT_SIGNAL };

static struct {
	const char *call; /* NULL: nothing goes wrong */
	uint64_t nth;
	enum fault_action action;
	int error;
	const char *path;
	off_t size_bytes;
	int signal;
} fault;

static _Atomic uint64_t fault_unseen_count;
static _Atomic uint64_t *fault_count = &fault_unseen_count;
static atomic_bool fault_in_main;

/* --- what goes wrong, and when -------------------------------------------- */

static void fault_truncate(void)
{
	/* By system call: truncate() itself might be wrapped one day. */
	if (syscall(SYS_truncate, fault.path, fault.size_bytes) != 0)
		abort();
}

/* True: the call must fail, or be short, now. */
static bool fault_hits(const char *name)
{
	uint64_t number;
	int error = errno;

	if (!fault.call || !fault_in_main || strcmp(name, fault.call) != 0)
		return false;
	number = atomic_fetch_add(fault_count, 1) + 1;
	if (fault.nth != 0 && number != fault.nth)
		return false;
	if (fault.action == FAULT_TRUNCATE)
		fault_truncate();
	else if (fault.action == FAULT_SIGNAL)
		raise(fault.signal);
	errno = error;
	return fault.action == FAULT_FAIL || fault.action == FAULT_SHORT;
}

static bool fault_fails(const char *name)
{
	bool hits = fault_hits(name);

	if (hits && fault.action == FAULT_FAIL)
		errno = fault.error;
	return hits && fault.action == FAULT_FAIL;
}

/* About half, never nothing, and whole disk sectors where there are some. */
static size_t fault_half(size_t bytes)
{
	size_t half = bytes / 2;

	return half >= 4096 ? half / 4096 * 4096 : half + bytes % 2;
}

/* False: it fails.  Else *bytes is what may be transferred. */
static bool fault_transfers(const char *name, size_t *bytes)
{
	if (!fault_hits(name))
		return true;
	if (fault.action == FAULT_FAIL) {
		errno = fault.error;
		return false;
	}
	*bytes = fault_half(*bytes);
	return true;
}

/* --- set up --------------------------------------------------------------- */

static const char *setting(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

static int error_from_name(const char *name)
{
	for (int error = 1; error < 200; error++) {
		const char *known = strerrorname_np(error);

		if (known && strcmp(name, known) == 0)
			return error;
	}
	abort();
}

static enum fault_action action_from_name(const char *name)
{
	static const char *const names[] = { "fail", "short", "truncate",
					     "signal" };

	for (unsigned a = 0; a < sizeof(names) / sizeof(names[0]); a++) {
		if (strcmp(name, names[a]) == 0)
			return (enum fault_action)a;
	}
	abort();
}

static void map_count(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *map;

	if (fd < 0 || ftruncate(fd, sizeof(uint64_t)) != 0)
		abort();
	map = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	fault_count = map;
	atomic_store(fault_count, 0);
}

__attribute__((constructor)) static void fault_init(void)
{
	const char *count_path = getenv("FAULT_COUNT_FILE");

	if (count_path)
		map_count(count_path);
	fault.nth = strtoull(setting("FAULT_NTH", "0"), NULL, 10);
	fault.action = action_from_name(setting("FAULT_DO", "fail"));
	fault.error = error_from_name(setting("FAULT_ERRNO", "EIO"));
	fault.path = setting("FAULT_PATH", "");
	fault.size_bytes = strtoll(setting("FAULT_SIZE", "0"), NULL, 10);
	fault.signal = atoi(setting("FAULT_SIGNAL", "9"));
	fault.call = getenv("FAULT_CALL");
}

typedef int main_fn(int argc, char **argv, char **environment);

static main_fn *real_main;

static int counted_main(int argc, char **argv, char **environment)
{
	fault_in_main = true;
	return real_main(argc, argv, environment);
}

int __libc_start_main(main_fn *program, int argc, char **argv,
		      void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end);

int __libc_start_main(main_fn *program, int argc, char **argv,
		      void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	__typeof__(__libc_start_main) *real =
		(__typeof__(real))dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = program;
	return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* --- the calls ------------------------------------------------------------ */

/* The function that would have been called, looked up once. */
#define REAL(name)                                                             \
	static __typeof__(name) *real;                                         \
	if (!real)                                                             \
	real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A call that just fails, with the value that says so. */
#define WRAP(type, name, parameters, arguments, failure)                       \
	type name parameters                                                   \
	{                                                                      \
		REAL(name);                                                    \
		if (fault_fails(#name))                                        \
			return failure;                                        \
		return real arguments;                                         \
	}

/* A call whose third parameter is a number of bytes. */
#define WRAP_TRANSFER(name, parameters, arguments)                             \
	ssize_t name parameters                                                \
	{                                                                      \
		REAL(name);                                                    \
		if (!fault_transfers(#name, &bytes))                           \
			return -1;                                             \
		return real arguments;                                         \
	}

WRAP_TRANSFER(read, (int fd, void *buffer, size_t bytes), (fd, buffer, bytes))
WRAP_TRANSFER(write, (int fd, const void *buffer, size_t bytes),
	      (fd, buffer, bytes))
WRAP_TRANSFER(pread, (int fd, void *buffer, size_t bytes, off_t offset),
	      (fd, buffer, bytes, offset))
WRAP_TRANSFER(pwrite, (int fd, const void *buffer, size_t bytes, off_t offset),
	      (fd, buffer, bytes, offset))

WRAP(ssize_t, readv, (int fd, const struct iovec *parts, int count),
     (fd, parts, count), -1)
WRAP(ssize_t, writev, (int fd, const struct iovec *parts, int count),
     (fd, parts, count), -1)

WRAP(int, fstat, (int fd, struct stat *status), (fd, status), -1)
WRAP(int, fstatat, (int fd, const char *path, struct stat *status, int flags),
     (fd, path, status, flags), -1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1)
WRAP(int, fallocate, (int fd, int mode, off_t offset, off_t size),
     (fd, mode, offset, size), -1)
WRAP(int, posix_fallocate, (int fd, off_t offset, off_t size),
     (fd, offset, size), fault.error)
WRAP(int, posix_fadvise, (int fd, off_t offset, off_t size, int advice),
     (fd, offset, size, advice), fault.error)
WRAP(int, sync_file_range, (int fd, off_t offset, off_t size, unsigned flags),
     (fd, offset, size, flags), -1)
WRAP(int, poll, (struct pollfd * fds, nfds_t count, int wait_ms),
     (fds, count, wait_ms), -1)
WRAP(int, flock, (int fd, int operation), (fd, operation), -1)
WRAP(int, fsync, (int fd), (fd), -1)
WRAP(int, fdatasync, (int fd), (fd), -1)
WRAP(int, close, (int fd), (fd), (real(fd), errno = fault.error, -1))
WRAP(int, link, (const char *from, const char *to), (from, to), -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(int, renameat, (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to), -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
WRAP(ssize_t, readlinkat,
     (int folder, const char *path, char *target, size_t bytes),
     (folder, path, target, bytes), -1)
WRAP(ssize_t, getxattr,
     (const char *path, const char *name, void *value, size_t bytes),
     (path, name, value, bytes), -1)
WRAP(char *, realpath, (const char *path, char *resolved), (path, resolved),
     NULL)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
WRAP(int, fflush, (FILE * stream), (stream), EOF)
WRAP(int, fclose, (FILE * stream), (stream),
     (real(stream), errno = fault.error, EOF))

WRAP(void *, mmap,
     (void *address, size_t size, int access, int flags, int fd, off_t offset),
     (address, size, access, flags, fd, offset), MAP_FAILED)
WRAP(int, mprotect, (void *address, size_t size, int access),
     (address, size, access), -1)
WRAP(int, madvise, (void *address, size_t size, int advice),
     (address, size, advice), -1)
WRAP(int, mincore, (void *address, size_t size, unsigned char *pages),
     (address, size, pages), -1)
WRAP(int, posix_memalign, (void **memory, size_t align, size_t size),
     (memory, align, size), fault.error)
WRAP(void *, aligned_alloc, (size_t align, size_t size), (align, size), NULL)

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes,
      void *(*run)(void *), void *argument),
     (thread, attributes, run, argument), fault.error)
WRAP(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *cpus),
     (pid, size, cpus), -1)
WRAP(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *cpus),
     (pid, size, cpus), -1)
WRAP(int, pthread_setaffinity_np,
     (pthread_t thread, size_t size, const cpu_set_t *cpus),
     (thread, size, cpus), fault.error)

int open(const char *path, int flags, ...)
{
	REAL(open);
	va_list rest;
	mode_t mode;

	va_start(rest, flags);
	mode = va_arg(rest, mode_t);
	va_end(rest);
	return fault_fails("open") ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	REAL(openat);
	va_list rest;
	mode_t mode;

	va_start(rest, flags);
	mode = va_arg(rest, mode_t);
	va_end(rest);
	return fault_fails((flags & O_TMPFILE) == O_TMPFILE ? "tmpfile"
							    : "openat")
		       ? -1
		       : real(folder, path, flags, mode);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to,
	   int flags)
{
	REAL(linkat);

	return fault_fails(strcmp(to, ".") == 0 ? "linkat_trial" : "linkat")
		       ? -1
		       : real(from_folder, from, to_folder, to, flags);
}

int ioctl(int fd, unsigned long request, ...)
{
	REAL(ioctl);
	va_list rest;
	void *argument;

	va_start(rest, request);
	argument = va_arg(rest, void *);
	va_end(rest);
	return fault_fails("ioctl") ? -1 : real(fd, request, argument);
}

/* Only FUTEX_WAIT may fail: callers do not expect that of other operations. */
static const char *syscall_name(long number, long futex_operation)
{
	switch (number) {
	case SYS_futex:
		return (futex_operation & FUTEX_CMD_MASK) == FUTEX_WAIT
			       ? "futex_wait"
			       : "futex";
	case SYS_io_uring_setup:
		return "io_uring_setup";
	case SYS_io_uring_enter:
		return "io_uring_enter";
	case SYS_io_uring_register:
		return "io_uring_register";
	default:
		return "syscall";
	}
}

long syscall(long number, ...)
{
	REAL(syscall);
	long argument[6];
	va_list rest;

	va_start(rest, number);
	for (int a = 0; a < 6; a++)
		argument[a] = va_arg(rest, long);
	va_end(rest);
	if (number != SYS_truncate &&
	    fault_fails(syscall_name(number, argument[1])))
		return -1;
	return real(number, argument[0], argument[1], argument[2], argument[3],
		    argument[4], argument[5]);
}

/* glibc's own names of the allocator: dlsym() may itself allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
	return fault_fails("malloc") ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fault_fails("calloc") ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	return fault_fails("realloc") ? NULL : __libc_realloc(memory, size);
}

/* --- liburing ------------------------------------------------------------- */

WRAP(int, io_uring_queue_init,
     (unsigned entries, struct io_uring *ring, unsigned flags),
     (entries, ring, flags), -fault.error)
WRAP(int, io_uring_queue_init_params,
     (unsigned entries, struct io_uring *ring, struct io_uring_params *params),
     (entries, ring, params), -fault.error)
WRAP(int, io_uring_register_buffers,
     (struct io_uring * ring, const struct iovec *buffers, unsigned count),
     (ring, buffers, count), -fault.error)
WRAP(int, io_uring_register_files,
     (struct io_uring * ring, const int *files, unsigned count),
     (ring, files, count), -fault.error)

static const char *entry_name(unsigned opcode)
{
	switch (opcode) {
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		return "uring_read";
	case IORING_OP_WRITE:
	case IORING_OP_WRITE_FIXED:
		return "uring_write";
	default:
		return "uring_other";
	}
}

/* Those about to be submitted. */
static void fault_entries(struct io_uring *ring)
{
	struct io_uring_sq *queue = &ring->sq;

	for (unsigned i = queue->sqe_head; i != queue->sqe_tail; i++) {
		struct io_uring_sqe *entry =
			&queue->sqes[i & (queue->ring_entries - 1)];
		const char *name = entry_name(entry->opcode);
		size_t bytes = entry->len;

		if (!fault_transfers(name, &bytes))
			entry->fd = -1;
		entry->len = (unsigned)bytes;
	}
}

int io_uring_submit(struct io_uring *ring)
{
	REAL(io_uring_submit);
	if (fault_fails("io_uring_submit"))
		return -fault.error;
	fault_entries(ring);
	return real(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
	REAL(io_uring_submit_and_wait);
	if (fault_fails("io_uring_submit_and_wait"))
		return -fault.error;
	fault_entries(ring);
	return real(ring, count);
}
