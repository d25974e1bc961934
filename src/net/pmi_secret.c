/*
 * pmi_secret.c - the secret of a job that Slurm has started with a PMI: rank
 * 0 gives it to the ranks on other machines through Slurm
 */
#include "net/pmi_secret.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

/* PMI's own limit for a line is 1024 bytes; its NUL stands behind it. */
#define LINE_BYTES 1025
/* Slurm says kvsname_max=256. */
#define NAME_BYTES 257
#define HEX_BYTES (2 * PMI_SECRET_BYTES + 1)

/* A talk with the launcher: one question, one answer. */
struct talk {
	int fd;
	uint64_t end_ns;
	double deadline_s; /* for messages */
	char line[LINE_BYTES];
	struct failure *failure;
};

static int fail_peer(struct talk *talk, int error, const char *why)
{
	return failure_set(talk->failure, EXIT_PEER, "PMI_FD", error, "%s",
			   why);
}

/* Judge a call on the socket.  A launcher that has ended shows by several
 * errors, depending on what was under way. */
static int fail_socket(struct talk *talk, int error)
{
	if (error == EPIPE || error == ECONNRESET)
		return fail_peer(talk, 0, "the launcher is gone");
	return fail_peer(talk, error, "the launcher");
}

/* 0 as soon as there is something to read, or the launcher is gone. */
static int wait_for_answer(struct talk *talk)
{
	struct pollfd poll_fd = { .fd = talk->fd, .events = POLLIN };
	struct timespec timeout;
	int ready;

	do {
		timeout = clock_left(talk->end_ns);
		ready = ppoll(&poll_fd, 1, &timeout, NULL);
	} while (ready < 0 && errno == EINTR);
	if (ready > 0)
		return 0;
	if (ready < 0)
		return fail_peer(talk, errno, "poll");
	return failure_set(talk->failure, EXIT_PEER, "PMI_FD", 0,
			   "not all ranks have come within %.1f s",
			   talk->deadline_s);
}

/* The launcher's line, without its end.  It sends none without a question, so
 * that nothing stands behind it. */
static int read_line(struct talk *talk)
{
	size_t length = 0;

	for (;;) {
		char *end;
		ssize_t got;
		int error = wait_for_answer(talk);

		if (error)
			return error;
		got = recv(talk->fd, talk->line + length,
			   LINE_BYTES - 1 - length, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return fail_socket(talk, got < 0 ? errno : EPIPE);
		length += (size_t)got;
		talk->line[length] = '\0';
		end = memchr(talk->line, '\n', length);
		if (end && end + 1 == talk->line + length &&
		    !memchr(talk->line, '\0', length)) {
			*end = '\0';
			return 0;
		}
		if (end || length == LINE_BYTES - 1)
			return fail_peer(talk, 0,
					 "the launcher does not speak PMI 1");
	}
}

/* The value of a word of the line, such as rc=0: up to a blank or the end. */
static bool find_word(const char *line, const char *name, char *value,
		      size_t room)
{
	size_t name_length = strlen(name), length;

	for (const char *at = line; (at = strchr(at, ' ')); at++) {
		if (strncmp(at + 1, name, name_length) != 0 ||
		    at[1 + name_length] != '=')
			continue;
		at += 1 + name_length + 1;
		length = strcspn(at, " ");
		if (length == 0 || length >= room)
			return false;
		memcpy(value, at, length);
		value[length] = '\0';
		return true;
	}
	return false;
}

/* The answer does not say that it went wrong, though it need not say rc=0. */
static bool is_answer(const char *line, const char *command)
{
	size_t length = strlen(command);
	char code[8] = "0";

	if (strncmp(line, "cmd=", 4) != 0 ||
	    strncmp(line + 4, command, length) != 0 ||
	    (line[4 + length] != '\0' && line[4 + length] != ' '))
		return false;
	if (strstr(line, " rc=") && !find_word(line, "rc", code, sizeof(code)))
		return false;
	return strcmp(code, "0") == 0;
}

/* True if the line has 16 hexadecimal digits in a row, which could be the
 * secret's, whatever the launcher calls them. */
static bool may_have_secret(const char *line)
{
	for (; *line != '\0'; line++)
		if (strspn(line, "0123456789abcdefABCDEF") >= 16)
			return true;
	return false;
}

/* Send talk->line, and let the answer take its place. */
static int ask(struct talk *talk, const char *answer)
{
	size_t length = strlen(talk->line);
	/* A socket to the launcher has room for one line. */
	ssize_t sent =
		send(talk->fd, talk->line, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	int error;

	if (sent < 0 || (size_t)sent != length)
		return fail_socket(talk, sent < 0 ? errno : EIO);
	error = read_line(talk);
	if (error || is_answer(talk->line, answer))
		return error;
	return failure_set(talk->failure, EXIT_PEER, "PMI_FD", 0,
			   "the launcher does not answer with %s: '%.80s'",
			   answer,
			   may_have_secret(talk->line) ? "..." : talk->line);
}

static int tell(struct talk *talk, const char *line, const char *answer)
{
	snprintf(talk->line, sizeof(talk->line), "%s\n", line);
	return ask(talk, answer);
}

static int find_name(struct talk *talk, char name[NAME_BYTES])
{
	int error = tell(talk, "cmd=get_my_kvsname", "my_kvsname");

	if (error || find_word(talk->line, "kvsname", name, NAME_BYTES))
		return error;
	return fail_peer(talk, 0, "the launcher does not name its values");
}

static int put(struct talk *talk, const char *name,
	       const uint8_t secret[PMI_SECRET_BYTES])
{
	char hex[HEX_BYTES];

	sodium_bin2hex(hex, sizeof(hex), secret, PMI_SECRET_BYTES);
	snprintf(talk->line, sizeof(talk->line),
		 "cmd=put kvsname=%s key=blinksort-secret value=%s\n", name,
		 hex);
	sodium_memzero(hex, sizeof(hex));
	return ask(talk, "put_result");
}

static int get(struct talk *talk, const char *name,
	       uint8_t secret[PMI_SECRET_BYTES])
{
	char hex[HEX_BYTES];
	size_t got = 0;
	int error;

	snprintf(talk->line, sizeof(talk->line),
		 "cmd=get kvsname=%s key=blinksort-secret\n", name);
	error = ask(talk, "get_result");
	if (error)
		return error;
	if (find_word(talk->line, "value", hex, sizeof(hex)) &&
	    sodium_hex2bin(secret, PMI_SECRET_BYTES, hex, strlen(hex), NULL,
			   &got, NULL) == 0 &&
	    got == PMI_SECRET_BYTES)
		error = 0;
	else
		error = fail_peer(talk, 0,
				  "the launcher gives another value than "
				  "rank 0's secret");
	sodium_memzero(hex, sizeof(hex));
	return error;
}

static int share(struct talk *talk, bool gives,
		 uint8_t secret[PMI_SECRET_BYTES])
{
	char name[NAME_BYTES];
	int error = tell(talk, "cmd=init pmi_version=1 pmi_subversion=1",
			 "response_to_init");

	if (!error)
		error = find_name(talk, name);
	if (!error && gives)
		error = put(talk, name, secret);
	if (!error)
		error = tell(talk, "cmd=barrier_in", "barrier_out");
	if (!error && !gives)
		error = get(talk, name, secret);
	/* The launcher takes the end of a process that has not said this for a
	 * failure. */
	if (!error)
		error = tell(talk, "cmd=finalize", "finalize_ack");
	return error;
}

int pmi_secret_find_fd(const char *text, struct failure *failure)
{
	struct stat file;
	uint64_t number;

	if (parse_u64(text, STDERR_FILENO + 1, INT_MAX, &number) ||
	    fstat((int)number, &file) < 0 || !S_ISSOCK(file.st_mode))
		return failure_set(failure, EXIT_USAGE, "PMI_FD", 0,
				   "'%.40s': not a socket of this process: "
				   "give --key-file",
				   text);
	return (int)number;
}

int pmi_secret_share(int fd, bool gives, uint64_t deadline_ns,
		     uint8_t secret[PMI_SECRET_BYTES], struct failure *failure)
{
	struct talk talk = {
		.fd = fd,
		.end_ns = clock_now_ns() + deadline_ns,
		.deadline_s = (double)deadline_ns / 1e9,
		.failure = failure,
	};
	int error = share(&talk, gives, secret);

	sodium_memzero(talk.line, sizeof(talk.line));
	return error;
}
