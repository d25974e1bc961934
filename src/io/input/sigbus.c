/*
 * sigbus.c - the handler of SIGBUS, and the list of mapped files that it looks
 * in
 */
#include "io/input/sigbus.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failure.h"
#include "base/log.h"
#include "io/output/outfile.h"

/* One mapping.  Entries are used again but never freed: the handler may be
 * walking the list in another thread. */
struct watch {
	struct watch *next;
	_Atomic uintptr_t begin; /* 0: entry is free */
	size_t bytes;
	int fd;
	uint64_t offset_bytes; /* in the file */
	/* The lines are made beforehand: a handler may not format. */
	char *shrank_line;
	char *io_error_line;
};

static struct watch *_Atomic watches;
/* Threads that watch or forget hold this lock; the handler takes no lock. */
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction older_action;

static const struct watch *watch_find(uintptr_t address)
{
	for (struct watch *watch = atomic_load(&watches); watch;
	     watch = watch->next) {
		uintptr_t begin = atomic_load(&watch->begin);

		if (begin && address >= begin && address - begin < watch->bytes)
			return watch;
	}
	return NULL;
}

/* True if the file still has the page. */
static bool page_is_in_file(const struct watch *watch, uintptr_t address)
{
	struct stat status;

	/* The size of a block device is 0 here, but it does not shrink. */
	return fstat(watch->fd, &status) == 0 &&
	       (!S_ISREG(status.st_mode) ||
		watch->offset_bytes + (address - atomic_load(&watch->begin)) <
			(uint64_t)status.st_size);
}

_Noreturn static void end_process(const struct watch *watch, uintptr_t address)
{
	static atomic_flag ending = ATOMIC_FLAG_INIT;
	const char *line = page_is_in_file(watch, address)
				   ? watch->io_error_line
				   : watch->shrank_line;

	/* Several threads may fault at once: one speaks. */
	if (atomic_flag_test_and_set(&ending))
		for (;;)
			pause();
	while (write(STDERR_FILENO, line, strlen(line)) < 0 && errno == EINTR)
		;
	outfile_remove_hidden();
	_exit(EXIT_FILE);
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	const struct watch *watch = NULL;

	(void)context;
	/* A fault has si_code > 0, kill(2) has not. */
	if (info->si_code > 0)
		watch = watch_find((uintptr_t)info->si_addr);
	if (watch)
		end_process(watch, (uintptr_t)info->si_addr);
	/* Returning from a fault repeats it; a sent signal must be sent on. */
	sigaction(number, &older_action, NULL);
	if (info->si_code <= 0)
		raise(number);
}

static int install_handler(void)
{
	struct sigaction action = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO,
	};
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now))
		return -errno;
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus)
		return 0;
	older_action = now;
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}

static struct watch *watch_take(void)
{
	struct watch *watch;

	for (watch = atomic_load(&watches); watch; watch = watch->next)
		if (!atomic_load(&watch->begin))
			return watch;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return NULL;
	watch->next = atomic_load(&watches);
	atomic_store(&watches, watch);
	return watch;
}

static int watch_locked(const void *base, size_t bytes, int fd,
			uint64_t offset_bytes, const char *path)
{
	struct watch *watch = watch_take();

	if (!watch)
		return -ENOMEM;
	free(watch->shrank_line);
	free(watch->io_error_line);
	watch->shrank_line = log_line(path, SIGBUS_SHRANK);
	watch->io_error_line = log_line(path, SIGBUS_IO_ERROR);
	if (!watch->shrank_line || !watch->io_error_line)
		return -ENOMEM;
	watch->bytes = bytes;
	watch->fd = fd;
	watch->offset_bytes = offset_bytes;
	atomic_store(&watch->begin, (uintptr_t)base);
	return install_handler();
}

int sigbus_watch(const void *base, size_t bytes, int fd, uint64_t offset_bytes,
		 const char *path)
{
	int error;

	pthread_mutex_lock(&writers);
	error = watch_locked(base, bytes, fd, offset_bytes, path);
	pthread_mutex_unlock(&writers);
	return error;
}

void sigbus_forget(const void *base, size_t bytes)
{
	pthread_mutex_lock(&writers);
	for (struct watch *watch = atomic_load(&watches); watch;
	     watch = watch->next)
		if (atomic_load(&watch->begin) - (uintptr_t)base < bytes)
			atomic_store(&watch->begin, 0);
	pthread_mutex_unlock(&writers);
}
