/* daemon.c - the loop of blinkd: datagrams in, jobs started, replies out */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/failure.h"
#include "net/address.h"
#include "shell/command.h"
#include "shell/daemon.h"
#include "shell/history.h"
#include "shell/inbox.h"
#include "shell/job.h"
#include "shell/replay.h"
#include "shell/start.h"
#include "system/small_file.h"

/* Batches that a socket may hold unread. */
#define LAST_BATCHES 8

/* Each running job holds the session that its end is told to. */
static_assert(REPLAY_SESSIONS > JOBS_MAX + REPLAY_SESSIONS_FRESH,
	      "some sessions can make room");

/* Return address of a reply, and the request that it answers. */
struct requester {
	bool holds; /* keeps its session, since its job runs */
	struct address address;
	uint8_t session[WIRE_SESSION_BYTES];
	uint64_t counter;
	size_t length_bytes; /* of the request: the most a reply may have */
};

/* Counts of datagrams that were refused, by the first check that they failed.
 */
struct refusals {
	uint64_t length, tag, replay, fields;
};

struct daemon {
	const struct daemon_options *options;
	int socket;
	char node_text[ADDRESS_TEXT_BYTES];
	uint8_t node[WIRE_NODE_BYTES];
	uint64_t begin_ns;
	bool has_begun;
	int signal_fd;
	bool asked_to_stop;
	struct refusals refusals;
	struct replay replay;
	struct job_table table;
	struct history cancelled; /* ids of jobs cancelled before their START */
	struct requester requesters[2 * JOBS_MAX]; /* [i]: of table.jobs[i] */
	struct start start;
	struct inbox inbox;
};

/* --- replies ------------------------------------------------------------- */

/* A full socket, or an interface that is down, loses the reply as the network
 * may: the client repeats its request. */
static void reply(struct daemon *daemon, const struct requester *to,
		  enum wire_type type, const void *body, size_t body_bytes)
{
	uint8_t datagram[WIRE_LONG_BYTES];
	struct command command = {
		.type = type,
		.counter = to->counter,
		.length_bytes = to->length_bytes,
		.body = body,
		.body_bytes = body_bytes,
	};

	memcpy(command.node, daemon->node, WIRE_NODE_BYTES);
	memcpy(command.session, to->session, WIRE_SESSION_BYTES);
	command_seal(&command, daemon->options->key, datagram);
	(void)sendto(daemon->socket, datagram, to->length_bytes,
		     MSG_DONTWAIT | MSG_NOSIGNAL,
		     (const struct sockaddr *)&to->address.socket,
		     to->address.length);
}

static size_t body_room(const struct requester *to)
{
	return to->length_bytes - WIRE_HEADER_BYTES;
}

/* Copies the last bytes of a stream, as many as there is room for. */
static size_t put_tail(const struct stream *stream, uint8_t *to, size_t room)
{
	uint64_t begin = stream_begin(stream);

	if (stream->total_bytes - begin > room)
		begin = stream->total_bytes - room;
	return stream_copy(stream, begin, to, room);
}

/* Fills the body with the state of the job and, as far as there is room, the
 * last bytes of its output, stderr first to be kept.  body_bytes is the room,
 * at least sizeof(struct wire_job).  Returns how many bytes were written. */
static size_t put_job(const struct job *job, uint8_t *body, size_t body_bytes)
{
	const struct stream *out = &job->streams[JOB_STDOUT];
	const struct stream *err = &job->streams[JOB_STDERR];
	size_t room = body_bytes - sizeof(struct wire_job);
	uint8_t *tails = body + sizeof(struct wire_job);
	uint64_t end_ns = job->end_ns ? job->end_ns : clock_now_ns();
	size_t err_bytes = MIN(room, err->total_bytes);
	size_t out_bytes = put_tail(out, tails, room - err_bytes);
	struct wire_job wire = {
		.state = le32_store(job->state),
		.code = le32_store((uint32_t)job->code),
		.elapsed_ns = le64_store(end_ns - job->begin_ns),
		.user_ns = le64_store(job->user_ns),
		.system_ns = le64_store(job->system_ns),
		.max_rss_bytes = le64_store(job->max_rss_bytes),
		.stdout_total = le64_store(out->total_bytes),
		.stderr_total = le64_store(err->total_bytes),
		.stdout_bytes = le32_store((uint32_t)out_bytes),
	};

	err_bytes = put_tail(err, tails + out_bytes, err_bytes);
	wire.stderr_bytes = le32_store((uint32_t)err_bytes);
	memcpy(wire.job, job->id, WIRE_JOB_BYTES);
	memcpy(body, &wire, sizeof(wire));
	return sizeof(wire) + out_bytes + err_bytes;
}

static void reply_job(struct daemon *daemon, const struct requester *to,
		      const struct job *job)
{
	uint8_t body[WIRE_LONG_BODY_BYTES];

	reply(daemon, to, WIRE_JOB, body, put_job(job, body, body_room(to)));
}

/* Replies about a job that is not in the table. */
static void reply_no_job(struct daemon *daemon, const struct requester *to,
			 const uint8_t *id, enum wire_job_state state, int code)
{
	struct wire_job wire = {
		.state = le32_store(state),
		.code = le32_store((uint32_t)code),
	};

	memcpy(wire.job, id, WIRE_JOB_BYTES);
	reply(daemon, to, WIRE_JOB, &wire, sizeof(wire));
}

static struct requester *requester_of(struct daemon *daemon,
				      const struct job *job)
{
	return &daemon->requesters[job - daemon->table.jobs];
}

static void release_session(struct daemon *daemon, struct requester *requester)
{
	if (requester->holds)
		replay_release(&daemon->replay, requester->session);
	requester->holds = false;
}

/* Tells the end of the job to this client, whose session has just been seen,
 * from now on. */
static void set_requester(struct daemon *daemon, const struct job *job,
			  const struct requester *from)
{
	struct requester *requester = requester_of(daemon, job);

	release_session(daemon, requester);
	*requester = *from;
	requester->holds = job->state == WIRE_JOB_RUNNING;
	if (requester->holds)
		replay_hold(&daemon->replay, requester->session);
}

static void tell_end(struct job *job, void *context)
{
	struct daemon *daemon = context;

	release_session(daemon, requester_of(daemon, job));
	reply_job(daemon, requester_of(daemon, job), job);
}

/* --- requests ------------------------------------------------------------ */

static void handle_hello(struct daemon *daemon, const struct command *command,
			 const struct requester *from)
{
	struct wire_session session;
	const uint8_t *id;

	memcpy(session.nonce, command->body, sizeof(session.nonce));
	id = replay_open_session(&daemon->replay, session.nonce);
	if (!id) {
		daemon->refusals.replay++;
		return;
	}
	memcpy(session.session, id, WIRE_SESSION_BYTES);
	memcpy(session.epoch, daemon->replay.epoch, WIRE_EPOCH_BYTES);
	reply(daemon, from, WIRE_SESSION, &session, sizeof(session));
}

/* Replies how a job is, and will tell its end to this client. */
static void handle_known(struct daemon *daemon, struct job *job,
			 const struct requester *from)
{
	set_requester(daemon, job, from);
	job_renew(job, clock_now_ns());
	reply_job(daemon, from, job);
}

static void start_job(struct daemon *daemon, const struct requester *from)
{
	const struct start *start = &daemon->start;
	uint8_t secret[WIRE_SECRET_BYTES];
	struct job *job;

	command_job_secret(daemon->options->key, start->job, secret);
	job = job_start(&daemon->table, &(struct job_start){
						.id = start->job,
						.arguments = start->arguments,
						.rank = start->rank,
						.node_count = start->node_count,
						.lease_ms = start->lease_ms,
						.timeout_ms = start->timeout_ms,
						.host = start->host,
						.hosts = start->hosts,
						.secret = secret,
					});
	set_requester(daemon, job, from);
	if (job->state == WIRE_JOB_REFUSED)
		reply_job(daemon, from, job);
}

static void handle_start(struct daemon *daemon, const struct command *command,
			 const struct requester *from)
{
	int error =
		start_parse(command->body, command->body_bytes, &daemon->start);
	struct job *job;

	if (error == -EINVAL) {
		daemon->refusals.fields++;
		return;
	}
	job = job_find(&daemon->table, daemon->start.job);
	if (job)
		handle_known(daemon, job, from);
	else if (job_is_forgotten(&daemon->table, daemon->start.job))
		reply_no_job(daemon, from, daemon->start.job,
			     WIRE_JOB_FORGOTTEN, 0);
	else if (history_has(&daemon->cancelled, daemon->start.job))
		reply_no_job(daemon, from, daemon->start.job,
			     WIRE_JOB_CANCELLED, 0);
	else if (error < 0)
		reply_no_job(daemon, from, daemon->start.job, WIRE_JOB_REFUSED,
			     -error);
	else
		start_job(daemon, from);
}

static void handle_renew(struct daemon *daemon, const struct command *command,
			 const struct requester *from)
{
	struct job *job = job_find(&daemon->table, command->body);

	if (job)
		handle_known(daemon, job, from);
	else
		reply_no_job(daemon, from, command->body,
			     job_is_forgotten(&daemon->table, command->body)
				     ? WIRE_JOB_FORGOTTEN
				     : WIRE_JOB_UNKNOWN,
			     0);
}

static void handle_cancel(struct daemon *daemon, const struct command *command,
			  const struct requester *from)
{
	struct job *job = job_find(&daemon->table, command->body);

	if (job)
		job_kill(job, WIRE_JOB_CANCELLED, clock_now_ns());
	else if (!job_is_forgotten(&daemon->table, command->body) &&
		 !history_has(&daemon->cancelled, command->body))
		history_add(&daemon->cancelled, command->body);
	handle_renew(daemon, command, from);
}

static const struct stream *stream_of(struct daemon *daemon,
				      const struct wire_output *wire)
{
	struct job *job = job_find(&daemon->table, wire->job);
	uint32_t number = le32_load(wire->stream);

	if (!job || number < 1 || number > JOB_STREAMS)
		return NULL;
	return &job->streams[number - 1];
}

/* Leaves out bytes that are not kept, no longer or not yet: all, perhaps. */
static void handle_output(struct daemon *daemon, const struct command *command,
			  const struct requester *from)
{
	uint8_t body[WIRE_LONG_BODY_BYTES];
	size_t room = body_room(from) - sizeof(struct wire_output);
	const struct stream *stream;
	struct wire_output wire;
	size_t bytes = 0;

	memcpy(&wire, command->body, sizeof(wire));
	stream = stream_of(daemon, &wire);
	if (stream)
		bytes = stream_copy(stream, le64_load(wire.offset),
				    body + sizeof(wire),
				    MIN(room, le32_load(wire.bytes)));
	wire.bytes = le32_store((uint32_t)bytes);
	memcpy(body, &wire, sizeof(wire));
	reply(daemon, from, WIRE_OUTPUT_PART, body, sizeof(wire) + bytes);
}

/* The second number of the file is in pages.  0 if it cannot be read. */
static uint64_t resident_bytes(void)
{
	char text[128], *rest;

	if (!small_file_read(text, sizeof(text), "/proc/self/statm"))
		return 0;
	strtoul(text, &rest, 10);
	return strtoul(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void handle_status(struct daemon *daemon, const struct requester *from)
{
	const struct refusals *refusals = &daemon->refusals;
	struct wire_node_status wire = {
		.uptime_ns = le64_store(clock_now_ns() - daemon->begin_ns),
		.started = le64_store(daemon->table.started),
		.running = le64_store(daemon->table.running_count),
		.refused_length = le64_store(refusals->length),
		.refused_tag = le64_store(refusals->tag),
		.refused_replay = le64_store(refusals->replay),
		.refused_fields = le64_store(refusals->fields),
		.resident_bytes = le64_store(resident_bytes()),
	};

	reply(daemon, from, WIRE_NODE, &wire, sizeof(wire));
}

/* The command is a request to this node, and fresh. */
static void dispatch(struct daemon *daemon, const struct command *command,
		     const struct requester *from)
{
	switch (command->type) {
	case WIRE_HELLO:
		handle_hello(daemon, command, from);
		break;
	case WIRE_START:
		handle_start(daemon, command, from);
		break;
	case WIRE_RENEW:
		handle_renew(daemon, command, from);
		break;
	case WIRE_CANCEL:
		handle_cancel(daemon, command, from);
		break;
	case WIRE_OUTPUT:
		handle_output(daemon, command, from);
		break;
	case WIRE_STATUS:
		handle_status(daemon, from);
		break;
	default:
		daemon->refusals.fields++;
		break;
	}
}

/* The reply has the shorter length, however long the request: requests with a
 * forged sender's address bring its owner no more bytes than they cost. */
static void reply_no_session(struct daemon *daemon,
			     const struct requester *from)
{
	struct requester to = *from;

	to.length_bytes = WIRE_SHORT_BYTES;
	reply(daemon, &to, WIRE_NO_SESSION, NULL, 0);
}

/* A HELLO has no session yet: handle_hello() looks at its nonce. */
static bool is_fresh(struct daemon *daemon, const struct command *command,
		     const struct requester *from)
{
	enum replay_verdict verdict;

	if (command->type == WIRE_HELLO)
		return true;
	verdict = replay_accept(&daemon->replay, command->session,
				command->counter);
	if (verdict == REPLAY_NO_SESSION)
		reply_no_session(daemon, from);
	if (verdict != REPLAY_ACCEPTED)
		daemon->refusals.replay++;
	return verdict == REPLAY_ACCEPTED;
}

static void take_command(struct daemon *daemon, const struct command *command,
			 const struct sockaddr_storage *sender,
			 socklen_t sender_bytes)
{
	struct requester from = {
		.address = { .socket = *sender, .length = sender_bytes },
		.counter = command->counter,
		.length_bytes = command->length_bytes,
	};

	/* A reply that was sent back, or a request that was meant for another
	 * node. */
	if (!wire_is_request(command->type) ||
	    memcmp(command->node, daemon->node, WIRE_NODE_BYTES) != 0) {
		daemon->refusals.fields++;
		return;
	}
	memcpy(from.session, command->session, WIRE_SESSION_BYTES);
	if (is_fresh(daemon, command, &from))
		dispatch(daemon, command, &from);
}

static void take_datagram(struct daemon *daemon, unsigned index)
{
	const struct inbox *inbox = &daemon->inbox;
	const struct mmsghdr *message = &inbox->messages[index];
	struct command command;

	switch (command_open(inbox->datagrams[index], message->msg_len,
			     daemon->options->key, &command)) {
	case COMMAND_GOOD:
		take_command(daemon, &command, &inbox->senders[index],
			     message->msg_hdr.msg_namelen);
		break;
	case COMMAND_BAD_LENGTH:
		daemon->refusals.length++;
		break;
	case COMMAND_BAD_TAG:
		daemon->refusals.tag++;
		break;
	case COMMAND_BAD_FIELDS:
		daemon->refusals.fields++;
		break;
	}
}

/* Returns how many, or -1. */
static int take_datagrams(struct daemon *daemon)
{
	int count = inbox_receive(&daemon->inbox, daemon->socket);

	for (int i = 0; i < count; i++)
		take_datagram(daemon, (unsigned)i);
	return count;
}

/* --- signals ------------------------------------------------------------- */

/* Blocks the signals that the daemon takes, and opens a descriptor to read them
 * from like all else.  A handler, which would interrupt ppoll() and be returned
 * from, takes three times as long. */
static int open_signals(void)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT };
	sigset_t ours;
	int fd;

	sigemptyset(&ours);
	for (unsigned i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&ours, signals[i]);
	if (sigprocmask(SIG_BLOCK, &ours, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Takes the signals that wait, at most one of each kind.  SIGCHLD is only there
 * to wake us up. */
static void take_signals(struct daemon *daemon)
{
	struct signalfd_siginfo signals[4];
	ssize_t bytes = read(daemon->signal_fd, signals, sizeof(signals));

	for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(signals[0]); i++)
		if (signals[i].ssi_signo != SIGCHLD)
			daemon->asked_to_stop = true;
}

/* --- life ---------------------------------------------------------------- */

static bool is_wildcard(const struct address *address)
{
	if (address->socket.ss_family == AF_INET)
		return address->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* Returns 0, or an errno value. */
static int bind_socket(int socket, struct address *address)
{
	struct sockaddr *name = (struct sockaddr *)&address->socket;

	if (bind(socket, name, address->length) < 0 ||
	    getsockname(socket, name, &address->length) < 0)
		return errno;
	return 0;
}

/* Binds a UDP socket to *address, whose port may be 0: then *address gets the
 * port that the kernel chose.  An address that stands for many is refused,
 * since the name of the node holds the address as clients write it.  Returns
 * the socket, or -errno with *failure filled. */
static int listen_to(struct address *address, struct failure *failure)
{
	char text[ADDRESS_TEXT_BYTES];
	int fd, error;

	address_format(address, text);
	if (is_wildcard(address))
		return failure_set(
			failure, EXIT_USAGE, "--listen", 0,
			"%s: stands for many addresses; expected the "
			"one that clients use",
			text);
	fd = socket(address->socket.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return failure_set(failure, EXIT_PEER, "--listen", errno,
				   "%s: no socket", text);
	error = bind_socket(fd, address);
	if (error == 0)
		return fd;
	close(fd);
	if (error == EADDRINUSE)
		return failure_set(failure, EXIT_PEER, "--listen", 0,
				   "%s: another program, maybe blinkd, listens "
				   "there",
				   text);
	if (error == EADDRNOTAVAIL)
		return failure_set(failure, EXIT_PEER, "--listen", 0,
				   "%s: not an address of this machine", text);
	return failure_set(failure, EXIT_PEER, "--listen", error, "%s", text);
}

int daemon_open(struct daemon **result, const struct daemon_options *options,
		struct failure *failure)
{
	struct address address = options->listen;
	int socket = listen_to(&address, failure);
	struct daemon *daemon;

	if (socket < 0)
		return socket;
	daemon = calloc(1, sizeof(*daemon));
	if (!daemon) {
		close(socket);
		return failure_no_memory(failure);
	}
	daemon->options = options;
	daemon->begin_ns = clock_now_ns();
	daemon->signal_fd = -1;
	daemon->socket = socket;
	address_format(&address, daemon->node_text);
	command_node(daemon->node_text, daemon->node);
	replay_init(&daemon->replay);
	inbox_init(&daemon->inbox);
	*result = daemon;
	return 0;
}

const char *daemon_node(const struct daemon *daemon)
{
	return daemon->node_text;
}

int daemon_begin(struct daemon *daemon, struct failure *failure)
{
	int ret = open_signals();

	daemon->signal_fd = ret;
	if (ret >= 0)
		ret = job_table_init(&daemon->table, daemon->node_text,
				     &daemon->options->allow,
				     &daemon->options->limits,
				     daemon->options->use_groups);
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "jobs", -ret, "");
	daemon->has_begun = true;
	return 0;
}

/* Places in the list for poll(2); the jobs' output follows these. */
enum { POLL_SOCKET, POLL_SIGNALS, POLL_JOBS };

struct work {
	struct pollfd fds[POLL_JOBS + JOB_POLL_FDS_MAX];
	unsigned count;
	bool is_of_jobs; /* there is more than datagrams */
};

/* Sleeps until there is work. */
static int wait_for_work(struct daemon *daemon, struct work *work)
{
	struct pollfd *fds = work->fds;
	int wait_ms = job_wait_ms(&daemon->table);
	int ready;

	fds[POLL_SOCKET] = (struct pollfd){
		.fd = daemon->asked_to_stop ? -1 : daemon->socket,
		.events = POLLIN,
	};
	fds[POLL_SIGNALS] =
		(struct pollfd){ .fd = daemon->signal_fd, .events = POLLIN };
	work->count = POLL_JOBS + job_poll_fds(&daemon->table, fds + POLL_JOBS);
	do
		ready = poll(fds, work->count, wait_ms);
	while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return -errno;
	/* A deadline that passes while we sleep is seen the next time. */
	work->is_of_jobs =
		wait_ms == 0 || ready > (fds[POLL_SOCKET].revents != 0);
	return 0;
}

/* A lease is over when its client has not renewed it, not when the daemon was
 * stopped and did not read the renewal: datagrams that wait are read first. But
 * no more than the socket may have held, so that a flood of junk keeps no job
 * alive. */
static void end_overdue(struct daemon *daemon)
{
	if (daemon->table.running_count == 0 ||
	    job_wait_ms(&daemon->table) != 0)
		return;
	for (unsigned i = 0; i < LAST_BATCHES; i++)
		if (take_datagrams(daemon) < INBOX_DATAGRAMS_MAX)
			break;
	job_end_overdue(&daemon->table);
}

int daemon_run(struct daemon *daemon, struct failure *failure)
{
	struct work work;

	while (!daemon->asked_to_stop || daemon->table.running_count > 0) {
		int ret = wait_for_work(daemon, &work);

		if (ret < 0)
			return failure_set(failure, EXIT_RESOURCES, "poll",
					   -ret, "");
		if (work.fds[POLL_SIGNALS].revents)
			take_signals(daemon);
		/* Ends first: clients wait for them. */
		if (work.is_of_jobs)
			job_work(&daemon->table, work.fds + POLL_JOBS,
				 work.count - POLL_JOBS, tell_end, daemon);
		if (daemon->asked_to_stop)
			job_kill_running(&daemon->table, WIRE_JOB_CANCELLED);
		else if (work.fds[POLL_SOCKET].revents)
			take_datagrams(daemon);
		if (!daemon->asked_to_stop)
			end_overdue(daemon);
		job_table_prepare(&daemon->table);
	}
	return 0;
}

void daemon_close(struct daemon *daemon)
{
	if (daemon->has_begun)
		job_table_fini(&daemon->table);
	if (daemon->signal_fd >= 0)
		close(daemon->signal_fd);
	close(daemon->socket);
	explicit_bzero(&daemon->replay, sizeof(daemon->replay));
	free(daemon);
}
