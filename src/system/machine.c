/* machine.c - whether another process runs where we do */
#include "system/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "system/descriptors.h"
#include "system/small_file.h"

static uint64_t read_number(void)
{
	char text[128];
	uint8_t hash[crypto_generichash_BYTES_MIN];
	struct stat status;
	size_t length;

	if (!small_file_read(text, 65, "/proc/sys/kernel/random/boot_id") ||
	    stat("/proc/self/ns/pid", &status) < 0)
		return 0;
	length = strlen(text);
	snprintf(text + length, sizeof(text) - length, " %llu %u",
		 (unsigned long long)status.st_ino, (unsigned)geteuid());
	crypto_generichash(hash, sizeof(hash), (const uint8_t *)text,
			   strlen(text), NULL, 0);
	return load_le64(hash) | 1;
}

uint64_t machine_host_id(void)
{
	/* Threads that race find the same. */
	static _Atomic uint64_t known;

	if (known == 0)
		known = read_number();
	return known;
}

/* The kernel lets no user but root look into another user's process.  So as
 * root the owner is checked here: a peer may tell the number of any process. */
static bool is_of_this_user(uint64_t process)
{
	struct stat status;
	char path[32];

	if (geteuid() != 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%" PRIu64, process);
	return stat(path, &status) == 0 && status.st_uid == 0;
}

/* Open by a descriptor that only names the file, so that what is opened is what
 * was looked at. */
static int open_named(int named, int flags, struct stat *status)
{
	if (fstat(named, status) < 0)
		return -errno;
	if (!S_ISREG(status->st_mode))
		return -EBADF;
	return descriptors_reopen(named, flags | O_NONBLOCK);
}

int machine_open(uint64_t process, uint64_t number, int flags,
		 struct stat *status)
{
	char path[64];
	int named, fd;

	if (!is_of_this_user(process))
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/fd/%" PRIu64, process,
		 number);
	named = open(path, O_PATH | O_CLOEXEC);
	if (named < 0)
		return -errno;
	fd = open_named(named, flags, status);
	close(named);
	return fd;
}
