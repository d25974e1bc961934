#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/address.h"
#include "base/base.h"
#include "shell/command.h"
#include "shell/daemon.h"
#include "shell/inbox.h"
#include "shell/replay.h"

/* A daemon in a process of its own, and us as its client.  Datagrams of one
 * socket to another of the same machine keep their order: whatever should get
 * no reply is followed by a STATUS, whose reply must be the next to come. */

static struct daemon_options options = { .key = "the cluster's key" };
static pid_t daemon_pid;
static int client_socket = -1;
static uint8_t node[WIRE_NODE_BYTES];
static uint8_t session[WIRE_SESSION_BYTES];
static uint64_t counter;
static uint32_t next_id;
static uint32_t lease_ms = 3600000;

/* What was received last. */
static uint8_t received[WIRE_LONG_BYTES + 1];
static size_t received_bytes;
static struct command answer;

/* --- requests and replies ------------------------------------------------ */

static void receive(void)
{
	ssize_t bytes = recv(client_socket, received, sizeof(received), 0);

	assert_true(bytes > 0);
	received_bytes = (size_t)bytes;
	assert_int_equal(
		command_open(received, received_bytes, options.key, &answer),
		COMMAND_GOOD);
	assert_memory_equal(answer.node, node, sizeof(node));
}

static void seal(uint8_t *datagram, enum wire_type type, const void *body,
		 size_t body_bytes, size_t length_bytes)
{
	struct command command = { .type = type,
				   .counter = counter,
				   .length_bytes = length_bytes,
				   .body = body,
				   .body_bytes = body_bytes };

	memcpy(command.node, node, sizeof(node));
	if (type != WIRE_HELLO)
		memcpy(command.session, session, sizeof(session));
	command_seal(&command, options.key, datagram);
}

static void send_bytes(const void *bytes, size_t count)
{
	assert_int_equal(send(client_socket, bytes, count, 0), count);
}

static void send_request(enum wire_type type, const void *body,
			 size_t body_bytes, size_t length_bytes)
{
	uint8_t datagram[WIRE_LONG_BYTES];

	counter++;
	seal(datagram, type, body, body_bytes, length_bytes);
	send_bytes(datagram, length_bytes);
}

/* A reply to the last request. */
static void expect(enum wire_type type, size_t length_bytes)
{
	receive();
	assert_int_equal(answer.type, type);
	assert_int_equal(received_bytes, length_bytes);
	assert_int_equal(answer.counter, counter);
	assert_memory_equal(answer.session, session, sizeof(session));
}

static struct wire_node_status status(void)
{
	struct wire_node_status wire;

	send_request(WIRE_STATUS, NULL, 0, WIRE_SHORT_BYTES);
	expect(WIRE_NODE, WIRE_SHORT_BYTES);
	assert_int_equal(answer.body_bytes, sizeof(wire));
	memcpy(&wire, answer.body, sizeof(wire));
	return wire;
}

static void send_hello(const struct wire_hello *hello)
{
	uint8_t datagram[WIRE_SHORT_BYTES];

	counter = 0;
	seal(datagram, WIRE_HELLO, hello, sizeof(*hello), sizeof(datagram));
	send_bytes(datagram, sizeof(datagram));
}

static void open_session(void)
{
	struct wire_hello hello = { .nonce = { 7 } };
	struct wire_session reply;

	next_id++;
	memcpy(hello.nonce + 12, &next_id, sizeof(next_id));
	send_hello(&hello);
	receive();
	assert_int_equal(answer.type, WIRE_SESSION);
	assert_int_equal(received_bytes, WIRE_SHORT_BYTES);
	memcpy(&reply, answer.body, sizeof(reply));
	assert_memory_equal(reply.nonce, hello.nonce, sizeof(reply.nonce));
	memcpy(session, reply.session, sizeof(session));
}

static struct wire_job_request new_job(void)
{
	struct wire_job_request job = { .job = { 9 } };

	next_id++;
	memcpy(job.job + 12, &next_id, sizeof(next_id));
	return job;
}

/* START of "/bin/sh -c SCRIPT". */
static void send_start_of(const struct wire_job_request *job,
			  const char *script, bool is_long)
{
	static const char sh[] = "/bin/sh\0-c";
	struct wire_start head = {
		.node_count = le32_store(1),
		.lease_ms = le32_store(lease_ms),
		.argument_count = le32_store(3),
		.host_bytes = le32_store(1),
	};
	uint8_t body[WIRE_LONG_BODY_BYTES];
	size_t bytes = sizeof(head);

	memcpy(head.job, job->job, sizeof(head.job));
	memcpy(body, &head, sizeof(head));
	memcpy(body + bytes, sh, sizeof(sh));
	bytes += sizeof(sh);
	memcpy(body + bytes, script, strlen(script) + 1);
	bytes += strlen(script) + 1;
	body[bytes++] = 'h';
	send_request(WIRE_START, body, bytes,
		     is_long ? WIRE_LONG_BYTES : WIRE_SHORT_BYTES);
}

/* Of a new job. */
static struct wire_job_request send_start(const char *script, bool is_long)
{
	struct wire_job_request job = new_job();

	send_start_of(&job, script, is_long);
	return job;
}

static void send_about(enum wire_type type, const struct wire_job_request *job)
{
	send_request(type, job, sizeof(*job), WIRE_SHORT_BYTES);
}

/* A JOB, in answer to the last request. */
static struct wire_job expect_job(const struct wire_job_request *job,
				  enum wire_job_state state, int code,
				  size_t length_bytes)
{
	struct wire_job wire;

	expect(WIRE_JOB, length_bytes);
	memcpy(&wire, answer.body, sizeof(wire));
	assert_memory_equal(wire.job, job->job, sizeof(wire.job));
	assert_int_equal(le32_load(wire.state), state);
	assert_int_equal(le32_load(wire.code), code);
	return wire;
}

static const char *tails(void)
{
	static char text[WIRE_LONG_BYTES];
	size_t bytes = answer.body_bytes - sizeof(struct wire_job);

	memcpy(text, answer.body + sizeof(struct wire_job), bytes);
	text[bytes] = '\0';
	return text;
}

/* --- the daemon ---------------------------------------------------------- */

static void run_daemon(struct daemon *daemon)
{
	struct failure failure = { .status = EXIT_DONE };

	if (daemon_begin(daemon, &failure) == 0)
		daemon_run(daemon, &failure);
	daemon_close(daemon);
	allowlist_free(&options.allow);
	exit((int)failure.status);
}

/* Port 0: one that is free. */
static void set_any_port(struct address *address)
{
	((struct sockaddr_in *)&address->socket)->sin_port = 0;
}

static int set_up(void **state)
{
	struct failure failure;
	struct address address;
	struct daemon *daemon;

	(void)state;
	if (address_parse("127.0.0.1", &options.listen) < 0)
		return -1;
	set_any_port(&options.listen);
	if (daemon_open(&daemon, &options, &failure) < 0)
		return -1;
	command_node(daemon_node(daemon), node);
	if (address_parse(daemon_node(daemon), &address) < 0)
		return -1;
	fflush(NULL);
	daemon_pid = fork();
	if (daemon_pid == 0)
		run_daemon(daemon);
	daemon_close(daemon);
	client_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (connect(client_socket, (struct sockaddr *)&address.socket,
		    address.length) < 0)
		return -1;
	open_session();
	return 0;
}

static void expect_stop(void)
{
	int wait_status;

	assert_int_equal(waitpid(daemon_pid, &wait_status, 0), daemon_pid);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), 0);
	daemon_pid = 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(client_socket);
	if (daemon_pid > 0) {
		kill(daemon_pid, SIGTERM);
		expect_stop();
	}
	return 0;
}

/* --- silence ------------------------------------------------------------- */

static void open__no_address_of_its_own(void **state)
{
	struct daemon_options wild = { .key = "k" };
	struct failure failure = { .status = EXIT_DONE };
	struct daemon *daemon;

	(void)state;
	assert_int_equal(address_parse("0.0.0.0:7300", &wild.listen), 0);
	assert_true(daemon_open(&daemon, &wild, &failure) < 0);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_int_equal(address_parse("[::]:7300", &wild.listen), 0);
	assert_true(daemon_open(&daemon, &wild, &failure) < 0);
	/* Of no interface here. */
	assert_int_equal(address_parse("192.0.2.1:7300", &wild.listen), 0);
	assert_true(daemon_open(&daemon, &wild, &failure) < 0);
	assert_int_equal(failure.status, EXIT_PEER);
}

static void hello__once(void **state)
{
	struct wire_hello hello = { .nonce = "nonce" };
	uint8_t datagram[WIRE_SHORT_BYTES];
	uint64_t before = counter;

	(void)state;
	counter = 0;
	seal(datagram, WIRE_HELLO, &hello, sizeof(hello), sizeof(datagram));
	send_bytes(datagram, sizeof(datagram));
	receive();
	assert_int_equal(answer.type, WIRE_SESSION);
	send_bytes(datagram, sizeof(datagram));
	counter = before;
	assert_int_equal(le64_load(status().refused_replay), 1);
}

static void take__strangers(void **state)
{
	static const uint8_t junk[WIRE_LONG_BYTES + 300] = { 1, 2, 3 };
	static const size_t lengths[] = {
		0, 1, 79, 255, 257, 1199, 1201, 1500
	};
	struct wire_node_status wire;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		send_bytes(junk, lengths[i]);
	send_bytes(junk, WIRE_SHORT_BYTES);
	send_bytes(junk, WIRE_LONG_BYTES);
	wire = status();
	assert_int_equal(le64_load(wire.refused_length), ARRAY_LEN(lengths));
	assert_int_equal(le64_load(wire.refused_tag), 2);
	assert_int_equal(le64_load(wire.refused_replay), 0);
	assert_int_equal(le64_load(wire.refused_fields), 0);
}

static void take__what_was_heard_before(void **state)
{
	uint8_t datagram[WIRE_SHORT_BYTES];

	(void)state;
	counter++;
	seal(datagram, WIRE_STATUS, NULL, 0, sizeof(datagram));
	send_bytes(datagram, sizeof(datagram));
	expect(WIRE_NODE, WIRE_SHORT_BYTES);
	send_bytes(datagram, sizeof(datagram));
	/* And its reply, sent back. */
	send_bytes(received, received_bytes);
	assert_int_equal(le64_load(status().refused_replay), 1);
	assert_int_equal(le64_load(status().refused_fields), 1);
}

static void take__other_node_or_session(void **state)
{
	uint8_t saved[WIRE_NODE_BYTES];
	uint8_t datagram[WIRE_SHORT_BYTES];

	(void)state;
	memcpy(saved, node, sizeof(node));
	node[3] ^= 1;
	counter++;
	seal(datagram, WIRE_STATUS, NULL, 0, sizeof(datagram));
	send_bytes(datagram, sizeof(datagram));
	memcpy(node, saved, sizeof(node));
	assert_int_equal(le64_load(status().refused_fields), 1);

	memcpy(saved, session, sizeof(session));
	session[3] ^= 1;
	counter++;
	seal(datagram, WIRE_STATUS, NULL, 0, sizeof(datagram));
	send_bytes(datagram, sizeof(datagram));
	/* In its own session, so that the client knows which it was. */
	expect(WIRE_NO_SESSION, WIRE_SHORT_BYTES);
	memcpy(session, saved, sizeof(session));
	assert_int_equal(le64_load(status().refused_replay), 1);
}

/* A long request gets no long answer. */
static void take__long_request_of_no_session(void **state)
{
	struct wire_job_request job;
	uint8_t saved[WIRE_SESSION_BYTES];

	(void)state;
	memcpy(saved, session, sizeof(session));
	session[3] ^= 1;
	job = send_start("exit 0", true);
	expect(WIRE_NO_SESSION, WIRE_SHORT_BYTES);
	memcpy(session, saved, sizeof(session));
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_UNKNOWN, 0, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().started), 0);
}

/* Open so many sessions, each used, and return to the one there was. */
static void let_others_in(unsigned count)
{
	uint8_t saved[WIRE_SESSION_BYTES];
	uint64_t saved_counter = counter;

	memcpy(saved, session, sizeof(session));
	for (unsigned i = 0; i < count; i++) {
		open_session();
		status();
	}
	memcpy(session, saved, sizeof(session));
	counter = saved_counter;
}

static void hello__a_job_keeps_its_session(void **state)
{
	struct wire_job_request job = send_start("exec sleep 1000", false);

	(void)state;
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	let_others_in(2 * REPLAY_SESSIONS);
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	send_about(WIRE_CANCEL, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
	/* No longer than it runs. */
	let_others_in(2 * REPLAY_SESSIONS);
	send_about(WIRE_RENEW, &job);
	expect(WIRE_NO_SESSION, WIRE_SHORT_BYTES);
	open_session();
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
}

/* The table was used up before.  Each says HELLO again until it is served. */
static void hello__a_hundred_at_once(void **state)
{
	enum { CLIENTS = 100 };
	uint8_t sessions[CLIENTS][WIRE_SESSION_BYTES];
	unsigned waiting = CLIENTS, rounds = 0;

	(void)state;
	let_others_in(REPLAY_SESSIONS);
	for (; waiting > 0; rounds++) {
		unsigned served = 0;

		for (unsigned i = 0; i < waiting; i++) {
			open_session();
			memcpy(sessions[i], session, sizeof(session));
		}
		for (unsigned i = 0; i < waiting; i++) {
			memcpy(session, sessions[i], sizeof(session));
			counter = 0;
			send_request(WIRE_STATUS, NULL, 0, WIRE_SHORT_BYTES);
			receive();
			served += answer.type == WIRE_NODE;
			assert_true(answer.type == WIRE_NODE ||
				    answer.type == WIRE_NO_SESSION);
		}
		assert_true(served >= MIN(waiting, REPLAY_SESSIONS_FRESH));
		waiting -= served;
	}
	assert_int_equal(rounds, 2);
}

static void start__malformed(void **state)
{
	struct wire_start head = { .node_count = le32_store(1),
				   .argument_count = le32_store(77),
				   .host_bytes = le32_store(1) };

	(void)state;
	send_request(WIRE_START, &head, sizeof(head), WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().refused_fields), 1);
	assert_int_equal(le64_load(status().started), 0);
}

/* --- jobs ---------------------------------------------------------------- */

static void start__one_request_one_reply(void **state)
{
	struct wire_job_request job;
	struct wire_job wire;

	(void)state;
	job = send_start("echo out; echo err >&2; exit 3", false);
	wire = expect_job(&job, WIRE_JOB_EXITED, 3, WIRE_SHORT_BYTES);
	assert_string_equal(tails(), "out\nerr\n");
	assert_int_equal(le32_load(wire.stdout_bytes), 4);
	assert_int_equal(le32_load(wire.stderr_bytes), 4);
	assert_int_equal(le64_load(wire.stdout_total), 4);
	assert_true(le64_load(wire.elapsed_ns) > 0);
	assert_true(le64_load(wire.max_rss_bytes) > 0);
}

/* stderr first, then as much of stdout's end as there is room for. */
static void start__tails(void **state)
{
	size_t room = WIRE_LONG_BODY_BYTES - sizeof(struct wire_job);
	struct wire_job_request job;
	struct wire_job wire;

	(void)state;
	job = send_start("seq -w 1000 2000; echo err >&2", true);
	wire = expect_job(&job, WIRE_JOB_EXITED, 0, WIRE_LONG_BYTES);
	assert_int_equal(le64_load(wire.stdout_total), 5 * 1001);
	assert_int_equal(le32_load(wire.stdout_bytes), room - 4);
	assert_int_equal(strlen(tails()), room);
	assert_string_equal(tails() + room - 14, "1999\n2000\nerr\n");

	job = send_start("seq -w 1000 2000 >&2; echo out", false);
	wire = expect_job(&job, WIRE_JOB_EXITED, 0, WIRE_SHORT_BYTES);
	assert_int_equal(le32_load(wire.stdout_bytes), 0);
	assert_int_equal(le64_load(wire.stdout_total), 4);
}

static void start__twice_runs_once(void **state)
{
	struct wire_job_request job = send_start("exit 4", false);

	(void)state;
	expect_job(&job, WIRE_JOB_EXITED, 4, WIRE_SHORT_BYTES);
	send_start_of(&job, "exit 5", false);
	expect_job(&job, WIRE_JOB_EXITED, 4, WIRE_SHORT_BYTES);
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_EXITED, 4, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().started), 1);
}

/* Its result has made room for those of others, and it must not run again. */
static void start__twice_and_others_between(void **state)
{
	struct wire_job_request job = send_start("exit 4", false);
	struct wire_job_request others[2 * JOBS_MAX];

	(void)state;
	expect_job(&job, WIRE_JOB_EXITED, 4, WIRE_SHORT_BYTES);
	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		others[i] = send_start("exit 0", false);
		expect_job(&others[i], WIRE_JOB_EXITED, 0, WIRE_SHORT_BYTES);
	}
	send_start_of(&job, "exit 5", false);
	expect_job(&job, WIRE_JOB_FORGOTTEN, 0, WIRE_SHORT_BYTES);
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_FORGOTTEN, 0, WIRE_SHORT_BYTES);
	send_about(WIRE_CANCEL, &job);
	expect_job(&job, WIRE_JOB_FORGOTTEN, 0, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().started), 1 + ARRAY_LEN(others));
}

static void start__twice_while_it_runs(void **state)
{
	struct wire_job_request job = send_start("exec sleep 1000", false);

	(void)state;
	send_start_of(&job, "exec sleep 1000", true);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_LONG_BYTES);
	assert_int_equal(le64_load(status().running), 1);
	send_about(WIRE_CANCEL, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	/* The end is told unasked, to the client that asked last. */
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().running), 0);
	assert_int_equal(le64_load(status().started), 1);
}

static void start__refused(void **state)
{
	struct wire_job_request job = { .job = "refused" };
	struct wire_start head = { .job = "refused",
				   .node_count = le32_store(1),
				   .argument_count = le32_store(1),
				   .host_bytes = le32_store(1) };
	static const char texts[] = "/etc/passwd\0h";
	uint8_t body[sizeof(head) + sizeof(texts) - 1];

	(void)state;
	memcpy(body, &head, sizeof(head));
	memcpy(body + sizeof(head), texts, sizeof(texts) - 1);
	send_request(WIRE_START, body, sizeof(body), WIRE_SHORT_BYTES);
	expect_job(&job, WIRE_JOB_REFUSED, EPERM, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().started), 0);
}

static void start__too_many_arguments(void **state)
{
	struct wire_job_request job = { .job = "many" };
	uint32_t count = START_ARGUMENTS_MAX + 1;
	struct wire_start head = { .job = "many",
				   .node_count = le32_store(1),
				   .argument_count = le32_store(count),
				   .host_bytes = le32_store(1) };
	uint8_t body[sizeof(head) + START_ARGUMENTS_MAX + 2] = { 0 };

	(void)state;
	memcpy(body, &head, sizeof(head));
	body[sizeof(body) - 1] = 'h';
	send_request(WIRE_START, body, sizeof(body), WIRE_LONG_BYTES);
	expect_job(&job, WIRE_JOB_REFUSED, E2BIG, WIRE_LONG_BYTES);
}

static void start__full(void **state)
{
	struct wire_job_request job;

	(void)state;
	for (unsigned i = 0; i < JOBS_MAX; i++)
		send_start("exec sleep 1000", false);
	while (le64_load(status().running) < JOBS_MAX)
		;
	job = send_start("exit 0", false);
	expect_job(&job, WIRE_JOB_REFUSED, EAGAIN, WIRE_SHORT_BYTES);
	/* Refused it stays: its client has given it up. */
	send_start_of(&job, "exit 0", true);
	expect_job(&job, WIRE_JOB_REFUSED, EAGAIN, WIRE_LONG_BYTES);
}

static void renew__unknown(void **state)
{
	struct wire_job_request job = { .job = "nobody's" };

	(void)state;
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_UNKNOWN, 0, WIRE_SHORT_BYTES);
	send_about(WIRE_CANCEL, &job);
	expect_job(&job, WIRE_JOB_UNKNOWN, 0, WIRE_SHORT_BYTES);
}

static void cancel_before_start(const struct wire_job_request *job)
{
	send_about(WIRE_CANCEL, job);
	expect_job(job, WIRE_JOB_UNKNOWN, 0, WIRE_SHORT_BYTES);
}

static void cancel__overtakes_the_start(void **state)
{
	struct wire_job_request job = new_job();
	struct wire_job_request other;

	(void)state;
	cancel_before_start(&job);
	send_start_of(&job, "exit 0", true);
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_LONG_BYTES);
	/* And so each time; others may start. */
	send_start_of(&job, "exit 0", false);
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
	assert_int_equal(le64_load(status().started), 0);
	other = send_start("exit 0", false);
	expect_job(&other, WIRE_JOB_EXITED, 0, WIRE_SHORT_BYTES);
	/* It is not a job that one could ask about. */
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_UNKNOWN, 0, WIRE_SHORT_BYTES);
}

/* More of them than jobs that can run, each cancelled twice. */
static void cancel__many_overtake_their_start(void **state)
{
	struct wire_job_request jobs[JOBS_MAX + 1];

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(jobs); i++) {
		jobs[i] = new_job();
		cancel_before_start(&jobs[i]);
		cancel_before_start(&jobs[i]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(jobs); i++) {
		send_start_of(&jobs[i], "exit 0", false);
		expect_job(&jobs[i], WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
	}
	assert_int_equal(le64_load(status().started), 0);
}

/* From another session: that is where the end is told. */
static void renew__from_elsewhere(void **state)
{
	struct wire_job_request job = send_start("exec sleep 1000", false);
	int first_socket = client_socket;
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	(void)state;
	getpeername(first_socket, (struct sockaddr *)&peer, &length);
	client_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		connect(client_socket, (struct sockaddr *)&peer, length), 0);
	open_session();
	send_about(WIRE_RENEW, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	send_about(WIRE_CANCEL, &job);
	expect_job(&job, WIRE_JOB_RUNNING, 0, WIRE_SHORT_BYTES);
	expect_job(&job, WIRE_JOB_CANCELLED, 0, WIRE_SHORT_BYTES);
	assert_int_equal(recv(first_socket, received, 1, MSG_DONTWAIT), -1);
	close(first_socket);
}

static enum wire_job_state receive_state(void)
{
	struct wire_job wire;

	receive();
	assert_int_equal(answer.type, WIRE_JOB);
	memcpy(&wire, answer.body, sizeof(wire));
	return (enum wire_job_state)le32_load(wire.state);
}

/* How a job ends that is renewed while the daemon is stopped, for longer than
 * the lease, and cancelled then; behind so much junk that one round's datagrams
 * are no others. */
static enum wire_job_state end_after_a_stop(void)
{
	struct timespec pause = { lease_ms / 500, lease_ms % 500 * 2000000L };
	struct wire_job_request job = send_start("exec sleep 1000", false);
	enum wire_job_state end;
	int wait_status;

	send_about(WIRE_RENEW, &job);
	receive_state();
	kill(daemon_pid, SIGSTOP);
	assert_int_equal(waitpid(daemon_pid, &wait_status, WUNTRACED),
			 daemon_pid);
	assert_true(WIFSTOPPED(wait_status));
	nanosleep(&pause, NULL);
	for (unsigned i = 0; i < INBOX_DATAGRAMS_MAX; i++)
		send_bytes("x", 1);
	send_about(WIRE_RENEW, &job);
	send_about(WIRE_CANCEL, &job);
	kill(daemon_pid, SIGCONT);
	do
		end = receive_state();
	while (end == WIRE_JOB_RUNNING || answer.counter != counter);
	return end;
}

static void renew__while_the_daemon_is_stopped(void **state)
{
	enum wire_job_state end;

	(void)state;
	/* A slow machine may need the lease before the stop. */
	lease_ms = 250;
	while ((end = end_after_a_stop()) == WIRE_JOB_LEASE_EXPIRED &&
	       lease_ms < 16000)
		lease_ms *= 4;
	assert_int_equal(end, WIRE_JOB_CANCELLED);
	lease_ms = 3600000;
}

static uint32_t ask_output(const struct wire_job_request *job, uint32_t stream,
			   uint64_t offset, uint32_t bytes)
{
	struct wire_output wire = { .stream = le32_store(stream),
				    .bytes = le32_store(bytes),
				    .offset = le64_store(offset) };

	memcpy(wire.job, job->job, sizeof(wire.job));
	send_request(WIRE_OUTPUT, &wire, sizeof(wire), WIRE_LONG_BYTES);
	expect(WIRE_OUTPUT_PART, WIRE_LONG_BYTES);
	memcpy(&wire, answer.body, sizeof(wire));
	assert_int_equal(le32_load(wire.stream), stream);
	assert_int_equal(le64_load(wire.offset), offset);
	assert_int_equal(answer.body_bytes,
			 sizeof(wire) + le32_load(wire.bytes));
	return le32_load(wire.bytes);
}

static void output__parts(void **state)
{
	struct wire_job_request job =
		send_start("seq -w 10000 30000; echo err >&2", false);
	struct wire_job_request unknown = { .job = "nobody's" };
	uint64_t total = 6 * 20001;

	(void)state;
	expect_job(&job, WIRE_JOB_EXITED, 0, WIRE_SHORT_BYTES);
	assert_int_equal(ask_output(&job, 1, total - 12, 1000), 12);
	assert_memory_equal(answer.body + sizeof(struct wire_output),
			    "29999\n30000\n", 12);
	assert_int_equal(ask_output(&job, 1, total - 12, 6), 6);
	assert_int_equal(ask_output(&job, 1, total - 6000, UINT32_MAX),
			 WIRE_LONG_BODY_BYTES - sizeof(struct wire_output));
	assert_memory_equal(answer.body + sizeof(struct wire_output), "29001\n",
			    6);
	assert_int_equal(ask_output(&job, 2, 0, 100), 4);
	/* Gone, not there, no such stream, no such job. */
	assert_int_equal(ask_output(&job, 1, 0, 100), 0);
	assert_int_equal(ask_output(&job, 1, total, 100), 0);
	assert_int_equal(ask_output(&job, 1, UINT64_MAX, 100), 0);
	assert_int_equal(ask_output(&job, 0, 0, 100), 0);
	assert_int_equal(ask_output(&job, 3, 0, 100), 0);
	assert_int_equal(ask_output(&unknown, 1, 0, 100), 0);
}

static void status__memory(void **state)
{
	struct wire_node_status wire = status();

	(void)state;
	assert_true(le64_load(wire.resident_bytes) > 0);
	assert_true(le64_load(wire.uptime_ns) > 0);
}

/* --- the end ------------------------------------------------------------- */

static void run__stops_with_its_jobs(void **state)
{
	struct wire_job_request job =
		send_start("(setsid sleep 1000 &); exec sleep 1000", false);

	(void)state;
	while (le64_load(status().running) < 1)
		;
	kill(daemon_pid, SIGTERM);
	/* The last request was a STATUS; the START is what is answered. */
	receive();
	assert_int_equal(answer.type, WIRE_JOB);
	assert_memory_equal(answer.body, job.job, sizeof(job.job));
	expect_stop();
}

#define DAEMON_TEST(name)                                                      \
	cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open__no_address_of_its_own),
		DAEMON_TEST(hello__once),
		DAEMON_TEST(take__strangers),
		DAEMON_TEST(take__what_was_heard_before),
		DAEMON_TEST(take__other_node_or_session),
		DAEMON_TEST(take__long_request_of_no_session),
		DAEMON_TEST(hello__a_job_keeps_its_session),
		DAEMON_TEST(hello__a_hundred_at_once),
		DAEMON_TEST(start__malformed),
		DAEMON_TEST(start__one_request_one_reply),
		DAEMON_TEST(start__tails),
		DAEMON_TEST(start__twice_runs_once),
		DAEMON_TEST(start__twice_and_others_between),
		DAEMON_TEST(start__twice_while_it_runs),
		DAEMON_TEST(start__refused),
		DAEMON_TEST(start__too_many_arguments),
		DAEMON_TEST(start__full),
		DAEMON_TEST(renew__unknown),
		DAEMON_TEST(cancel__overtakes_the_start),
		DAEMON_TEST(cancel__many_overtake_their_start),
		DAEMON_TEST(renew__from_elsewhere),
		DAEMON_TEST(renew__while_the_daemon_is_stopped),
		DAEMON_TEST(output__parts),
		DAEMON_TEST(status__memory),
		DAEMON_TEST(run__stops_with_its_jobs),
	};
	int ret;

	if (command_init() < 0 || allowlist_add(&options.allow, "/bin") < 0)
		return 1;
	ret = cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
	allowlist_free(&options.allow);
	return ret;
}
