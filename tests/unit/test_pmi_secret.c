/*
 * test_pmi_secret.c - the secret that a launcher passes on, and launchers that
 * answer something else
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "net/pmi_secret.h"

#define SECOND_NS ((uint64_t)1000000000)
/* No machine is so slow: a wait that should end does end before. */
#define PATIENT_NS (60 * SECOND_NS)
/* Of a wait that is to end without success. */
#define SHORT_NS (SECOND_NS / 20)
#define HEX16 "000102030405060708090a0b0c0d0e0f"
#define HEX HEX16 HEX16
#define LINES 6

/* What a launcher answers to each line in turn; NULL: nothing.  Behind an
 * answer that ends with "end" it is gone. */
struct launcher {
	int fd;
	const char *const *answers;
	char asked[4096];
};

static const char result[] = "cmd=get_result rc=0 value=" HEX "\n";

static const char *const slurm[LINES + 1] = {
	"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
	"cmd=my_kvsname rc=0 kvsname=12.0\n",
	"cmd=barrier_out rc=0\n",
	result,
	"cmd=finalize_ack rc=0\n",
};

static const char *const hydra[LINES + 1] = {
	"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
	"cmd=my_kvsname kvsname=kvs_1_0_vm\n",
	"cmd=put_result rc=0 msg=success\n",
	"cmd=barrier_out\n",
	"cmd=finalize_ack\n",
};

static uint8_t secret[PMI_SECRET_BYTES];

static int setup(void **state)
{
	(void)state;
	memset(secret, 0, sizeof(secret));
	return 0;
}

static void *run_launcher(void *context)
{
	struct launcher *launcher = context;
	size_t length = 0;
	ssize_t got;

	for (size_t i = 0;
	     (got = read(launcher->fd, launcher->asked + length,
			 sizeof(launcher->asked) - 1 - length)) > 0;
	     i++) {
		const char *answer = launcher->answers[i];

		length += (size_t)got;
		if (!answer)
			continue;
		/* In two parts, as a stream may bring it.  Both may come too
		 * late: a client that has given up is gone. */
		send(launcher->fd, answer, 5, MSG_NOSIGNAL);
		usleep(1000);
		send(launcher->fd, answer + 5, strlen(answer) - 5,
		     MSG_NOSIGNAL);
		if (strcmp(answer + strlen(answer) - 4, "end\n") == 0)
			break;
	}
	launcher->asked[length] = '\0';
	close(launcher->fd);
	return NULL;
}

/* Returns what pmi_secret_share() does. */
static int share(struct launcher *launcher, unsigned rank, uint64_t deadline_ns,
		 struct failure *failure)
{
	pthread_t thread;
	char text[16];
	int fds[2], error;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	launcher->fd = fds[1];
	snprintf(text, sizeof(text), "%d", fds[0]);
	assert_int_equal(pmi_secret_find_fd(text, failure), fds[0]);
	assert_int_equal(pthread_create(&thread, NULL, run_launcher, launcher),
			 0);
	error = pmi_secret_share(fds[0], rank == 0, deadline_ns, secret,
				 failure);
	close(fds[0]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return error;
}

/* --- what is right -------------------------------------------------------- */

static void pmi_secret_share__rank_0(void **state)
{
	struct launcher launcher = { .answers = hydra };
	struct failure failure = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)(i % 16);
	assert_int_equal(share(&launcher, 0, PATIENT_NS, &failure), 0);
	assert_string_equal(launcher.asked,
			    "cmd=init pmi_version=1 pmi_subversion=1\n"
			    "cmd=get_my_kvsname\n"
			    "cmd=put kvsname=kvs_1_0_vm key=blinksort-secret "
			    "value=" HEX "\n"
			    "cmd=barrier_in\n"
			    "cmd=finalize\n");
}

static void pmi_secret_share__other_rank(void **state)
{
	struct launcher launcher = { .answers = slurm };
	struct failure failure = { 0 };

	(void)state;
	assert_int_equal(share(&launcher, 3, PATIENT_NS, &failure), 0);
	for (size_t i = 0; i < sizeof(secret); i++)
		assert_int_equal(secret[i], i % 16);
	assert_string_equal(launcher.asked,
			    "cmd=init pmi_version=1 pmi_subversion=1\n"
			    "cmd=get_my_kvsname\n"
			    "cmd=barrier_in\n"
			    "cmd=get kvsname=12.0 key=blinksort-secret\n"
			    "cmd=finalize\n");
}

/* --- what is wrong -------------------------------------------------------- */

/* The answer number which is this one. */
static void expect_failure(size_t which, const char *answer, const char *why)
{
	const char *answers[LINES + 1];
	struct launcher launcher = { .answers = answers };
	struct failure failure = { 0 };

	memcpy(answers, slurm, sizeof(answers));
	answers[which] = answer;
	assert_true(share(&launcher, 1, answer ? PATIENT_NS : SHORT_NS,
			  &failure) < 0);
	assert_int_equal(failure.status, EXIT_PEER);
	assert_string_equal(failure.what, "PMI_FD");
	if (!strstr(failure.why, why))
		fail_msg("%s: %s", answer, failure.why);
	assert_null(strstr(failure.why, HEX16));
}

#define BYTES_64                                                               \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define BYTES_512                                                              \
	BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64 BYTES_64

static void pmi_secret_share__bad_answers(void **state)
{
	static const struct {
		size_t which;
		const char *answer, *why;
	} cases[] = {
		{ 0, "cmd=response_to_init rc=-1 pmi_version=2\n",
		  "does not answer with response_to_init: 'cmd=response" },
		{ 0, "cmd=response_to_init rc=\n", "response_to_init" },
		{ 0, "cmd=response_to_init rc=00000000\n", "response_to_init" },
		{ 0, "cmd=response_to_initial rc=0\n", "response_to_init" },
		{ 0, "      \n", "does not answer" },
		{ 0, "HTTP/1.1 400\n", "does not answer" },
		{ 0, "cmd=response_to_init\nx\n", "does not speak" },
		{ 0, "cmd=" BYTES_512 BYTES_512 BYTES_64 "\n", "not speak" },
		{ 1, "cmd=my_kvsname rc=0\n", "does not name its values" },
		{ 1, "cmd=my_kvsname kvsname= x\n", "does not name" },
		{ 1, "cmd=my_kvsname kvsname=" BYTES_512 "\n", "not name" },
		{ 2, NULL, "not all ranks have come within 0.1 s" },
		{ 3, "cmd=get_result rc=-1 msg=no_key\n", "does not answer" },
		{ 3, "cmd=get_result rc=0 value=" HEX16 "\n", "another value" },
		{ 3, "cmd=get_result rc=0 value=" HEX "00\n", "another value" },
		{ 3, "cmd=get_result rc=0 value=x" HEX16 HEX16 "\n",
		  "another" },
		{ 3, "cmd=get_result rc=1 value=" HEX "\n", "'...'" },
		{ 3, "cmd=get_result rc=1 msg=" HEX "\n", "'...'" },
		{ 4, "cmd=got " HEX "\n", "with finalize_ack: '...'" },
		{ 4, "cmd=barrier_out rc=0\n", "with finalize_ack" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect_failure(cases[i].which, cases[i].answer, cases[i].why);
}

static void pmi_secret_share__launcher_is_gone(void **state)
{
	static const char *const answers[] = {
		"cmd=response_to_init end\n",
	};
	struct launcher launcher = { .answers = answers };
	struct failure failure = { 0 };

	(void)state;
	assert_true(share(&launcher, 1, PATIENT_NS, &failure) < 0);
	assert_int_equal(failure.status, EXIT_PEER);
	assert_string_equal(failure.why, "the launcher is gone");
}

static void pmi_secret_find_fd__no_socket(void **state)
{
	static const char *const texts[] = { "",  "x",	    "-1",	 "0",
					     "2", "999999", "4294967296" };
	char text[16];
	int fds[2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct failure failure = { 0 };

		assert_true(pmi_secret_find_fd(texts[i], &failure) < 0);
		assert_int_equal(failure.status, EXIT_USAGE);
		assert_string_equal(failure.what, "PMI_FD");
	}
	assert_int_equal(pipe(fds), 0);
	snprintf(text, sizeof(text), "%d", fds[0]);
	assert_true(pmi_secret_find_fd(text, &(struct failure){ 0 }) < 0);
	close(fds[0]);
	close(fds[1]);
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(pmi_secret_share__rank_0),
		CASE(pmi_secret_share__other_rank),
		CASE(pmi_secret_share__bad_answers),
		CASE(pmi_secret_share__launcher_is_gone),
		CASE(pmi_secret_find_fd__no_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
