/*
 * keyfile.c - the cluster's key: 32 random bytes as hexadecimal text in a
 * file
 */
#include "net/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"

#define HEX_BYTES (2 * KEYFILE_KEY_BYTES)
/* "fd:N" begins with this. */
#define GIVEN "fd:"

/* The longest text, and one byte that shows that a file is longer. */
struct key_text {
	char bytes[HEX_BYTES + 2];
};

static int refuse(struct failure *failure, const char *path, const char *why)
{
	return failure_set(failure, EXIT_FILE, path, 0, "%s", why);
}

/* Returns 0, or -EINVAL with *failure filled. */
static int check_who_can_read(int fd, const char *path, struct failure *failure)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	if (!S_ISREG(file.st_mode))
		return refuse(failure, path, "not a regular file");
	if (file.st_uid != geteuid() && file.st_uid != 0)
		return refuse(failure, path,
			      "belongs to neither this user nor root");
	if (file.st_mode & (S_IRWXG | S_IRWXO))
		return failure_set(failure, EXIT_FILE, path, 0,
				   "others have access to this key (mode %04o; "
				   "chmod 0400)",
				   (unsigned)file.st_mode & 07777);
	return 0;
}

static bool decode(const struct key_text *text, size_t length_bytes,
		   uint8_t key[KEYFILE_KEY_BYTES])
{
	size_t key_bytes;

	if (length_bytes == HEX_BYTES + 1 && text->bytes[HEX_BYTES] == '\n')
		length_bytes--;
	return length_bytes == HEX_BYTES &&
	       sodium_hex2bin(key, KEYFILE_KEY_BYTES, text->bytes, length_bytes,
			      NULL, &key_bytes, NULL) == 0 &&
	       key_bytes == KEYFILE_KEY_BYTES;
}

static int read_key(int fd, const char *path, uint8_t key[KEYFILE_KEY_BYTES],
		    struct failure *failure)
{
	struct key_text text;
	ssize_t length_bytes;
	int error = check_who_can_read(fd, path, failure);

	if (error)
		return error;
	length_bytes = pread(fd, text.bytes, sizeof(text.bytes), 0);
	if (length_bytes < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	if (!decode(&text, (size_t)length_bytes, key)) {
		sodium_memzero(key, KEYFILE_KEY_BYTES);
		error = failure_set(failure, EXIT_FILE, path, 0,
				    "not a key: want %d hexadecimal digits",
				    HEX_BYTES);
	}
	sodium_memzero(&text, sizeof(text));
	return error;
}

/* Closing 0, 1 or 2 would let the next file that is opened get that number. */
static void close_given(int fd)
{
	int null_fd = -1;

	if (fd <= STDERR_FILENO)
		null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd >= 0) {
		dup2(null_fd, fd);
		close(null_fd);
	} else {
		close(fd);
	}
}

static int read_given(const char *path, uint8_t key[KEYFILE_KEY_BYTES],
		      struct failure *failure)
{
	uint64_t fd;
	int error;

	if (parse_u64(path + strlen(GIVEN), 0, INT_MAX, &fd) < 0)
		return refuse(failure, path, "no number of a descriptor");
	error = read_key((int)fd, path, key, failure);
	if (error != -EBADF)
		close_given((int)fd);
	return error;
}

int keyfile_read(const char *path, uint8_t key[KEYFILE_KEY_BYTES],
		 struct failure *failure)
{
	int error, fd;

	if (strncmp(path, GIVEN, strlen(GIVEN)) == 0)
		return read_given(path, key, failure);
	/* O_NONBLOCK: do not wait for a FIFO, which is refused then. */
	fd = open(path,
		  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ELOOP)
		return refuse(failure, path, "a symbolic link");
	if (fd < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	error = read_key(fd, path, key, failure);
	close(fd);
	return error;
}

static int write_key(int fd)
{
	uint8_t key[KEYFILE_KEY_BYTES];
	struct key_text text;
	ssize_t written;

	randombytes_buf(key, sizeof(key));
	sodium_bin2hex(text.bytes, HEX_BYTES + 1, key, sizeof(key));
	text.bytes[HEX_BYTES] = '\n';
	written = write(fd, text.bytes, HEX_BYTES + 1);
	sodium_memzero(key, sizeof(key));
	sodium_memzero(&text, sizeof(text));
	if (written < 0)
		return -errno;
	if (written != HEX_BYTES + 1)
		return -ENOSPC;
	/* The umask must not change the mode. */
	if (fchmod(fd, 0400) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

int keyfile_create(const char *path, struct failure *failure)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
	int error;

	if (fd < 0)
		return failure_set(failure, EXIT_FILE, path, errno, "");
	error = write_key(fd);
	if (close(fd) < 0 && !error)
		error = -errno;
	if (error) {
		unlink(path);
		return failure_set(failure, EXIT_FILE, path, -error, "");
	}
	return 0;
}
