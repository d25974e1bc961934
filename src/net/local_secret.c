/*
 * local_secret.c - the secret of a job without a key: rank 0 gives it to the
 * ranks on its machine that run as the same user
 */
#include "net/local_secret.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "system/small_file.h"
#include "system/thread.h"

#define MICROSECOND_NS ((uint64_t)1000)
/* A rank that finds no listener tries again after another sixteenth of the time
 * that it has waited, but after at least 0.1 ms (a try takes some microseconds)
 * and at most 16 ms.  So it loses little of a short wait, and tries some
 * hundred times in 5 s. */
#define RETRY_PART 16
#define RETRY_NS_MIN (100 * MICROSECOND_NS)
#define RETRY_NS_MAX (16 * NS_PER_MS)
/* If rank 0 finds its name taken, it waits for this long: the holder may be
 * between bind() and listen(), or about to close. */
#define CLAIM_NS (1000 * NS_PER_MS)
/* The server pauses after an error of accept() that passes with time, such as
 * too many open files. */
#define ACCEPT_PAUSE_NS NS_PER_MS
/* A rank appends to rank 0's name: "-", its number, "-", sixteen random digits.
 */
#define RANK_DIGITS 4
#define TAIL_BYTES (1 + RANK_DIGITS + 1 + 16)

static_assert(1 + LOCAL_SECRET_NAME_BYTES + TAIL_BYTES <=
		      sizeof(((struct sockaddr_un *)NULL)->sun_path),
	      "a rank's name does not fit into an address");

/* Rank 0's answer, in this machine's byte order. */
enum verdict { VERDICT_GIVEN = 1, VERDICT_CONTESTED };

struct answer {
	uint32_t verdict;
	uint8_t secret[LOCAL_SECRET_BYTES]; /* zero unless given */
};

struct local_secret_server {
	struct local_secret_job job;
	pthread_t thread;
	/* The listening socket.  -1: local_secret_end() or the thread has taken
	 * it, and closes it. */
	_Atomic int fd;
	atomic_bool contested;
	unsigned unserved;
	uint8_t secret[LOCAL_SECRET_BYTES];
	bool served[]; /* [rank] */
};

/* --- users ---------------------------------------------------------------- */

/* False in a user namespace that does not map all user ids: there the kernel
 * shows all other ids as one, the overflow id. */
static bool tells_users_apart(uid_t user)
{
	char line[100];
	unsigned long overflow = 65534; /* the kernel's default */
	unsigned first, outside, count;

	if (small_file_read(line, sizeof(line), "/proc/self/uid_map") &&
	    sscanf(line, "%u %u %u", &first, &outside, &count) == 3 &&
	    first == 0 && count == UINT32_MAX)
		return true;
	if (small_file_read(line, sizeof(line), "/proc/sys/kernel/overflowuid"))
		overflow = strtoul(line, NULL, 10);
	return user != overflow;
}

/* The user id of the process at the other end of a connected socket, when it
 * called connect() or listen(). */
static uid_t read_user(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);

	/* Every connected Unix socket has it. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return (uid_t)-1;
	return peer.uid;
}

/* --- names ---------------------------------------------------------------- */

int local_secret_init(struct local_secret_job *job, unsigned rank,
		      unsigned rank_count,
		      const uint8_t name[LOCAL_SECRET_BYTES],
		      const struct address *addresses, struct failure *failure)
{
	/* A new protocol needs a new number: ranks of other versions of this
	 * program then have other names. */
	static const char version[] = "blink local 2";
	uint8_t hash[crypto_generichash_blake2b_BYTES_MIN];
	char hex[2 * sizeof(hash) + 1], text[ADDRESS_TEXT_BYTES];
	crypto_generichash_blake2b_state state;

	*job = (struct local_secret_job){ rank, rank_count, geteuid(), "" };
	if (!tells_users_apart(job->user))
		return failure_set(failure, EXIT_USAGE, "--key-file", 0,
				   "needed, or BLINK_KEY: in this user "
				   "namespace other users, too, have the id %u",
				   job->user);
	crypto_generichash_blake2b_init(&state, name, LOCAL_SECRET_BYTES,
					sizeof(hash));
	crypto_generichash_blake2b_update(&state, (const uint8_t *)version,
					  sizeof(version));
	for (unsigned r = 0; r < rank_count; r++) {
		address_format(&addresses[r], text);
		crypto_generichash_blake2b_update(&state, (const uint8_t *)text,
						  strlen(text) + 1);
	}
	crypto_generichash_blake2b_final(&state, hash, sizeof(hash));
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	snprintf(job->name, sizeof(job->name), "blinksort-%u-%s", job->user,
		 hex);
	return 0;
}

/* text: the name without the leading NUL of the abstract namespace. */
static socklen_t set_address(struct sockaddr_un *address, const char *text)
{
	size_t length = strlen(text);

	assert(1 + length <= sizeof(address->sun_path));
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, text, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* The name of a connecting rank; it is random, so no other process has it. */
static socklen_t set_rank_address(struct sockaddr_un *address,
				  const struct local_secret_job *job)
{
	char text[LOCAL_SECRET_NAME_BYTES + TAIL_BYTES + 1];
	uint64_t random;

	randombytes_buf(&random, sizeof(random));
	snprintf(text, sizeof(text), "%s-%0*u-%016" PRIx64, job->name,
		 RANK_DIGITS, job->rank, random);
	return set_address(address, text);
}

/* The rank that the address of a connection tells; -1: no rank of this job. */
static int rank_of(const struct local_secret_job *job,
		   const struct sockaddr_un *address, socklen_t length)
{
	size_t name_length = strlen(job->name);
	const char *tail = address->sun_path + 1 + name_length;
	unsigned rank = 0;

	if (length != offsetof(struct sockaddr_un, sun_path) + 1 + name_length +
			      TAIL_BYTES ||
	    address->sun_path[0] != '\0' ||
	    memcmp(address->sun_path + 1, job->name, name_length) != 0 ||
	    tail[0] != '-' || tail[1 + RANK_DIGITS] != '-')
		return -1;
	for (unsigned i = 1; i <= RANK_DIGITS; i++) {
		if (tail[i] < '0' || tail[i] > '9')
			return -1;
		rank = 10 * rank + (unsigned)(tail[i] - '0');
	}
	return rank < job->rank_count ? (int)rank : -1;
}

/* --- ranks that ask ------------------------------------------------------- */

enum reply {
	REPLY_GIVEN,
	REPLY_CONTESTED,
	REPLY_NONE, /* of a listener of our user, until until_ns */
	/* Try again: */
	REPLY_GONE,	/* there is no listener, or it has closed */
	REPLY_STRANGER, /* it is another user's: *holder */
};

/* Returns a socket that is connected to rank 0's, or still connecting; or
 * -errno. */
static int connect_once(const struct local_secret_job *job)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	socklen_t length = set_rank_address(&address, job);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, length) < 0)
		error = -errno;
	length = set_address(&address, job->name);
	if (!error && connect(fd, (struct sockaddr *)&address, length) < 0)
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

static void wait_readable(int fd, uint64_t until_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct timespec timeout;

	do
		timeout = clock_left(until_ns);
	while (ppoll(&poll_fd, 1, &timeout, NULL) < 0 && errno == EINTR);
}

static enum reply take_answer(int fd, uint64_t until_ns,
			      uint8_t secret[LOCAL_SECRET_BYTES])
{
	enum reply reply = REPLY_GONE;
	struct answer answer;
	ssize_t got;

	wait_readable(fd, until_ns);
	got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (got == sizeof(answer) && answer.verdict == VERDICT_GIVEN) {
		memcpy(secret, answer.secret, LOCAL_SECRET_BYTES);
		reply = REPLY_GIVEN;
	} else if (got == sizeof(answer)) {
		reply = REPLY_CONTESTED;
	} else if (got < 0 && errno == EAGAIN) {
		reply = REPLY_NONE;
	}
	sodium_memzero(&answer, sizeof(answer));
	return reply;
}

/* Returns an enum reply, or -errno if no socket can be made. */
static int ask(const struct local_secret_job *job, uint64_t until_ns,
	       uint8_t secret[LOCAL_SECRET_BYTES], uid_t *holder)
{
	int fd = connect_once(job);
	int reply = REPLY_STRANGER;

	/* EAGAIN: the listener's queue is full. */
	if (fd == -ECONNREFUSED || fd == -EAGAIN || fd == -EADDRINUSE)
		return REPLY_GONE;
	if (fd < 0)
		return fd;
	*holder = read_user(fd);
	if (*holder == job->user)
		reply = (int)take_answer(fd, until_ns, secret);
	close(fd);
	return reply;
}

/* Sleep until it is time for another try. */
static void pause_try(uint64_t begin_ns, uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t interval_ns = (now_ns - begin_ns) / RETRY_PART;
	struct timespec pause = { 0 };

	interval_ns = MIN(MAX(interval_ns, RETRY_NS_MIN), RETRY_NS_MAX);
	if (now_ns < until_ns)
		pause.tv_nsec = (long)MIN(interval_ns, until_ns - now_ns);
	nanosleep(&pause, NULL);
}

int local_secret_fail_contested(const struct local_secret_job *job,
				struct failure *failure)
{
	return failure_set(failure, EXIT_PEER, "--job", 0,
			   "two jobs of user %u have one name at once: give "
			   "each a --job of its own",
			   job->user);
}

/* Rank 0 has not given the secret, or another process has the name. */
static int fail_reply(const struct local_secret_job *job, int reply,
		      uid_t holder, struct failure *failure)
{
	if (reply < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, -reply,
				   "a Unix socket");
	if (reply == REPLY_STRANGER)
		return failure_set(failure, EXIT_PEER, "--job", 0,
				   "user %u holds the name @%s: give "
				   "--key-file, or another --job",
				   holder, job->name);
	if (reply == REPLY_GONE)
		return failure_set(failure, EXIT_PEER, "--job", 0,
				   "a process that does not listen holds the "
				   "name @%s: give --key-file, or another "
				   "--job",
				   job->name);
	return local_secret_fail_contested(job, failure);
}

int local_secret_fetch(const struct local_secret_job *job, const char *host,
		       uint64_t deadline_ns, uint8_t secret[LOCAL_SECRET_BYTES],
		       struct failure *failure)
{
	uint64_t begin_ns = clock_now_ns(), until_ns = begin_ns + deadline_ns;
	uid_t holder = job->user;
	int reply;

	for (;;) {
		reply = ask(job, until_ns, secret, &holder);
		if (reply < REPLY_GONE || clock_now_ns() >= until_ns)
			break;
		pause_try(begin_ns, until_ns);
	}
	if (reply == REPLY_GIVEN)
		return 0;
	if (reply == REPLY_NONE || reply == REPLY_GONE)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "rank 0 (%.80s) has not come within %.1f s",
				   host, (double)deadline_ns / 1e9);
	return fail_reply(job, reply, holder, failure);
}

/* --- rank 0 --------------------------------------------------------------- */

static int listen_once(const struct local_secret_job *job)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t length = set_address(&address, job->name);
	int error;

	if (fd < 0)
		return -errno;
	/* Longer than the job needs: strangers may connect, too. */
	if (bind(fd, (struct sockaddr *)&address, length) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

/* Returns the listening socket, or -errno. */
static int claim_name(const struct local_secret_job *job,
		      struct failure *failure)
{
	uint64_t begin_ns = clock_now_ns(), until_ns = begin_ns + CLAIM_NS;
	uint8_t secret[LOCAL_SECRET_BYTES];
	uid_t holder = job->user;
	int reply;

	for (;;) {
		int fd = listen_once(job);

		if (fd >= 0)
			return fd;
		if (fd != -EADDRINUSE)
			return failure_set(failure, EXIT_RESOURCES, NULL, -fd,
					   "a Unix socket");
		/* We connect as a second rank 0: the first one then stops
		 * giving the secret to any rank. */
		reply = ask(job, until_ns, secret, &holder);
		if (reply != REPLY_GONE || clock_now_ns() >= until_ns)
			return fail_reply(job, reply, holder, failure);
		pause_try(begin_ns, until_ns);
	}
}

static void answer(struct local_secret_server *server, int fd, int rank)
{
	struct answer answer = { .verdict = VERDICT_CONTESTED };
	bool sent;

	if (server->served[rank])
		atomic_store(&server->contested, true);
	if (!atomic_load(&server->contested)) {
		answer.verdict = VERDICT_GIVEN;
		memcpy(answer.secret, server->secret, LOCAL_SECRET_BYTES);
	}
	/* A new socket has room for the answer; it fails if the rank is gone.
	 */
	sent = send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       sizeof(answer);
	if (sent && answer.verdict == VERDICT_GIVEN) {
		server->served[rank] = true;
		server->unserved--;
	}
	sodium_memzero(&answer, sizeof(answer));
}

static void serve_one(struct local_secret_server *server, int listener)
{
	struct timespec pause = { .tv_nsec = (long)ACCEPT_PAUSE_NS };
	struct sockaddr_un address = { 0 };
	socklen_t length = sizeof(address);
	int fd = accept4(listener, (struct sockaddr *)&address, &length,
			 SOCK_CLOEXEC);
	int rank;

	if (fd < 0) {
		if (errno != ECONNABORTED && atomic_load(&server->fd) >= 0)
			nanosleep(&pause, NULL);
		return;
	}
	rank = rank_of(&server->job, &address, length);
	if (rank >= 0 && read_user(fd) == server->job.user)
		answer(server, fd, rank);
	close(fd);
}

static void *run_server(void *context)
{
	struct local_secret_server *server = context;
	int listener = atomic_load(&server->fd);

	while (server->unserved > 0 && atomic_load(&server->fd) >= 0)
		serve_one(server, listener);
	/* Close at once, so that the next job can have the name. */
	if (atomic_exchange(&server->fd, -1) >= 0)
		close(listener);
	return NULL;
}

static void free_server(struct local_secret_server *server)
{
	sodium_memzero(server->secret, sizeof(server->secret));
	free(server);
}

struct local_secret_server *
local_secret_serve(const struct local_secret_job *job,
		   const uint8_t secret[LOCAL_SECRET_BYTES],
		   struct failure *failure)
{
	struct local_secret_server *server =
		calloc(1, sizeof(*server) + job->rank_count * sizeof(bool));
	int fd, error;

	if (!server) {
		failure_no_memory(failure);
		return NULL;
	}
	fd = claim_name(job, failure);
	if (fd < 0) {
		free_server(server);
		return NULL;
	}
	server->job = *job;
	server->fd = fd;
	server->served[0] = true;
	server->unserved = job->rank_count - 1;
	memcpy(server->secret, secret, LOCAL_SECRET_BYTES);
	error = thread_start(&server->thread, run_server, server);
	if (!error)
		return server;
	failure_set(failure, EXIT_RESOURCES, "thread", -error, "");
	close(fd);
	free_server(server);
	return NULL;
}

bool local_secret_is_contested(const struct local_secret_server *server)
{
	return server && atomic_load(&server->contested);
}

void local_secret_end(struct local_secret_server *server)
{
	int fd;

	if (!server)
		return;
	fd = atomic_exchange(&server->fd, -1);
	/* shutdown() wakes the thread: accept() fails from now on. */
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	if (fd >= 0)
		close(fd);
	free_server(server);
}
