/*
 * test_local_secret.c - the secret of a job without a key: ranks of one user
 * get it, other users and second jobs do not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "net/local_secret.h"
#include "skip.h"

#define SECOND_NS ((uint64_t)1000000000)
/* No machine is so slow: a wait that should end does end before. */
#define PATIENT_NS (60 * SECOND_NS)
/* Of a wait that is to end without success. */
#define SHORT_NS (SECOND_NS / 20)
#define STRANGER 65533
#define RANKS 3

static uint8_t secret[LOCAL_SECRET_BYTES];
static uint8_t job_hash[LOCAL_SECRET_BYTES];

static void init(struct local_secret_job *job, unsigned rank,
		 unsigned rank_count)
{
	struct address addresses[128];
	struct failure failure = { 0 };

	assert_in_range(rank_count, 2, ARRAY_LEN(addresses));
	for (unsigned r = 0; r < rank_count; r++)
		assert_int_equal(address_parse("127.0.0.1", &addresses[r]), 0);
	if (local_secret_init(job, rank, rank_count, job_hash, addresses,
			      &failure))
		fail_msg("%s: %s", failure.what, failure.why);
}

/* Each case has a job of its own name. */
static int setup(void **state)
{
	(void)state;
	randombytes_buf(secret, sizeof(secret));
	randombytes_buf(job_hash, sizeof(job_hash));
	return 0;
}

static struct local_secret_server *serve(unsigned rank_count)
{
	struct local_secret_server *server;
	struct local_secret_job job;
	struct failure failure = { 0 };

	init(&job, 0, rank_count);
	server = local_secret_serve(&job, secret, &failure);
	if (!server)
		fail_msg("%s: %s", failure.what, failure.why);
	return server;
}

static void expect_serve_fails(const char *why)
{
	struct local_secret_job job;
	struct failure failure = { 0 };

	init(&job, 0, RANKS);
	assert_null(local_secret_serve(&job, secret, &failure));
	assert_int_equal(failure.status, EXIT_PEER);
	if (!strstr(failure.why, why))
		fail_msg("%s: %s", failure.what, failure.why);
}

static void expect_fetch(unsigned rank, unsigned rank_count)
{
	uint8_t got[LOCAL_SECRET_BYTES] = { 0 };
	struct local_secret_job job;
	struct failure failure = { 0 };

	init(&job, rank, rank_count);
	if (local_secret_fetch(&job, "host", PATIENT_NS, got, &failure))
		fail_msg("%s: %s", failure.what, failure.why);
	assert_memory_equal(got, secret, sizeof(got));
}

/* The other ranks of a job of RANKS are not kept out. */
static void expect_all_fetch(void)
{
	for (unsigned r = 1; r < RANKS; r++)
		expect_fetch(r, RANKS);
}

static void expect_fetch_fails(unsigned rank, uint64_t deadline_ns,
			       const char *why)
{
	uint8_t got[LOCAL_SECRET_BYTES] = { 0 };
	struct local_secret_job job;
	struct failure failure = { 0 };

	init(&job, rank, RANKS);
	assert_in_range(
		-local_secret_fetch(&job, "host", deadline_ns, got, &failure),
		1, 4095);
	assert_int_equal(failure.status, EXIT_PEER);
	if (!strstr(failure.why, why))
		fail_msg("%s: %s", failure.what, failure.why);
	assert_true(sodium_is_zero(got, sizeof(got)));
}

/* --- sockets by hand ------------------------------------------------------ */

static socklen_t set_name(struct sockaddr_un *address, const char *name)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(name));
}

/* A socket that is bound to the name, unless that is NULL; -1: taken. */
static int bind_to(const char *name)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	if (name && bind(fd, (struct sockaddr *)&address,
			 set_name(&address, name)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Connect to rank 0 of the job from a socket of this name; -1: it is not
 * there. */
static int connect_as(const struct local_secret_job *job, const char *own)
{
	struct sockaddr_un address;
	int fd = bind_to(own);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address,
			       set_name(&address, job->name)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Bytes that rank 0 says until it closes. */
static ssize_t hear(int fd)
{
	uint8_t bytes[100];
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_WAITALL);

	close(fd);
	return got < 0 && errno == ECONNRESET ? 0 : got;
}

/* --- names ---------------------------------------------------------------- */

static void local_secret_init__names(void **state)
{
	struct local_secret_job job, other;
	struct address addresses[3];
	struct failure failure;
	char user[40];

	(void)state;
	init(&job, 0, 3);
	init(&other, 2, 3);
	assert_string_equal(job.name, other.name);
	snprintf(user, sizeof(user), "blinksort-%u-", geteuid());
	assert_memory_equal(job.name, user, strlen(user));
	init(&other, 0, 4);
	assert_string_not_equal(job.name, other.name);
	for (unsigned r = 0; r < 3; r++)
		assert_int_equal(address_parse("127.0.0.1", &addresses[r]), 0);
	address_set_port(&addresses[2], 5);
	assert_int_equal(
		local_secret_init(&other, 0, 3, job_hash, addresses, &failure),
		0);
	assert_string_not_equal(job.name, other.name);
	job_hash[31] ^= 1;
	init(&other, 0, 3);
	assert_string_not_equal(job.name, other.name);
}

/* --- ranks of one user ---------------------------------------------------- */

static void local_secret_fetch__all_ranks(void **state)
{
	struct local_secret_server *server = serve(128);

	(void)state;
	for (unsigned r = 127; r > 0; r--)
		expect_fetch(r, 128);
	assert_false(local_secret_is_contested(server));
	local_secret_end(server);
}

static void *fetch_all(void *context)
{
	(void)context;
	expect_all_fetch();
	return NULL;
}

static void local_secret_fetch__before_rank_0(void **state)
{
	struct local_secret_server *server;
	struct timespec pause = { .tv_nsec = 20000000 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, fetch_all, NULL), 0);
	nanosleep(&pause, NULL);
	server = serve(RANKS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	local_secret_end(server);
}

/* A listener of our own closes without an answer, as that of an earlier job
 * does: the rank goes on to the next one. */
static void local_secret_fetch__listener_closes(void **state)
{
	struct local_secret_server *server;
	struct local_secret_job job;
	pthread_t thread;
	int listener;

	(void)state;
	init(&job, 0, RANKS);
	listener = bind_to(job.name);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, fetch_all, NULL), 0);
	close(accept(listener, NULL, NULL));
	close(listener);
	server = serve(RANKS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	local_secret_end(server);
}

static void local_secret_fetch__no_rank_0(void **state)
{
	(void)state;
	expect_fetch_fails(1, SHORT_NS,
			   "rank 0 (host) has not come within 0.1 s");
}

/* Rank 0 is stopped, say: it listens and does not answer. */
static void local_secret_fetch__no_answer(void **state)
{
	struct local_secret_job job;
	int listener;

	(void)state;
	init(&job, 0, RANKS);
	listener = bind_to(job.name);
	assert_int_equal(listen(listener, 1), 0);
	expect_fetch_fails(1, SHORT_NS, "rank 0 (host) has not come");
	close(listener);
}

/* Nobody comes: it ends all the same, and before its thread has begun. */
static void local_secret_end__unserved(void **state)
{
	(void)state;
	local_secret_end(NULL);
	for (unsigned i = 0; i < 200; i++)
		local_secret_end(serve(RANKS));
	expect_fetch_fails(1, SHORT_NS, "has not come");
}

/* When all have it the next job can have the name, while the first goes on. */
static void local_secret_serve__next_job(void **state)
{
	struct local_secret_server *first = serve(RANKS), *second;

	(void)state;
	expect_all_fetch();
	randombytes_buf(secret, sizeof(secret));
	second = serve(RANKS);
	expect_all_fetch();
	assert_false(local_secret_is_contested(first));
	assert_false(local_secret_is_contested(second));
	local_secret_end(first);
	local_secret_end(second);
}

/* --- two jobs of one name ------------------------------------------------- */

static void local_secret_serve__second_rank_0(void **state)
{
	struct local_secret_server *server = serve(RANKS);

	(void)state;
	expect_fetch(1, RANKS);
	assert_false(local_secret_is_contested(server));
	expect_serve_fails("two jobs");
	assert_true(local_secret_is_contested(server));
	expect_fetch_fails(2, PATIENT_NS, "two jobs");
	local_secret_end(server);
}

static void local_secret_serve__rank_twice(void **state)
{
	struct local_secret_server *server = serve(RANKS);

	(void)state;
	expect_fetch(2, RANKS);
	expect_fetch_fails(2, PATIENT_NS, "two jobs");
	assert_true(local_secret_is_contested(server));
	expect_fetch_fails(1, PATIENT_NS, "two jobs");
	local_secret_end(server);
}

/* --- processes of our user that are no ranks ------------------------------ */

static void local_secret_serve__no_ranks(void **state)
{
	static const char *const tails[] = {
		"",
		"-0001",
		"-0003-0123456789abcdef", /* there are 0, 1 and 2 */
		"-9999-0123456789abcdef",
		"-00x1-0123456789abcdef",
		"--001-0123456789abcdef",
		"-0001x0123456789abcdef",
		"+0001-0123456789abcdef",
		"-0001-0123456789abcde",
		"-0001-0123456789abcdef0",
	};
	struct local_secret_server *server = serve(RANKS);
	struct local_secret_job job;

	(void)state;
	init(&job, 0, RANKS);
	assert_int_equal(hear(connect_as(&job, NULL)), 0);
	assert_int_equal(hear(connect_as(&job, "x")), 0);
	/* The first is rank 0's own name, which is taken. */
	for (size_t i = 1; i < ARRAY_LEN(tails); i++) {
		char name[sizeof(job.name) + 30];

		snprintf(name, sizeof(name), "%s%s", job.name, tails[i]);
		if (hear(connect_as(&job, name)) != 0)
			fail_msg("%s", tails[i]);
		/* Of another job. */
		name[strlen(job.name) - 1] ^= 1;
		if (hear(connect_as(&job, name)) != 0)
			fail_msg("%s of another job", tails[i]);
	}
	assert_false(local_secret_is_contested(server));
	expect_all_fetch();
	local_secret_end(server);
}

/* They connect and say nothing. */
static void local_secret_serve__silent(void **state)
{
	struct local_secret_server *server = serve(RANKS);
	struct local_secret_job job;
	int fds[300];

	(void)state;
	init(&job, 0, RANKS);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = connect_as(&job, NULL);
	expect_all_fetch();
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	local_secret_end(server);
}

/* A bound socket that does not listen: its owner cannot be known. */
static void local_secret_serve__held_in_silence(void **state)
{
	struct local_secret_job job;
	int fd;

	(void)state;
	init(&job, 0, RANKS);
	fd = bind_to(job.name);
	expect_serve_fails("a process that does not listen holds the name @");
	close(fd);
}

/* --- other users ---------------------------------------------------------- */

/* In a child that is another user and dies with this process.  It says "ready"
 * by a byte, and lives until end_stranger().  Its process. */
static pid_t start_stranger(void (*act)(const struct local_secret_job *, int),
			    const struct local_secret_job *job, int *said)
{
	int ends[2];
	pid_t child;

	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (setresuid(STRANGER, STRANGER, STRANGER) != 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
			_exit(1);
		act(job, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*said = ends[0];
	return child;
}

static void end_stranger(pid_t child, int said)
{
	int status;

	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(said);
}

static char next_word(int said)
{
	struct pollfd poll_fd = { .fd = said, .events = POLLIN };
	char word = '\0';

	assert_int_equal(poll(&poll_fd, 1, (int)(PATIENT_NS / 1000000)), 1);
	assert_int_equal(read(said, &word, 1), 1);
	return word;
}

static void say(int fd, char word)
{
	if (write(fd, &word, 1) != 1)
		_exit(2);
}

/* As if it were rank 0, 1 and 2: does it hear a byte? */
static void pose_as_ranks(const struct local_secret_job *job, int out)
{
	ssize_t heard = 0;

	for (unsigned i = 0; i < 30; i++) {
		char name[sizeof(job->name) + 30];
		int fd;

		snprintf(name, sizeof(name), "%s-%04u-%016u", job->name, i % 3,
			 i);
		fd = connect_as(job, name);
		heard += fd < 0 ? 1000 : hear(fd);
	}
	say(out, heard == 0 ? 'n' : 'y');
}

static void local_secret_serve__stranger(void **state)
{
	struct local_secret_server *server;
	struct local_secret_job job;
	pid_t child;
	int said;

	(void)state;
	init(&job, 0, RANKS);
	if (geteuid() != 0)
		skip_because("needs root");
	server = serve(RANKS);
	child = start_stranger(pose_as_ranks, &job, &said);
	assert_int_equal(next_word(said), 'n');
	assert_false(local_secret_is_contested(server));
	expect_all_fetch();
	end_stranger(child, said);
	local_secret_end(server);
}

/* Fill the queue, again and again. */
static void flood(const struct local_secret_job *job, int out)
{
	int fds[500];

	for (unsigned round = 0;; round++) {
		if (round == 1)
			say(out, 'r');
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			fds[i] = connect_as(job, NULL);
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
}

static void local_secret_serve__flood(void **state)
{
	struct local_secret_server *server;
	struct local_secret_job job;
	pid_t child;
	int said;

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	init(&job, 0, RANKS);
	server = serve(RANKS);
	child = start_stranger(flood, &job, &said);
	next_word(said);
	expect_all_fetch();
	end_stranger(child, said);
	local_secret_end(server);
}

/* Take the name, and answer as rank 0 would. */
static void squat(const struct local_secret_job *job, int out)
{
	struct {
		uint32_t verdict;
		uint8_t bytes[LOCAL_SECRET_BYTES];
	} answer = { .verdict = 1, .bytes = "mallory's secret" };
	int listener = bind_to(job->name);

	if (listener < 0 || listen(listener, 100) < 0)
		_exit(1);
	say(out, 'r');
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
		close(fd);
	}
}

static void local_secret_fetch__squatter(void **state)
{
	static const char held[] = "user 65533 holds the name @blinksort-";
	struct local_secret_server *server;
	struct local_secret_job job;
	pthread_t thread;
	pid_t child;
	int said;

	(void)state;
	init(&job, 0, RANKS);
	child = start_stranger(squat, &job, &said);
	next_word(said);
	expect_serve_fails(held);
	expect_fetch_fails(1, SHORT_NS, held);
	/* When it has gone, a rank that has waited gets what rank 0 gives. */
	assert_int_equal(pthread_create(&thread, NULL, fetch_all, NULL), 0);
	end_stranger(child, said);
	server = serve(RANKS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	local_secret_end(server);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(local_secret_init__names),
		CASE(local_secret_fetch__all_ranks),
		CASE(local_secret_fetch__before_rank_0),
		CASE(local_secret_fetch__listener_closes),
		CASE(local_secret_fetch__no_rank_0),
		CASE(local_secret_fetch__no_answer),
		CASE(local_secret_end__unserved),
		CASE(local_secret_serve__next_job),
		CASE(local_secret_serve__second_rank_0),
		CASE(local_secret_serve__rank_twice),
		CASE(local_secret_serve__no_ranks),
		CASE(local_secret_serve__silent),
		CASE(local_secret_serve__held_in_silence),
		CASE(local_secret_serve__stranger),
		CASE(local_secret_serve__flood),
		CASE(local_secret_fetch__squatter),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
