/* rank_secret.c - the 32 bytes that only the ranks of a job know */
#include "net/rank_secret.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "net/keyfile.h"

/* --- of blinkd ------------------------------------------------------------ */

/* True for a pipe, and for a file in memory that no process can write: false
 * for another file that happens to be open under this number. */
static bool holds_secret(int fd)
{
	struct stat file;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals >= 0)
		return seals & F_SEAL_GROW;
	return fstat(fd, &file) == 0 && S_ISFIFO(file.st_mode);
}

/* blinkd has written all of it before it starts this process: do not wait. */
int rank_secret_read(const char *text, uint8_t secret[RANK_SECRET_BYTES],
		     struct failure *failure)
{
	static const char name[] = "BLINK_SECRET_FD";
	int ready_bytes = 0, fd;
	ssize_t got = -1;
	uint64_t number;

	if (parse_u64(text, STDERR_FILENO + 1, INT_MAX, &number))
		return failure_set(failure, EXIT_USAGE, name, 0,
				   "'%.40s': want a number from %d to %d", text,
				   STDERR_FILENO + 1, INT_MAX);
	fd = (int)number;
	if (!holds_secret(fd))
		return failure_set(failure, EXIT_USAGE, name, 0,
				   "'%d': not a file with a secret", fd);
	if (ioctl(fd, FIONREAD, &ready_bytes) == 0 &&
	    ready_bytes == RANK_SECRET_BYTES)
		got = read(fd, secret, RANK_SECRET_BYTES);
	close(fd);
	if (got != RANK_SECRET_BYTES)
		return failure_set(failure, EXIT_USAGE, name, 0,
				   "'%d': no %d bytes in this file (they can "
				   "be read once)",
				   fd, RANK_SECRET_BYTES);
	return 0;
}

/* --- of a key, and of none ------------------------------------------------ */

static void hash_text(crypto_generichash_blake2b_state *state, const char *text)
{
	/* Hash the NUL, too, so that "1" and "23" differ from "12" and "3". */
	if (text)
		crypto_generichash_blake2b_update(
			state, (const unsigned char *)text, strlen(text) + 1);
}

/* key: NULL, or KEYFILE_KEY_BYTES */
static void hash_job(const char *const job[RANK_JOB_PARTS], const uint8_t *key,
		     uint8_t secret[RANK_SECRET_BYTES])
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink rank 1"
		};
	crypto_generichash_blake2b_state state;
	int error = crypto_generichash_blake2b_init_salt_personal(
		&state, key, key ? KEYFILE_KEY_BYTES : 0, RANK_SECRET_BYTES,
		NULL, personal);

	/* The hash can only fail because of the sizes, which are constants
	 * here. */
	assert(error == 0);
	(void)error;
	for (unsigned i = 0; i < RANK_JOB_PARTS; i++)
		hash_text(&state, job[i]);
	crypto_generichash_blake2b_final(&state, secret, RANK_SECRET_BYTES);
	sodium_memzero(&state, sizeof(state));
}

int rank_secret_hash(const char *const job[RANK_JOB_PARTS],
		     const char *key_path, uint8_t secret[RANK_SECRET_BYTES],
		     struct failure *failure)
{
	uint8_t key[KEYFILE_KEY_BYTES];
	int error = key_path ? keyfile_read(key_path, key, failure) : 0;

	if (!error)
		hash_job(job, key_path ? key : NULL, secret);
	sodium_memzero(key, sizeof(key));
	return error;
}
